"""Connecting agents and taking it back, on configuration files as people have them."""

import json
import os
import tomllib

import pytest

from haft.connecting import AGENTS, Launch, agent_named
from haft.connecting.json_text import parse
from haft.contracts import BadConfig, BadUsage, Conflict, HaftError
from haft.values import replace as evolve

CLAUDE_STATE = (
    '{"numStartups": 12, "projects": {"/w": {"allowedTools": [], "mcpServers": {}}}, "oauthAccount": {"x": "y"}}'
)
CLAUDE_SETTINGS = """{
  "$schema": "https://json.schemastore.org/claude-code-settings.json",
  // my own
  "permissions": {
    "allow": ["Bash(npm test:*)", "Read(~/.zshrc)"],
    "deny": ["Bash(curl:*)", "Bash"], // never
  },
  "hooks": {
    "PreToolUse": [
      {"matcher": "Bash", "hooks": [{"type": "command", "command": "~/bin/check.sh"}]}
    ],
    "Stop": [{"hooks": [{"type": "command", "command": "say done"}]}]
  },
}
"""
CODEX = """# Codex
model = "gpt-5"   # the big one

[mcp_servers.other]
command = "npx"
args = ["-y", "x"]
[mcp_servers.other.env]
KEY = "secret"

# profiles
[profiles.fast]
model = "small"

[projects."/workspaces/mine"]
trust_level = "trusted"
"""
OPENCODE = """{
\t"$schema": "https://opencode.ai/config.json",
\t/* keys */
\t"provider": {"x": {"options": {"apiKey": "{env:X}"}}},
\t"mcp": {
\t\t"other": {"type": "remote", "url": "https://example.com/mcp", "enabled": false}, // later
\t},
\t"permission": {"bash": {"git *": "allow", "*": "ask"}},
}
"""
GEMINI = '{\r\n    "theme": "GitHub",\r\n    "mcpServers": {},\r\n    "tools": {"exclude": ["web_fetch"]}\r\n}\r\n'

