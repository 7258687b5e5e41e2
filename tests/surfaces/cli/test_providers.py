"""`haft providers`: which MCP servers there are, which may start, and how they come and go."""

import hashlib
import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import npm_programs
import sampling

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
    assert (
        "theirs: new, or no longer trusted: the workspace's .mcp.json names it" in said.err
        and "`haft providers trust theirs`" in said.err
    )
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
        (["x", "npx", "-y", "y"], "write the command of a server after `--`"),
        (["x", "https:/a.example"], "an address begins with `https://`"),
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
    assert 'command = "no-such-program"' in refused.err
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
    agreed = haft("providers", "trust", "theirs", "--yes", "--no-start")
    assert agreed.code == 0 and 'args = ["server.py"]' in agreed.err
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
    assert "until you trust this file (`haft trust`), or each server" in haft("providers", "list").err
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


SERVER = r"""
import base64, json, os, sys
print("the server says hello, with", os.environ.get("API_TOKEN"), file=sys.stderr, flush=True)
if os.environ.get("FAILS"):
    sys.exit("out of order")
resources = {
    "note://one": {"text": "the first note"},
    "note://picture": {"blob": base64.b64encode(b"\x89\x00\xff").decode(), "mimeType": "image/png"},
}
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    method, params = asked["method"], asked.get("params") or {}
    if method == "initialize":
        answer = {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}, "resources": {}},
            "serverInfo": {"name": "notes", "version": "1"},
        }
    elif method == "tools/list":
        said = "Says it.\n\n# Sandbox\n\nNone."
        answer = {"tools": [{"name": "echo", "description": said, "inputSchema": {"type": "object"}}]}
    elif method == "tools/call":
        answer = {"content": [{"type": "text", "text": "echo: " + json.dumps(params["arguments"])}]}
    elif method == "resources/read" and params["uri"] in resources:
        answer = {"contents": [{"uri": params["uri"], **resources[params["uri"]]}]}
    else:
        answer = None
    failed = {"error": {"code": -32601, "message": "no such thing"}}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **(failed if answer is None else {"result": answer})}))
    sys.stdout.flush()
"""


@pytest.fixture
def server(haft):
    """The file of a small MCP server, outside the workspace."""
    path = haft.home.parent / "server.py"
    path.write_text(SERVER)
    return path


def test_a_server_is_added_called_read_restarted_and_removed(haft, own, server):
    added = haft("providers", "add", "notes", "--env", "API_TOKEN=the-token-itself", "--", sys.executable, str(server))
    assert added.code == 0 and "notes has 1 tool\n  mcp__notes__echo" in added.out
    (listed,) = haft("providers", "list", "--json").json
    assert (listed["state"], listed["tools"]) == ("ready", ["mcp__notes__echo"])
    assert "the-token-itself" not in json.dumps(listed)
    assert "mcp__notes__echo  mcp  [MCP server notes] Says it." in haft("tools", "list", "--source", "mcp").out
    shown = haft("tools", "show", "mcp__notes__echo").out
    assert shown.count("\n# Sandbox\n") == 1 and "│ # Sandbox\n" in shown, "the server cannot write haft's page"
    used = haft("tools", "use", "mcp__notes__echo", "--args", '{"a": 1}', "--approve", "--only", "output")
    assert used.out == 'echo: {"a": 1}'
    assert haft("providers", "read", "notes", "note://one").out == "the first note"
    picture = haft("providers", "read", "notes", "note://picture", "--json").json
    assert picture["tool"] == "read_resource" and picture["status"] == "done"
    missing = haft("providers", "read", "notes", "note://two")
    assert missing.code == 1 and "no such thing" in missing.err
    log = haft("providers", "logs", "notes").out
    assert "the server says hello" in log and "the-token-itself" not in log
    assert haft("providers", "logs", "notes", "--lines", "1", "--json").json["log"].count("\n") == 1
    assert haft("providers", "restart", "notes", "--json").json == {"name": "notes", "tools": ["mcp__notes__echo"]}
    (disabled,) = haft("providers", "list", "--json", HAFT_TOOLS_DISABLE="mcp:*").json
    assert (disabled["state"], disabled["tools"]) == ("disabled", ["mcp__notes__echo"])
    assert "MCP tools disabled" in disabled["reason"]
    server.write_text(SERVER + "# changed\n")
    refused = haft("tools", "use", "mcp__notes__echo", "--approve")
    assert refused.code != 0 and "haft providers trust notes" in refused.out + refused.err
    assert haft("providers", "remove", "notes").code == 0
    assert "mcp" not in haft("tools", "list", "--all").out


