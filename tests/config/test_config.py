"""Settings: who is stronger, what a workspace may do, and what is said when something is wrong."""

import asyncio
import dataclasses
import json
import os
import sys

import pytest

from haft import ToolService
from haft.config.config import configured, load_config
from haft.config.files import workspace_config
from haft.config.settings import SETTINGS
from haft.contracts import PROCESS_LIMITS, BadConfig, Grants, Limits


@pytest.fixture
def places(tmp_path):
    workspace, config = tmp_path / "workspace", tmp_path / "config"
    workspace.mkdir()
    (config / "haft").mkdir(parents=True)
    return workspace, config / "haft" / "haft.toml", {"XDG_CONFIG_HOME": str(config)}


def test_every_setting_has_its_default(places):
    workspace, _, env = places
    config = load_config(str(workspace), env)
    assert config.values == {setting.name: setting.default for setting in SETTINGS}
    assert set(config.sources.values()) == {"default"}


def test_the_stronger_source_wins_caller_environment_workspace_user_default(places):
    workspace, user, env = places
    user.write_text("[limits]\nmax_seconds = 100\nmax_concurrent = 8\nmax_file_bytes = 800\nmax_output_bytes = 80\n")
    (workspace / "haft.toml").write_text("[limits]\nmax_seconds = 50\nmax_concurrent = 4\nmax_file_bytes = 400\n")
    env |= {"HAFT_LIMITS_MAX_SECONDS": "25", "HAFT_LIMITS_MAX_CONCURRENT": "2"}
    config = load_config(str(workspace), env, {"limits.max_seconds": 12.5})
    assert config.values["limits.max_seconds"] == 12.5 and config.sources["limits.max_seconds"] == "the caller"
    assert config.values["limits.max_concurrent"] == 2
    assert config.sources["limits.max_concurrent"] == "HAFT_LIMITS_MAX_CONCURRENT"
    assert config.values["limits.max_file_bytes"] == 400
    assert config.sources["limits.max_file_bytes"] == str(workspace / "haft.toml")
    assert config.values["limits.max_output_bytes"] == 80 and config.sources["limits.max_output_bytes"] == str(user)
    assert config.limits.max_concurrent == 2


def test_an_empty_text_switches_off_the_model_and_its_address(places):
    workspace, user, env = places
    user.write_text('[subagents]\nmodel = "a:b"\nbase_url = "http://127.0.0.1:1/v1"\n')
    config = load_config(str(workspace), env | {"HAFT_SUBAGENTS_MODEL": "", "HAFT_SUBAGENTS_BASE_URL": ""})
    assert config.values["subagents.model"] == "" and config.values["subagents.base_url"] == ""
    assert config.sources["subagents.model"] == "HAFT_SUBAGENTS_MODEL"
    user.write_text('[subagents]\nmodel = ""\n')
    assert load_config(str(workspace), env).sources["subagents.model"] == str(user)


def test_a_workspace_may_shorten_the_question_about_a_connection_and_not_prolong_it(places):
    workspace, _, env = places
    for seconds, counts in ((5, 5.0), (0, 0.0), (600, 60.0)):
        (workspace / "haft.toml").write_text(f"[sandbox]\nnetwork_ask_seconds = {seconds}\n")
        assert load_config(str(workspace), env).network_ask_seconds == counts


def test_a_workspace_may_lower_limits_and_not_raise_them(places):
    workspace, _, env = places
    limits = "[limits]\nmax_seconds = 10000\nmax_concurrent = 2\nmax_idle_seconds = 5\n"
    (workspace / "haft.toml").write_text(limits + "[tools.timeout]\nshell = 900\ntb__x = 9\n")
    config = load_config(str(workspace), env)
    assert config.values["limits.max_seconds"] == 120
    assert config.values["limits.max_concurrent"] == 2
    assert config.values["limits.max_idle_seconds"] == 5
    assert config.tool_seconds == {"tb__x": 9}
    assert {ignored.name for ignored in config.ignored} == {"limits.max_seconds", "tools.timeout.shell"}
    assert all("haft.toml" in ignored.sentence() for ignored in config.ignored)


def test_a_workspace_may_not_take_an_idle_deadline_away(places):
    workspace, user, env = places
    user.write_text("[limits]\nmax_idle_seconds = 30\n")
    (workspace / "haft.toml").write_text("[limits]\nmax_idle_seconds = 0\n")
    assert load_config(str(workspace), env).values["limits.max_idle_seconds"] == 30