SHAPES = {
    # name: agent, options, files
    "claude: nothing there": ("claude-code", {"hooks": True, "replace": True}, {}),
    "claude: state on one line": ("claude-code", {}, {".claude.json": CLAUDE_STATE}),
    "claude: comments, other hooks and rules": (
        "claude-code",
        {"hooks": True, "replace": True},
        {".claude.json": CLAUDE_STATE, ".claude/settings.json": CLAUDE_SETTINGS},
    ),
    "claude: haft's tools approved by hand": (
        "claude-code",
        {},
        {".claude/settings.json": '{"permissions": {"allow": ["mcp__haft"]}}'},
    ),
    "claude: empty files": ("claude-code", {"hooks": True}, {".claude.json": "", ".claude/settings.json": "{}"}),
    "claude: another server": (
        "claude-code",
        {},
        {".claude.json": '{\n  "mcpServers": {\n    "git": {"command": "uvx", "args": ["mcp-server-git"]}\n  }\n}\n'},
    ),
    "codex: nothing there": ("codex", {"hooks": True, "replace": True}, {}),
    "codex: comments and other tables": ("codex", {"hooks": True, "replace": True}, {".codex/config.toml": CODEX}),
    "codex: features as a table": (
        "codex",
        {"replace": True},
        {".codex/config.toml": "[features]\n# experiments\nweb_search = true # yes\n\n[tui]\nx = 1\n"},
    ),
    "codex: features as dotted keys": (
        "codex",
        {"replace": True},
        {".codex/config.toml": 'features.web_search = true\nmodel = "x"\n[tui]\nx = 1\n'},
    ),
    "codex: shell switched on by hand": (
        "codex",
        {"replace": True},
        {".codex/config.toml": "[features]\nshell_tool = true\n"},
    ),
    "codex: windows line ends, no newline at the end": (
        "codex",
        {"hooks": True},
        {".codex/config.toml": 'model = "x"\r\n[tui]\r\nx = 1'},
    ),
    "codex: other hooks": (
        "codex",
        {"hooks": True},
        {
            ".codex/hooks.json": '{"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": '
            '[{"type": "command", "command": "mine"}]}], "Stop": []}}'
        },
    ),
    "codex: trust in other hooks": (
        "codex",
        {"hooks": True},
        {".codex/config.toml": '[hooks.state."/x/hooks.json:stop:0:0"]\ntrusted_hash = "sha256:00"\n'},
    ),
    "opencode: nothing there": ("opencode", {"hooks": True, "replace": True}, {}),
    "opencode: jsonc with comments": (
        "opencode",
        {"hooks": True, "replace": True},
        {".config/opencode/opencode.jsonc": OPENCODE},
    ),
    "opencode: one word for all permissions": (
        "opencode",
        {"replace": True},
        {".config/opencode/opencode.json": '{\n  "permission": "allow"\n}\n'},
    ),
    "opencode: own rules for commands": (
        "opencode",
        {"hooks": True},
        {".config/opencode/opencode.json": '{"permission": {"bash": {"npm test": "allow", "*": "ask"}}}\n'},
    ),
    "opencode: one word for all commands": (
        "opencode",
        {"hooks": True},
        {".config/opencode/opencode.json": '{"permission": {"edit": "ask", "bash": "ask"}}\n'},
    ),
    "opencode: one word for everything": (
        "opencode",
        {"hooks": True},
        {".config/opencode/opencode.json": '{\n  "permission": "ask"\n}\n'},
    ),
    "opencode: no commands": (
        "opencode",
        {"hooks": True},
        {".config/opencode/opencode.json": '{"permission": {"bash": "deny"}}\n'},
    ),
    "opencode: another plugin": (
        "opencode",
        {"hooks": True},
        {".config/opencode/plugins/mine.js": "export const Mine = async () => ({})\n"},
    ),
    "gemini: windows line ends": ("gemini", {"hooks": True, "replace": True}, {".gemini/settings.json": GEMINI}),
    "gemini: a tool excluded by hand": (
        "gemini",
        {"replace": True},
        {".gemini/settings.json": '{"tools": {"exclude": ["run_shell_command"]}}'},
    ),
    "gemini: byte order mark": ("gemini", {"hooks": True}, {".gemini/settings.json": "\ufeff" + '{\n  "a": 1\n}'}),
    "antigravity: nothing there": ("antigravity", {"hooks": True}, {}),
    "antigravity: empty file": ("antigravity", {}, {".gemini/config/mcp_config.json": ""}),
    "antigravity: the older place": (
        "antigravity",
        {},
        {".gemini/antigravity/mcp_config.json": '{"mcpServers": {"x": {"serverUrl": "https://example.com"}}}'},
    ),
    "cursor: other servers and hooks": (
        "cursor",
        {"hooks": True, "replace": True},
        {
            ".cursor/mcp.json": '{\n  "mcpServers": {\n    "a": {"url": "https://example.com/mcp"}\n  }\n}\n',
            ".cursor/hooks.json": '{"version": 1, "hooks": {"stop": [{"command": "x"}], "preToolUse": []}}',
        },
    ),
    "vscode: inputs and comments": (
        "vscode",
        {"hooks": True},
        {
            ".config/Code/User/mcp.json": '{\n\t// tokens\n\t"inputs": [\n\t\t{"id": "t", "type": "x"},\n\t],'
            '\n\t"servers": {\n\t\t"a": {"type": "http", "url": "https://example.com"},\n\t},\n}\n'
        },
    ),
    "amp: keys with dots": (
        "amp",
        {"replace": True},
        {
            ".config/amp/settings.json": '{\n  "amp.url": "https://x",\n  "amp.tools.disable": ["builtin:Bash"],'
            '\n  "amp.mcpServers": {"a": {"command": "x"}}\n}\n'
        },
    ),
    "amp: jsonc": ("amp", {}, {".config/amp/settings.jsonc": "{\n  // nothing\n}\n"}),
    "project: claude": ("claude-code", {"project": True, "hooks": True}, {}),
    "project: codex": ("codex", {"project": True, "hooks": True}, {}),
    "project: opencode": ("opencode", {"project": True, "hooks": True, "replace": True}, {}),
    "project: gemini": ("gemini", {"project": True, "hooks": True}, {}),
    "project: cursor": ("cursor", {"project": True, "hooks": True}, {}),
    "project: vscode": ("vscode", {"project": True, "hooks": True}, {}),
    "project: antigravity": ("antigravity", {"project": True, "hooks": True}, {}),
    "project: amp": ("amp", {"project": True, "replace": True}, {}),
}


