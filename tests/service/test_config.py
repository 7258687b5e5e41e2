"""Settings: who is stronger, what a workspace may do, and what is said when something is wrong."""

import asyncio
import json

import pytest

from haft import ToolService
from haft.contracts import BadConfig
from haft.service.config import load_config
from haft.service.settings import SETTINGS


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


def test_haft_json_has_the_same_keys_and_both_side_by_side_are_an_error(places):
    workspace, _, env = places
    (workspace / "haft.json").write_text(json.dumps({"limits": {"max_seconds": 7}}))
    assert load_config(str(workspace), env).values["limits.max_seconds"] == 7
    (workspace / "haft.toml").write_text("")
    with pytest.raises(BadConfig, match="side by side"):
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
        ("[record]\ndurability = 'some'", "group, full"),
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


def test_a_workspace_that_is_no_directory_is_refused(tmp_path):
    with pytest.raises(BadConfig, match="is not a directory"):
        ToolService.open(tmp_path / "nowhere", home=tmp_path / "state")


def test_full_durability_answers_calls_all_the_same(tmp_path):
    (tmp_path / "w").mkdir()

    async def main():
        options = {"home": tmp_path / "home", "settings": {"record.durability": "full"}}
        async with ToolService.open(tmp_path / "w", **options) as service:
            outcomes = [await service.call("list_directory", {"path": "."}) for _ in range(3)]
            assert {outcome.status for outcome in outcomes} == {"done"}

    asyncio.run(main())