@pytest.mark.parametrize(
    ("mine", "theirs", "counts"),
    [
        ("auto", "required", True),
        ("off", "auto", True),
        ("required", "required", True),
        ("auto", "off", False),
        ("required", "auto", False),
        ("required", "off", False),
    ],
)
def test_a_workspace_may_make_the_sandbox_stricter_and_not_looser(places, mine, theirs, counts):
    workspace, user, env = places
    user.write_text(f"[sandbox]\nmode = '{mine}'\n")
    (workspace / "haft.toml").write_text(f"[sandbox]\nmode = '{theirs}'\n")
    config = load_config(str(workspace), env)
    assert config.sandbox_mode == (theirs if counts else mine)
    said = [ignored.sentence() for ignored in config.ignored]
    assert bool(said) is not counts
    if said:
        assert f'`sandbox.mode = "{theirs}"` is ignored until you trust this file' in said[0]
        assert "a workspace may make the sandbox stricter" in said[0]


def test_a_workspace_may_close_the_network_and_not_open_it(places):
    workspace, user, env = places
    assert load_config(str(workspace), env).sandbox_network is False
    (workspace / "haft.toml").write_text("[sandbox]\nnetwork = true\n")
    config = load_config(str(workspace), env)
    assert config.sandbox_network is False
    assert "`sandbox.network = true` is ignored until you trust this file" in config.ignored[0].sentence()
    user.write_text("[sandbox]\nnetwork = true\n")
    assert load_config(str(workspace), env).sandbox_network is True
    (workspace / "haft.toml").write_text("[sandbox]\nnetwork = false\n")
    config = load_config(str(workspace), env)
    assert (config.sandbox_network, config.ignored) == (False, ())


@pytest.mark.parametrize(
    ("mine", "theirs", "counts"),
    [
        ("false", '["a.example"]', False),
        ('["a.example"]', '["a.example", "b.example"]', False),
        ('["a.example"]', '["*.a.example"]', False),
        ('["a.example"]', "true", False),
        ("true", '["a.example"]', True),
        ('["a.example", "b.example"]', '["b.example"]', True),
        ('["a.example"]', "[]", True),
        ('["a.example"]', "false", True),
        ('["a.example"]', '"never"', True),
    ],
)
def test_hosts_of_an_untrusted_workspace_count_only_if_they_narrow(places, mine, theirs, counts):
    workspace, user, env = places
    user.write_text(f"[sandbox]\nnetwork = {mine}\n")
    before = load_config(str(workspace), env).sandbox_network
    (workspace / "haft.toml").write_text(f"[sandbox]\nnetwork = {theirs}\n")
    untrusted, trusted = (
        configured(str(workspace), workspace_config(str(workspace)), env, trusted=trusted) for trusted in (False, True)
    )
    assert trusted.ignored == ()
    if counts:
        assert untrusted.ignored == () and untrusted.sandbox_network == trusted.sandbox_network
    else:
        assert untrusted.sandbox_network == before != trusted.sandbox_network
        said = untrusted.ignored[0].sentence()
        assert f"`sandbox.network = {theirs}` is ignored until you trust this file" in said
        assert "a workspace may close the network, not open it" in said


def test_the_hosts_of_the_nearer_place_replace_those_of_the_others(places):
    workspace, user, env = places
    user.write_text('[sandbox]\nnetwork = ["a.example", "localhost:5432"]\n')
    assert load_config(str(workspace), env).sandbox_network == ("a.example", "localhost:5432")
    env |= {"HAFT_SANDBOX_NETWORK": "b.example, c.example=10.1.0.0/16,10.2.0.0/16"}
    named = "b.example", "c.example=10.1.0.0/16,10.2.0.0/16"
    assert load_config(str(workspace), env).sandbox_network == named
    config = load_config(str(workspace), env, {"sandbox.network": ["@package-indexes"]})
    assert config.sandbox_network == ("@package-indexes",)
    user.write_text('[sandbox]\nnetwork = "never"\n')
    config = load_config(str(workspace), env)
    assert (config.sandbox_network, config.never_network) == (False, str(user))
    assert "which no other source can change" in config.ignored[0].sentence()


def test_configuration_with_wildcards_is_read_without_the_list_of_public_suffixes(places, monkeypatch):
    workspace, user, env = places
    monkeypatch.setitem(sys.modules, "publicsuffixlist", None)
    rule = '[[permissions]]\ntool = "shell"\naction = "allow"\ngrant = {network = ["*.github.io"]}\n'
    user.write_text(f'[sandbox]\nnetwork = ["*.co.uk"]\n{rule}')
    config = load_config(str(workspace), env)
    assert config.sandbox_network == ("*.co.uk",) and config.rules[0].grant.network == ("*.github.io",)