def loaded(path, content):
    return tomllib.loads(content.decode()) if path.endswith(".toml") else parse(content.decode("utf-8-sig")).value


def everything_in(old, new):
    """Whether everything of the old value is in the new one."""
    if isinstance(old, dict):
        return isinstance(new, dict) and all(key in new and everything_in(old[key], new[key]) for key in old)
    if isinstance(old, list):
        return isinstance(new, list) and all(item in new for item in old)
    return old == new


REPLACED = {
    "codex: shell switched on by hand",
    "opencode: jsonc with comments",
    "opencode: one word for all permissions",
    "opencode: one word for all commands",
    "opencode: one word for everything",
}
LAYOUT = {"codex: windows line ends, no newline at the end", "opencode: jsonc with comments"}
"""Only blanks and line ends may differ afterwards: a line end was missing, or a value that was replaced is back."""


@pytest.mark.parametrize("name", SHAPES)
def test_connecting_loses_nothing_and_removing_brings_the_old_bytes_back(home, name):
    agent, options, files = SHAPES[name]
    for path, content in files.items():
        home.write(path, content)
    before = home.snapshot()
    plan = home.connect(agent, **options)
    assert plan.is_change
    for path, content in before.items():
        if isinstance(content, bytes) and path.endswith((".json", ".jsonc", ".toml")) and name not in REPLACED:
            assert everything_in(loaded(path, content), loaded(path, home.snapshot()[path])), path
    after = home.snapshot()
    assert not home.connect(agent, **options).is_change
    assert home.snapshot() == after
    assert home.remove(agent, **options | {"hooks": False, "replace": False}).is_change
    assert home.snapshot() == before


@pytest.mark.parametrize("name", SHAPES)
def test_removing_after_somebody_else_changed_the_file_takes_only_our_entries(home, name):
    agent, options, files = SHAPES[name]
    for path, content in files.items():
        home.write(path, content)
    plan = home.connect(agent, **options)
    added = {}
    for change in plan.changes:
        if change.path.endswith((".js", ".ts", "policies/haft-shell.toml")):
            continue  # A file of haft's own.
        with open(change.path, "ab") as file:
            file.write(b"\n# later\n" if change.path.endswith(".toml") else b"\n// later\n")
        added[change.path] = change.before.content
    home.remove(agent, **options | {"hooks": False, "replace": False})
    for path, old in added.items():
        with open(path, "rb") as file:
            content = file.read()
        later = b"\n# later\n" if path.endswith(".toml") else b"\n// later\n"
        if not old:
            assert b"".join(content.split()) in (b"#later", b"{}//later"), path
        elif name in LAYOUT:
            assert b"".join(content.split()) == b"".join((old + later).split()), path
        else:
            assert content == old + later, path