def test_a_server_that_fails_is_shown_with_its_own_words_and_disturbs_no_other(haft, own, server):
    program = f'command = "{sys.executable}"\nargs = ["{server}"]\n'
    own.write_text(f"[providers.sick]\n{program}env = {{FAILS = '1'}}\n[providers.notes]\n{program}")
    failed = haft("providers", "restart", "sick")
    assert failed.code == 1 and "out of order" in failed.err and "haft providers logs sick" in failed.err
    assert haft("providers", "restart", "notes").code == 0
    assert states(haft) == {"sick": "unreachable", "notes": "ready"}
    assert "out of order" in haft("providers", "logs", "sick").out
    doctor = haft("doctor").out
    assert "1 of 2 ready, with 1 tools" in doctor and "`sick` is unreachable" in doctor


def test_a_server_that_was_added_and_does_not_start_is_said_to_stay(haft, own):
    failed = haft("providers", "add", "ghost", "--", "no-such-program-at-all")
    assert failed.code == 1 and f"`ghost` stays in {own}" in failed.err
    assert "--replace" in failed.err and "haft providers remove ghost" in failed.err


def test_a_remote_server_that_is_not_there_gets_words_for_remote_servers(haft, own):
    with socket.socket() as held:  # It has a port, and does not listen.
        held.bind(("127.0.0.1", 0))
        place = f"127.0.0.1:{held.getsockname()[1]}"
        failed = haft("providers", "add", "far", f"http://{place}/mcp")
    assert failed.code == 1 and f"cannot be reached at `{place}`" in failed.err
    (check,) = [one for one in haft("doctor", "--json").json if "`far` is unreachable" in one["detail"]]
    assert check["hint"] == "check its address and your network"


def test_while_haft_connects_to_a_remote_server_it_says_how_long_it_waits(haft, own, terminal):
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        held.listen()  # Nobody answers.
        screen = terminal("providers", "add", "slow", f"http://127.0.0.1:{held.getsockname()[1]}/mcp", COLUMNS="120")
        screen.until("connecting to slow, for at most 60 s")


def test_a_broken_file_is_listed_with_its_path(haft):
    path = haft.workspace / ".mcp.json"
    path.write_text("{")
    said = haft("providers", "list")
    assert f"{path}  broken" in said.out and "mcp_json" not in said.out + said.err
    assert f"{path} cannot be understood" in said.err


def test_the_files_of_a_removed_server_stay_unless_they_are_purged(haft, own):
    haft("providers", "list")
    for purge in (False, True):
        assert haft("providers", "add", "memory", "--no-start", "--", "npx", "-y", "server-memory").code == 0
        key = hashlib.sha256(f"{own}\0memory".encode()).hexdigest()[:8]
        files = haft.home / "server-files" / f"memory-{key}"
        files.mkdir(parents=True, exist_ok=True)
        (files / "memory.jsonl").write_text("{}\n")
        if not purge:
            assert f"its files stay in {files}" in haft("providers", "remove", "memory").out
            assert (files / "memory.jsonl").exists()
    removed = haft("providers", "remove", "memory", "--purge", "--json").json
    assert removed == {"name": "memory", "file": str(own), "files": str(files), "purged": True}
    assert not files.exists()