def test_never_is_the_last_word_on_the_network_whoever_says_it(places):
    workspace, user, env = places
    own, theirs = "[sandbox]\nnetwork = {}\n", workspace / "haft.toml"
    theirs.write_text(own.format('"never"'))
    config = load_config(str(workspace), env)
    assert (config.sandbox_network, config.never_network, config.ignored) == (False, str(theirs), ())
    user.write_text(own.format("true"))
    config = load_config(str(workspace), env | {"HAFT_SANDBOX_NETWORK": "true"}, {"sandbox.network": True})
    assert config.never_network == str(theirs) and not config.sandbox_network
    assert [each.sentence() for each in config.ignored] == [
        f"{source}: `sandbox.network = true` is ignored: {theirs} sets it to `never`, which no other source can change"
        for source in ("HAFT_SANDBOX_NETWORK", "the caller")
    ]
    user.write_text(own.format('"never"'))
    for looser in ("true", "false"):
        theirs.write_text(own.format(looser))
        for trusted in (False, True):
            config = configured(str(workspace), workspace_config(str(workspace)), env, trusted=trusted)
            assert config.never_network == str(user)
            assert len(config.ignored) == 1
    assert load_config(str(workspace), env | {"HAFT_SANDBOX_NETWORK": "never"}).never_network


def test_under_never_no_rule_grants_the_network(places):
    workspace, user, env = places
    for network in ("true", '["a.example"]'):
        rule = '[[permissions]]\ntool = "shell"\naction = "allow"\n'
        rule += f'grant = {{network = {network}, write = ["/srv"]}}\n'
        user.write_text(rule)
        assert load_config(str(workspace), env).rules[0].grant.network
        user.write_text(f'[sandbox]\nnetwork = "never"\n{rule}')
        assert load_config(str(workspace), env).rules[0].grant == Grants(write=("/srv",))


def test_the_sandbox_is_set_from_the_environment_and_by_the_caller(places):
    workspace, _, env = places
    for text, meant in {"true": True, "1": True, "Yes": True, "false": False, "0": False, "off": False}.items():
        assert load_config(str(workspace), env | {"HAFT_SANDBOX_NETWORK": text}).sandbox_network is meant
    config = load_config(str(workspace), env | {"HAFT_SANDBOX_MODE": "off"}, {"sandbox.network": True})
    assert (config.sandbox_mode, config.sources["sandbox.mode"]) == ("off", "HAFT_SANDBOX_MODE")
    assert config.sandbox_network is True
    for variable, text in {
        "HAFT_SANDBOX_NETWORK": "maybe",
        "HAFT_SANDBOX_MODE": "on",
        "HAFT_SANDBOX_MOD": "off",
    }.items():
        with pytest.raises(BadConfig, match=variable):
            load_config(str(workspace), env | {variable: text})


LIMITS_WHERE_ZERO_IS_NONE = [name for name in PROCESS_LIMITS if name != "max_open_files"]


@pytest.mark.parametrize("name", LIMITS_WHERE_ZERO_IS_NONE)
def test_a_workspace_may_lower_what_processes_use_and_not_take_the_limit_away(places, name):
    workspace, user, env = places
    user.write_text(f"[limits]\n{name} = 9_000_000\n")
    for value, counts in {2_000_000: True, 9_000_001: False, 0: False}.items():
        (workspace / "haft.toml").write_text(f"[limits]\n{name} = {value}\n")
        config = load_config(str(workspace), env)
        assert getattr(config.limits, name) == (value if counts else 9_000_000)
        assert len(config.ignored) == (not counts)
    user.write_text(f"[limits]\n{name} = 0\n")
    (workspace / "haft.toml").write_text(f"[limits]\n{name} = 2_000_000\n")
    assert getattr(load_config(str(workspace), env).limits, name) == 2_000_000, "any number is less than no limit"


def test_every_limit_is_a_setting(places):
    workspace, _, env = places
    assert load_config(str(workspace), env).limits == Limits()
    named = {f"limits.{field.name}" for field in dataclasses.fields(Limits)}
    assert named == {setting.name for setting in SETTINGS if setting.name.startswith("limits.")}