@pytest.mark.parametrize("name", [name for name in SHAPES if name.startswith("project")])
def test_a_shared_file_has_neither_an_absolute_path_nor_a_token(home, name):
    agent, options, _ = SHAPES[name]
    plan = home.connect(agent, **options)
    for change in plan.changes:
        assert change.after is not None
        assert b"/opt" not in change.after and str(home.path).encode() not in change.after
        assert change.path.startswith(str(home.project))
    launch = Launch(("haft", "serve", "mcp"), ("haft", "hook"), url="http://127.0.0.1:8000/mcp")
    if agent == "antigravity":
        with pytest.raises(BadUsage):
            home.connect(agent, launch, **options)
        return
    home.connect(agent, launch, **options)
    texts = [content for content in home.snapshot().values() if isinstance(content, bytes)]
    assert any(b"HAFT_TOKEN" in text for text in texts) and not any(b"haft_" in text for text in texts)


def test_a_later_part_is_added_and_can_be_taken_back_alone(home):
    first = home.connect("claude-code") and home.snapshot()
    home.connect("claude-code", hooks=True)
    assert "PreToolUse" in (home.path / ".claude/settings.json").read_text()
    with_hooks = home.snapshot()
    home.connect("claude-code")
    assert home.snapshot() == with_hooks
    home.connect("claude-code", replace=True)
    home.remove("claude-code", hooks=True)
    settings = json.loads((home.path / ".claude/settings.json").read_text())
    assert "hooks" not in settings and "Bash" in settings["permissions"]["deny"]
    home.remove("claude-code", replace=True)
    assert home.snapshot() == first
    home.remove("claude-code")
    assert home.snapshot() == {}


def test_a_new_version_of_haft_replaces_what_the_old_one_wrote(home):
    home.write(".codex/hooks.json", '{"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "mine"}]}]}}')
    before = home.snapshot()
    for agent in ("claude-code", "codex", "opencode", "gemini"):
        home.connect(agent, hooks=True)
        home.connect(agent, home.launch(version="2"), hooks=True)
        texts = [text for text in home.snapshot().values() if isinstance(text, bytes)]
        assert not any(b"/opt/1/" in text for text in texts), agent
        assert any(b"/opt/2/" in text for text in texts)
        trust = (
            tomllib.loads((home.path / ".codex/config.toml").read_text())["hooks"]["state"] if agent == "codex" else {}
        )
        assert len(trust) in (0, 2)
        home.remove(agent)
    assert {path: text for path, text in home.snapshot().items() if text != "directory"} == {
        path: text for path, text in before.items() if text != "directory"
    }


def test_codex_trusts_the_hooks_by_their_place_in_the_file(home):
    home.write(".codex/hooks.json", '{"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "mine"}]}]}}')
    home.connect("codex", hooks=True)
    state = tomllib.loads((home.path / ".codex/config.toml").read_text())["hooks"]["state"]
    hooks = os.path.realpath(home.path / ".codex/hooks.json")
    assert set(state) == {f"{hooks}:pre_tool_use:1:0", f"{hooks}:post_tool_use:0:0"}
    # The person removes the other hook: haft's hook moves, and its trust with it.
    path = home.path / ".codex/hooks.json"
    path.write_text(path.read_text().replace('{"hooks": [{"type": "command", "command": "mine"}]}, ', ""))
    home.connect("codex", hooks=True)
    state = tomllib.loads((home.path / ".codex/config.toml").read_text())["hooks"]["state"]
    assert set(state) == {f"{hooks}:pre_tool_use:0:0", f"{hooks}:post_tool_use:0:0"}


@pytest.mark.every_user
def test_a_linked_file_stays_a_link_and_its_target_changes(home):
    target = home.write("dotfiles/claude.json", '{\n  "a": 1\n}\n')
    (home.path / ".claude.json").symlink_to("dotfiles/claude.json")
    before = home.snapshot()
    home.connect("claude-code")
    assert (home.path / ".claude.json").is_symlink() and b'"haft"' in target.read_bytes()
    home.remove("claude-code")
    assert home.snapshot() == before