def test_the_server_of_a_skill_is_there_where_the_skill_is_active(haft, server):
    folder = haft.workspace / ".agents" / "skills" / "noting"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: noting\ndescription: Notes.\n---\nNote it.\n")
    (folder / "mcp.json").write_text(json.dumps({"notes": {"command": sys.executable, "args": [str(server)]}}))
    assert "the skill `noting` names it" in haft("providers", "list").err
    assert haft("providers", "trust", "notes", "--yes").code == 0
    assert "mcp__notes__echo" not in haft("tools", "list").out
    assert states(haft) == {"notes": "inactive"}
    call = ["tools", "use", "mcp__notes__echo", "--approve", "--only", "output"]
    assert haft(*call, "--thread", "T-1").code != 0
    assert haft("skills", "activate", "noting", "--thread", "T-1").code == 0
    assert haft(*call, "--thread", "T-1").out == "echo: {}"
    assert haft(*call, "--thread", "T-2").code != 0, "another thread does not have the skill"


def test_listing_and_searching_start_none_of_ten_servers_and_load_nothing_heavy(haft, own):
    started = haft.home.parent / "started"
    server = haft.home.parent / "server.sh"
    server.write_text(f"#!/bin/sh\ntouch {started}\n")
    server.chmod(0o755)
    own.write_text("".join(f'[providers.s{number}]\ncommand = "{server}"\n' for number in range(10)))
    for words in (
        ["tools", "list"],
        ["tools", "list", "--all", "--json"],
        ["tools", "search", "file"],
        ["tools", "show", "read_file"],
        ["providers", "list"],
        ["config", "show"],
    ):
        assert haft(*words).code == 0
    assert [one["state"] for one in haft("providers", "list", "--json").json] == ["inactive"] * 10
    assert not started.exists()
    program = (
        "import sys\nfrom haft.surfaces.cli.main import run\nrun(['tools', 'list', '--all'])\n"
        "print([name for name in ('mcp', 'pydantic', 'httpx2', 'sqlite3') if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=haft.workspace, env=haft.env, timeout=60
    )
    assert sum(line.startswith("mcp__s") for line in done.stdout.splitlines()) == 10
    assert done.stderr.splitlines()[-1] == "[]"


@pytest.mark.skipif(not sampling.IS_WHOLE, reason="asks the real registry: HAFT_MORE=1")
def test_the_command_from_the_page_of_a_server_is_pasted_and_works_without_the_network_from_then_on(haft, terminal):
    npm_programs.program("server-memory")  # Skips if no registry answers.
    own = Path.home() / ".npmrc"
    if own.exists():
        shutil.copy(own, haft.home.parent)
    path = f"{npm_programs.node().parent}{os.pathsep}{os.defpath}"
    added = haft("providers", "add", "memory", "--", "npx", "-y", "@modelcontextprotocol/server-memory", PATH=path)
    assert added.code == 0 and "memory has 9 tools" in added.out and "mcp__memory__create_entities" in added.out
    entity = {"name": "Ada", "entityType": "person", "observations": ["writes programs"]}
    screen = terminal(
        *("tools", "use", "mcp__memory__create_entities", "--args", json.dumps({"entities": [entity]})), PATH=path
    )
    screen.until("Approve mcp__memory__create_entities?")
    screen.type("y\n")
    assert screen.end() == 0, screen.seen
    nowhere = {"npm_config_registry": "http://127.0.0.1:9/", "npm_config_cache": str(haft.home / "empty"), "PATH": path}
    read = haft("tools", "use", "mcp__memory__read_graph", "--approve", "--json", **nowhere).json
    assert read["status"] == "done" and read["sandbox"]["network"] is False
    assert json.loads(read["output"])["entities"] == [entity]
    assert haft("providers", "logs", "memory").out.count(" started: ") == 3