def test_haft_json_has_the_same_keys_and_both_side_by_side_are_an_error(places):
    workspace, _, env = places
    (workspace / "haft.json").write_text(json.dumps({"limits": {"max_seconds": 7}}))
    assert load_config(str(workspace), env).values["limits.max_seconds"] == 7
    (workspace / "haft.toml").write_text("")
    with pytest.raises(BadConfig, match="both exist"):
        load_config(str(workspace), env)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[limits]\nmax_second = 5", "max_seconds"),
        ("[limit]\nmax_seconds = 5", "limits"),
        ("[limits]\nmax_seconds = 'soon'", "must be a number of seconds"),
        ("[limits]\nmax_seconds = -1", "at least"),
        ("[limits]\nmax_seconds = inf", "number of seconds"),
        ("[limits]\nmax_seconds = nan", "seconds"),
        ("[limits]\nmax_concurrent = 0", "at least 1"),
        ("[limits]\nmax_concurrent = true", "whole number"),
        ("[limits]\nmemory_bytes = 5000", "must be a whole number, at least 1_000_000, or 0 for no limit"),
        ("[limits]\nmemory_bytes = 1e9", "must be a whole number"),
        ("[limits]\nmemory_bytes = 9223372036854775808", "at most"),
        ("[limits]\nmax_processes = 1", "at least 2, or 0 for no limit"),
        ("[limits]\nmax_processes = false", "whole number"),
        ("[limits]\ncpu_seconds = 0.01", "at least 0.1 seconds, or 0 for no limit"),
        ("[limits]\ncpu_seconds = 1e300", "at most"),
        ("[limits]\nmax_open_files = 0", "at least 64"),
        ("[sandbox]\nmode = 'of'", "off, auto, required"),
        ("[sandbox]\nmode = false", "off, auto, required"),
        ("[sandbox]\nnetwork = 1", "must be true, false, `never` or a list of hosts, not 1"),
        ("[sandbox]\nnetwork = 'nver'", "must be true, false, `never` or a list of hosts, not 'nver'"),
        ("[sandbox]\nnetwork = ['a b']", "`sandbox.network` cannot be used: `a b` is no host: write HOST"),
        ("[sandbox]\nnetwork = ['a.example', 7]", "`sandbox.network` cannot be used: network must be a list of hosts"),
        ("[sandbox]\nnetwork = ['@all']", "there is no group `@all` of hosts; the groups are @package-indexes"),
        ("[sandbox]\nnetwrk = true", "sandbox.network"),
        ("[audit]\ndurability = 'some'", "group, full"),
        ("limits = 5", "must be a table"),
        ("[tools]\ntimeout = 5", "table of tool names"),
        ("[tools.timeout]\nshell = 0", "shell"),
        ("[limits\n", "cannot be understood"),
        ("\xff\xfe", "cannot be understood"),
    ],
)
def test_what_is_wrong_is_said_with_the_file_and_the_near_miss(places, text, says):
    workspace, user, env = places
    user.write_bytes(text.encode("latin-1"))
    with pytest.raises(BadConfig) as caught:
        load_config(str(workspace), env)
    assert str(user) in caught.value.message
    assert says in f"{caught.value.message} {caught.value.hint}"


def test_a_misspelt_variable_is_an_error_with_the_near_miss(places):
    workspace, _, env = places
    with pytest.raises(BadConfig) as caught:
        load_config(str(workspace), env | {"HAFT_LIMITS_MAX_SECOND": "3"})
    assert "HAFT_LIMITS_MAX_SECONDS" in caught.value.hint


def test_deeply_nested_json_is_an_error_and_no_crash(places):
    workspace, _, env = places
    (workspace / "haft.json").write_text("[" * 100_000)
    with pytest.raises(BadConfig, match="cannot be understood"):
        load_config(str(workspace), env)


def test_a_workspace_that_contains_the_state_home_is_refused(tmp_path):
    with pytest.raises(BadConfig, match="contains the state home"):
        ToolService.open(tmp_path, home=tmp_path / "state")


@pytest.mark.parametrize("place", [place for place in ("/proc", "/sys", "/dev/shm") if os.path.isdir(place)])
def test_a_workspace_in_what_is_the_kernels_is_refused(place, tmp_path):
    with pytest.raises(BadConfig, match="and each call has its own"):
        ToolService.open(place, home=tmp_path / "state")


def test_a_workspace_that_is_no_directory_is_refused(tmp_path):
    with pytest.raises(BadConfig, match="is not a directory"):
        ToolService.open(tmp_path / "nowhere", home=tmp_path / "state")


def test_full_durability_answers_calls_all_the_same(tmp_path):
    (tmp_path / "w").mkdir()

    async def main():
        options = {"home": tmp_path / "home", "settings": {"audit.durability": "full"}}
        async with ToolService.open(tmp_path / "w", **options) as service:
            outcomes = [await service.call("list_directory", {"path": "."}) for _ in range(3)]
            assert {outcome.status for outcome in outcomes} == {"done"}

    asyncio.run(main())