def test_a_linked_directory_is_followed(home):
    (home.path / "dotfiles/codex").mkdir(parents=True)
    (home.path / ".codex").symlink_to("dotfiles/codex")
    home.connect("codex", hooks=True)
    assert (home.path / "dotfiles/codex/config.toml").exists()
    state = tomllib.loads((home.path / ".codex/config.toml").read_text())["hooks"]["state"]
    assert all(key.startswith(os.path.realpath(home.path / "dotfiles/codex/hooks.json")) for key in state)
    home.remove("codex")
    assert not list((home.path / "dotfiles/codex").iterdir())


@pytest.mark.every_user
def test_a_file_that_nobody_may_write_stays_and_so_do_the_others(home):
    home.write(".claude.json", CLAUDE_STATE)
    settings = home.write(".claude/settings.json", "{}")
    settings.chmod(0o444)
    before = home.snapshot()
    with pytest.raises(BadUsage, match="read-only") as caught:
        home.connect("claude-code", hooks=True)
    assert home.snapshot() == before
    assert "connect AGENT --print" in caught.value.hint
    assert settings.stat().st_mode & 0o777 == 0o444


@pytest.mark.parametrize(
    ("agent", "file", "content", "words"),
    [
        ("claude-code", ".claude/settings.json", '{"a": 1', "is not valid JSON"),
        ("claude-code", ".claude.json", "{'a': 1}", "is not valid JSON"),
        (
            "claude-code",
            ".claude.json",
            "[]",
            "left as it is: it must contain a JSON object, not a list",
        ),
        ("claude-code", ".claude.json", '{"mcpServers": []}', "`mcpServers` must be a JSON object, not a list"),
        (
            "claude-code",
            ".claude/settings.json",
            '{"permissions": {"allow": "x"}}',
            "`permissions.allow` is not a list",
        ),
        ("codex", ".codex/config.toml", "model = ", "is not valid TOML"),
        ("codex", ".codex/config.toml", 'mcp_servers = {a = {command = "x"}}', "cannot be changed line by line"),
        ("gemini", ".gemini/settings.json", b"\xff\xfe{}", "is not UTF-8"),
        ("opencode", ".config/opencode/opencode.json", '{"mcp": "x"}', "`mcp` must be a JSON object, not a text"),
        ("gemini", ".gemini/settings.json", '{"tools": {"core": ["run_shell_command"]}}', "has a list of your own"),
    ],
)
def test_a_broken_file_is_left_as_it_is_with_a_clear_error(home, agent, file, content, words):
    path = home.write(file, content)
    before = home.snapshot()
    with pytest.raises(HaftError) as error:
        home.connect(agent, replace=agent == "gemini")
    assert str(path) in error.value.message and words in error.value.message
    assert home.snapshot() == before


def test_a_file_that_breaks_later_is_an_error_for_removing_too(home):
    home.connect("claude-code")
    home.write(".claude.json", '{"a": ')
    before = home.snapshot()
    with pytest.raises(BadConfig, match="not valid JSON"):
        home.remove("claude-code")
    assert home.snapshot() == before


def test_a_server_of_somebody_else_with_our_name_is_not_overwritten(home):
    home.write(".cursor/mcp.json", '{"mcpServers": {"haft": {"command": "other-haft"}}}')
    before = home.snapshot()
    with pytest.raises(BadUsage, match="not haft"):
        home.connect("cursor")
    home.remove("cursor")
    assert home.snapshot() == before


def test_what_was_written_by_hand_is_recognized_without_a_record(home):
    home.write(".claude.json", '{"a": 1, "mcpServers": {"haft": {"command": "haft", "args": ["serve", "mcp"]}}}')
    hook = {"hooks": [{"type": "command", "command": "haft hook claude-code"}]}
    home.write(".claude/settings.json", json.dumps({"hooks": {"PreToolUse": [hook, {"hooks": []}]}, "b": 2}))
    plan = home.remove("claude-code")
    assert not plan.was_recorded
    assert json.loads((home.path / ".claude.json").read_text()) == {"a": 1, "mcpServers": {}}
    left = json.loads((home.path / ".claude/settings.json").read_text())
    assert left == {"hooks": {"PreToolUse": [{"hooks": []}]}, "b": 2}


