"""`haft providers`: which MCP servers there are, which may start, and how they come and go."""

import json

import pytest

NAMED = {"command": "no-such-program", "args": ["--token", "literal-token-1"], "env": {"API_KEY": "literal-key-1"}}
"""A server that never starts."""


@pytest.fixture
def own(haft):
    """The user's haft.toml, whose directory exists."""
    path = haft.home.parent / "config" / "haft" / "haft.toml"
    path.parent.mkdir(parents=True)
    return path


def project(haft, **servers):
    (haft.workspace / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))


def states(haft):
    return {one["name"]: one["state"] for one in haft("providers", "list", "--json").json}


def test_servers_of_all_files_are_listed_with_their_state_and_no_secret(haft, own):
    own.write_text(
        '[providers.mine]\nurl = "https://a.example/mcp"\n[providers.off]\ncommand = "x"\nenabled = false\n'
        '[providers.wrong]\ntype = "carrier-pigeon"\n[providers.unset]\ncommand = "${NOT_SET}"\n'
    )
    project(haft, theirs=NAMED)
    said = haft("providers", "list")
    assert said.code == 0
    assert "theirs: the workspace's .mcp.json names it" in said.err and "`haft providers trust theirs`" in said.err
    assert "has the type `carrier-pigeon`" in said.err and "`NOT_SET`, which is not set" in said.err
    assert states(haft) == {
        "mine": "inactive",
        "off": "disabled",
        "wrong": "broken",
        "unset": "broken",
        "theirs": "changed",
    }
    shown = haft("providers", "list", "--json").out + said.out
    assert "literal-token-1" not in shown and "literal-key-1" not in shown and "API_KEY" in shown


def test_nothing_configured_is_said(haft):
    said = haft("providers", "list")
    assert said.out == "" and "no MCP servers are configured" in said.err


def test_a_server_is_added_to_the_user_s_file_as_it_was_typed_and_removed_without_a_trace(haft, own):
    own.write_text("# my settings\n[limits]\nmax_seconds = 5 # five\n")
    before = own.read_text()
    said = haft(
        *("providers", "add", "fs", "--no-start", "--write", ".", "--env", "CI", "--env", "A=b", "--include", "read_*"),
        *("--timeout", "7", "--network=a.example", "--", "npx", "-y", "@scope/server", "--flag"),
    )
    assert said.code == 0 and f"added `fs` to {own}" in said.out
    assert own.read_text() == before + (
        '\n[providers.fs]\ntype = "stdio"\ncommand = "npx"\nargs = ["-y", "@scope/server", "--flag"]\n'
        'env = {A = "b"}\ngrant = {network = ["a.example"], env = ["CI"], write = ["."]}\n'
        'include = ["read_*"]\ntimeout = 7.0\n'
    )
    again = haft("providers", "add", "fs", "--no-start", "https://a.example/mcp")
    assert again.code == 2 and "already names a server `fs`" in again.err and "--replace" in again.err
    replaced = haft("providers", "add", "fs", "--no-start", "--replace", "--header", "X: y", "https://a.example/mcp")
    assert replaced.code == 0 and 'headers = {X = "y"}' in own.read_text() and "npx" not in own.read_text()
    assert haft("providers", "remove", "fs").code == 0
    assert own.read_text() == before
    assert haft("providers", "remove", "fs").code == 2


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["x"], "needs a name, and a URL or a command"),
        (["a__b", "--", "x"], "use `a_b`"),
        (["x", "--timeout", "-1", "--", "y"], "is no number of seconds"),
        (["x", "--header", "nothing", "http://a.example"], "`--header nothing` is not understood"),
        (["x", "--type", "pigeon", "http://a.example"], "has the type `pigeon`"),
        (["x", "--network=*.com", "--", "y"], "*.com"),
    ],
)
def test_what_cannot_be_added_is_refused_and_nothing_is_written(haft, own, words, says):
    said = haft("providers", "add", *words)
    assert said.code == 2 and says in said.err and not own.exists()


def test_servers_of_another_agent_are_shown_before_they_are_imported(haft, own, terminal):
    (haft.workspace / "opencode.json").write_text(
        '{"mcp": {"one": {"type": "local", "command": ["x", "-y"], "environment": {"K": "{env:K}"}},\n'
        ' "two": {"type": "remote", "url": "https://a.example/mcp"}} /* comment */ }'
    )
    refused = haft("providers", "add", "--from", "opencode.json", "--no-start")
    assert refused.code == 3 and "there is no terminal to ask at" in refused.err and not own.exists()
    asked = terminal("providers", "add", "--from", "opencode.json", "--no-start", COLUMNS="200")
    asked.until('args = ["-y"]')
    asked.until("https://a.example/mcp")
    asked.until("let them start? [y/N]")
    asked.type("n\n")
    assert asked.end() == 3 and not own.exists()
    done = haft("providers", "add", "--from", "opencode.json", "--no-start", "--yes", "one")
    assert done.code == 0 and "two" not in own.read_text() and 'env = {K = "${env:K}"}' in own.read_text()
    unknown = haft("providers", "add", "--from", "opencode.json", "tow")
    assert unknown.code == 2 and "did you mean `two`?" in unknown.err