def test_what_was_written_by_hand_goes_with_the_connection(home):
    home.write(".claude.json", '{"a": 1, "mcpServers": {"haft": {"command": "haft", "args": ["serve", "mcp"]}}}')
    home.connect("claude-code")
    home.remove("claude-code")
    assert "haft" not in (home.path / ".claude.json").read_text()


def test_a_change_between_reading_and_writing_is_a_conflict(home):
    home.write(".claude.json", "{}")
    plan = home.connections.plan(agent_named("claude-code"), home.choice(), home.launch())
    home.write(".claude.json", '{"theirs": 1}')
    with pytest.raises(Conflict):
        home.connections.carry_out(plan)
    assert (home.path / ".claude.json").read_text() == '{"theirs": 1}'
    assert not (home.path / ".claude/settings.json").exists()


@pytest.mark.every_user
def test_a_new_file_of_the_person_is_private_and_a_shared_one_is_not(home):
    home.connect("codex")
    assert (home.path / ".codex/config.toml").stat().st_mode & 0o077 == 0
    assert (home.path / ".codex").stat().st_mode & 0o077 == 0
    home.connect("codex", project=True)
    assert (home.project / ".codex/config.toml").stat().st_mode & 0o044 == 0o044
    records = list((home.state / "connections").iterdir())
    assert len(records) == 3 and all(record.stat().st_mode & 0o077 == 0 for record in records)


def test_the_variables_of_an_agent_say_where_its_files_are(home):
    home.env |= {"CODEX_HOME": str(home.path / "c"), "CLAUDE_CONFIG_DIR": str(home.path / "d")}
    home.connect("codex")
    home.connect("claude-code")
    assert (home.path / "c/config.toml").exists()
    assert (home.path / "d/.claude.json").exists() and (home.path / "d/settings.json").exists()


@pytest.mark.parametrize("agent", ["antigravity", "vscode"])
def test_an_agent_that_cannot_switch_its_tools_off_says_so(home, agent):
    with pytest.raises(BadUsage, match="cannot switch its own tools off"):
        home.connect(agent, replace=True)
    assert home.snapshot() == {}


@pytest.mark.parametrize("agent", AGENTS)
def test_over_http_the_entry_has_the_address_and_the_token(home, agent):
    launch = Launch(("haft",), ("haft", "hook"), url="http://127.0.0.1:8000/mcp", token="haft_0123_x")
    plan = home.connect(agent, launch, token=agent)
    text = (plan.changes[0].after or b"").decode()
    assert "http://127.0.0.1:8000/mcp" in text and "Bearer haft_0123_x" in text and '"serve"' not in text
    assert plan.record is not None and plan.record.token == agent


def test_what_a_person_added_to_our_entry_stays(home):
    home.connect("gemini")
    path = home.path / ".gemini/settings.json"
    added = {"timeout": 5, "includeTools": ["shell"], "env": {"MINE": "1"}}
    settings = json.loads(path.read_text())
    settings["mcpServers"]["haft"] |= added
    path.write_text(json.dumps(settings))
    home.connect("gemini", home.launch(version="2"))
    entry = json.loads(path.read_text())["mcpServers"]["haft"]
    assert entry["command"] == "/opt/2/bin/haft" and entry.items() >= added.items()
    assert not home.connect("gemini", home.launch(version="2")).is_change
    home.remove("gemini")
    assert not path.exists()


def test_what_codex_added_to_the_trust_stays(home):
    home.connect("codex", hooks=True)
    path = home.path / ".codex/config.toml"
    path.write_text(f"{path.read_text()}enabled = true\n")
    assert not home.connect("codex", hooks=True).is_change
    home.remove("codex")
    assert not path.exists()