def test_the_start_of_a_server_of_the_workspace_is_shown_and_asked_for_once(haft, terminal):
    project(haft, theirs=NAMED)
    refused = haft("providers", "trust", "theirs", "--no-start")
    assert refused.code == 3 and "look at it, then `haft providers trust theirs --yes`" in refused.err
    asked = terminal("providers", "trust", "theirs", "--no-start", COLUMNS="200")
    asked.until('command = "no-such-program"')
    asked.until("Let this server start? [y/N]")
    asked.type("y\n")
    assert asked.end() == 0 and "theirs may start" in asked.seen
    assert "literal-token-1" not in asked.seen and "literal-key-1" not in asked.seen
    assert states(haft)["theirs"] != "changed"
    assert haft("providers", "trust", "theirs", "--no-start").out == "theirs may start, and could before\n"

    project(haft, theirs={**NAMED, "args": ["--other", "literal-token-1"]})
    assert states(haft)["theirs"] == "changed"
    asked = terminal("providers", "trust", "theirs", "--no-start", COLUMNS="200")
    asked.until('-args = ["--token"')
    asked.until('+args = ["--other"')
    asked.until("it has changed since you trusted it: this is the difference")
    asked.until("[y/N]")
    asked.type("n\n")
    assert asked.end() == 3 and states(haft)["theirs"] == "changed"
    assert haft("providers", "trust", "theirs", "--revoke").out == "theirs is no longer trusted\n"
    assert haft("providers", "trust", "theirs", "--revoke").out == "theirs is not trusted, and was not before\n"


def test_a_changed_file_is_named_when_the_start_is_asked_for_again(haft, terminal):
    server = haft.workspace / "server.py"
    server.write_text("1\n")
    project(haft, theirs={"command": "python3", "args": ["server.py"]})
    assert haft("providers", "trust", "theirs", "--yes", "--no-start").code == 0
    server.write_text("2\n")
    listed = haft("providers", "list")
    assert f"{server} changed since you trusted it" in listed.err
    asked = terminal("providers", "trust", "theirs", "--no-start", COLUMNS="200")
    asked.until(f"changed since then: {server}")
    asked.until("[y/N]")
    asked.type("n\n")
    assert asked.end() == 3


def test_a_value_that_a_server_needs_is_asked_for_once_without_showing_it(haft, terminal):
    inputs = [{"type": "promptString", "id": "key", "description": "Key of the service", "password": True}]
    server = {"command": "no-such-program", "env": {"K": "${input:key}"}}
    (haft.workspace / ".mcp.json").write_text(json.dumps({"servers": {"theirs": server}, "inputs": inputs}))
    assert "needs the input `key`: `haft providers trust theirs` asks for it" in haft("providers", "list").err
    refused = haft("providers", "trust", "theirs", "--yes", "--no-start")
    assert refused.code == 3 and "`--input key=FILE` reads it from a file" in refused.err
    asked = terminal("providers", "trust", "theirs", "--no-start", COLUMNS="200")
    asked.until("[y/N]")
    asked.type("y\n")
    asked.until("key (Key of the service):")
    asked.type("the-value-given\n")
    assert asked.end() == 0 and "the-value-given" not in asked.seen
    assert states(haft)["theirs"] not in ("broken", "changed")
    assert "the-value-given" in (haft.home / "providers" / "inputs.json").read_text()
    (haft.home / "providers" / "inputs.json").unlink()
    given = haft("providers", "trust", "theirs", "--yes", "--no-start", "--input", "key=-", stdin="another-value\n")
    assert given.code == 0 and "another-value" in (haft.home / "providers" / "inputs.json").read_text()


def test_trusting_the_workspace_s_file_lets_its_servers_start_and_revoking_ends_it(haft):
    (haft.workspace / "haft.toml").write_text('[providers.theirs]\ncommand = "no-such-program"\n')
    assert states(haft) == {"theirs": "changed"}
    assert haft("trust", "--yes").code == 0
    assert states(haft)["theirs"] != "changed"
    assert haft("trust", "--revoke").code == 0
    assert states(haft) == {"theirs": "changed"}
    assert haft("providers", "trust", "theirs", "--yes", "--no-start").code == 0, "one server alone may be trusted, too"
    assert states(haft)["theirs"] != "changed"


def test_a_server_of_a_file_that_haft_does_not_write_is_removed_there(haft):
    project(haft, theirs=NAMED)
    said = haft("providers", "remove", "theirs")
    assert said.code == 2 and "remove it from this file" in said.err


def test_a_wrong_name_is_answered_with_the_near_miss(haft):
    project(haft, theirs=NAMED)
    for command in (["trust"], ["restart"], ["login"], ["remove"], ["logs"]):
        said = haft("providers", *command, "their")
        assert said.code == 2 and "did you mean `theirs`?" in said.err
    assert "did you mean `theirs`?" in haft("providers", "read", "their", "x://y").err