def test_a_link_that_leads_nowhere_gets_its_file(home):
    (home.path / ".claude.json").symlink_to("dotfiles/claude.json")
    home.connect("claude-code")
    assert (home.path / ".claude.json").is_symlink() and (home.path / "dotfiles/claude.json").is_file()
    home.remove("claude-code")
    assert (home.path / ".claude.json").is_symlink() and not (home.path / "dotfiles").exists()


def test_a_directory_in_the_place_of_a_file_is_an_error(home):
    (home.path / ".claude.json").mkdir()
    with pytest.raises(BadConfig, match="cannot be read"):
        home.connect("claude-code")


OWN = {"false": "allow", "/state/hook/haft-shell *": "allow"}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, {"bash": OWN}),
        ({"permission": "ask"}, {"*": "ask", "bash": OWN}),
        ({"permission": {"bash": "ask"}}, {"bash": {"*": "ask", **OWN}}),
        ({"permission": {"bash": {"npm *": "allow", "*": "ask"}}}, {"bash": {"npm *": "allow", "*": "ask", **OWN}}),
        ({"permission": {"bash": "deny"}}, {"bash": "deny"}),
        ({"permission": "deny"}, "deny"),
    ],
)
def test_opencode_allows_hafts_program_after_its_other_rules(home, before, after):
    path = home.write(".config/opencode/opencode.json", json.dumps(before))
    home.connect("opencode", hooks=True)
    permission = json.loads(path.read_text())["permission"]
    assert permission == after
    if isinstance(permission, dict) and isinstance(permission["bash"], dict):
        assert list(permission["bash"])[-2:] == list(OWN), "the last rule that matches counts"
    home.connect("opencode", replace=True)
    assert "haft-shell" not in path.read_text()
    home.remove("opencode")
    assert json.loads(path.read_text()) == before


def test_gemini_gets_a_policy_of_its_own_that_goes_with_the_hooks(home):
    home.connect("gemini", hooks=True)
    path = home.path / ".gemini/policies/haft-shell.toml"
    (rule,) = tomllib.loads(path.read_text())["rule"]
    assert rule["commandPrefix"] == ["false", "/state/hook/haft-shell"] and rule["decision"] == "allow"
    home.remove("gemini", hooks=True)
    assert not path.exists() and (home.path / ".gemini/settings.json").exists()
    home.remove("gemini")
    assert not path.parent.exists()


@pytest.mark.parametrize("agent", ["opencode", "gemini"])
def test_rules_follow_the_state_home_and_need_a_plain_path(home, agent):
    home.connect(agent, hooks=True)
    home.connect(agent, evolve(home.launch(), shell="/other/hook/haft-shell"), hooks=True)
    texts = b"".join(text for text in home.snapshot().values() if isinstance(text, bytes))
    assert b"/other/hook/haft-shell" in texts and b"/state/" not in texts
    home.remove(agent)
    for shell in ("/a b/haft-shell", "/a*/haft-shell", None):
        home.connect(agent, evolve(home.launch(), shell=shell), hooks=True)
        texts = b"".join(text for text in home.snapshot().values() if isinstance(text, bytes))
        assert b"haft-shell" not in texts


@pytest.mark.parametrize("agent", ["claude-code", "codex"])
def test_agents_whose_hook_allows_the_line_get_no_rule(home, agent):
    home.connect(agent, hooks=True)
    assert not any(b"haft-shell" in text for text in home.snapshot().values() if isinstance(text, bytes))


def test_a_file_in_a_folder_that_nobody_may_write_is_named_with_its_path(home):
    folder = home.path / ".gemini"
    folder.mkdir(mode=0o555)
    with pytest.raises(BadUsage) as refused:
        home.connect("gemini")
    assert refused.value.message.startswith(f"{folder}/settings.json cannot be written, because {folder} is read-only")
    assert "make that folder writable" in refused.value.hint and os.listdir(folder) == []
