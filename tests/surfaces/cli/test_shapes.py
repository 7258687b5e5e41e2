"""Every `--json` shape against its JSON Schema in the documentation."""

import json
import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import jsonschema_rs
import pytest

from haft.service import Sessions

SHAPES = Path(__file__).parents[3] / "docs" / "reference" / "shapes"
SCHEMAS = {path.stem: json.loads(path.read_text()) for path in SHAPES.glob("*.json")}
REGISTRY = jsonschema_rs.Registry([(schema["$id"], schema) for schema in SCHEMAS.values()])

FORMS = ("mcp", "openai", "openai-responses", "anthropic")
CALL = ["tools", "use", "shell", "--command", "echo a; echo b >&2; sleep 300 & exit 3", "--approve", "--config", "k=v"]


def fits(name, value):
    jsonschema_rs.validator_for(SCHEMAS[name], registry=REGISTRY).validate(value)


def test_scenarios(haft):
    scenario = {"tool": "list_directory", "args": {"path": "."}, "cases": [{}, {"expect": {"exit": 1}}, {"tool": "x"}]}
    (haft.workspace / "a.scenario.json").write_text(json.dumps(scenario))
    found = haft("tools", "test", "--json").json
    fits("scenario-results", found)
    assert [each["passed"] for each in found] == [True, False, False]


def test_a_fuzzed_tool(haft):
    tool = haft.workspace / "picky"
    described = {"name": "picky", "description": "Prints.", "inputSchema": {"type": "object", "x": 1}}
    tool.write_text(
        f"#!/bin/sh\n[ $TOOLBOX_ACTION = describe ] && echo '{json.dumps(described)}' && exit\nkill -9 $$\n"
    )
    tool.chmod(0o755)
    words = ["tools", "fuzz", "./picky", "--examples", "1", "--seed", "1", "--json"]
    for is_known in (False, True):
        found = haft(*words).json
        fits("fuzz-report", found)
        ((kind, known, scenario),) = ((each["kind"], each["known"], each["scenario"]) for each in found["findings"])
        assert (kind, known, scenario) == ("crash", is_known, "./tb__picky.found-1.scenario.yaml")


def test_tools_and_definitions(haft):
    fits("tools", haft("tools", "list", "--all", "--json").json)
    fits("tools", haft("tools", "search", "file", "--json").json)
    fits("tool", haft("tools", "show", "shell", "--json").json)
    for form in FORMS:
        fits(f"definition-{form}", haft("tools", "show", "shell", "--as", form).json)
        fits(f"definitions-{form}", haft("tools", "list", "--as", form).json)
    fits("definition-amp", haft("tools", "show", "shell", "--as", "amp").json)


@pytest.mark.parametrize(
    "words",
    [
        CALL,
        ["tools", "use", "read_file", "--path", "a.txt"],
        ["tools", "use", "nothing"],
        ["tools", "use", "shell", "--command", "true"],
        ["tools", "use", "write_file", "--path", "n.txt", "--content", "x", "--approve"],
    ],
)
def test_outcomes_runs_events_and_records(haft, words):
    outcome = haft(*words, "--json").json
    fits("outcome", outcome)
    for line in haft(*words, "--stream").out.splitlines():
        fits("event", json.loads(line))
    for line in haft("watch", outcome["run"], "--json").out.splitlines():
        fits("event", json.loads(line))
    fits("run", haft("show", outcome["run"], "--json").json)
    fits("runs", haft("log", "--json").json)
    fits("output", haft("output", outcome["run"], "--json").json)
    fits("cancelled", haft("cancel", outcome["run"], "--json").json)
    fits("audit-verdict", haft("audit", "verify", "--json").json)
    fits("audit-entries", haft("audit", "list", "--json").json)
    for line in haft("audit", "export").out.splitlines():
        fits("audit-entry", json.loads(line))
    fits("audit-export", haft("audit", "export", "--to", "record.jsonl", "--json").json)


def test_types_of_sub_agents(haft):
    folder = haft.workspace / ".agents" / "agents"
    folder.mkdir(parents=True)
    (folder / "odd.md").write_text("---\nname: even\ndescription: D.\n---\n")
    (folder / "broken.md").write_text("nothing")
    fits("agent-types", haft("agent", "list", "--json").json)
    fits("agent-type", haft("agent", "show", "work", "--json").json)
    fits("checks", haft("agent", "check", "--json").json)
    fits("trust", haft("trust", "--yes", "--json", HAFT_SUBAGENTS_ENABLED="1").json)


def test_batches(haft):
    (haft.workspace / "calls.jsonl").write_text('{"id": "a", "tool": "read_file", "args": {"path": "a.txt"}}\n')
    fits("batch-plan", haft("tools", "batch", "calls.jsonl", "--dry-run", "--json").json)
    ended = haft("tools", "batch", "calls.jsonl", "--json").json
    fits("batch", ended)
    for outcome in ended["outcomes"]:
        del outcome["id"]
        fits("outcome", outcome)


def test_changes_and_what_became_of_them(haft):
    def write(*words, content="x"):
        return haft("tools", "use", "write_file", "--path", "a.txt", "--content", content, "--json", *words).json

    first = write("--approve")
    fits("outcome", first)
    fits("diff", haft("diff", first["run"], "--json").json)
    fits("blame", haft("blame", "a.txt", "--json").json)
    fits("report", haft("log", "--stat", "--json").json)
    fits("undo", haft("undo", "--dry-run", "--json").json)
    fits("undo", haft("undo", "--json").json)
    fits("undo", haft("redo", first["run"], "--json").json)
    (haft.workspace / "a.txt").write_text("y")
    refused = haft("undo", "--json")
    fits("undo", refused.json)
    assert refused.json["conflicts"] and refused.code == 5
    held = write("--try")
    fits("outcome", held)
    fits("diff", haft("diff", held["run"], "--json").json)
    fits("held", haft("changes", "list", "--json").json)
    (haft.workspace / "a.txt").write_text("z")
    fits("settled", haft("changes", "apply", held["run"], "--json").json)
    fits("settled", haft("changes", "apply", held["run"], "--json").json)
    fits("settled", haft("changes", "drop", write("--try", content="w")["run"], "--json").json)
    mine = write("--try", content="v\n" * 5 + "w\n")
    (haft.workspace / "a.txt").write_text("z\n")
    fits("settled", haft("changes", "apply", mine["run"], "--merge", "--json").json)
    fits("settled", haft("changes", "drop", mine["run"], "--json").json)
    parts = haft("tools", "use", "shell", "--command", "echo b > b; echo c > c", "--try", "--json").json
    fits("settled", haft("changes", "apply", parts["run"], "b", "--json").json)
    fits("diff", haft("diff", parts["run"], "--json").json)
    fits("run", haft("show", parts["run"], "--json").json)
    fits("blame", haft("blame", "b", "--json").json)
    fits("report", haft("log", "--stat", "--json").json)
    fits("runs", haft("log", "--json").json)
    fits("diff", haft("diff", haft("tools", "use", "read_file", "--path", "a.txt").json["run"], "--json").json)


def test_config_and_doctor(haft):
    (haft.workspace / "haft.toml").write_text("[limits]\nmax_seconds = 9999\n")
    fits("config", haft("config", "show", "--json").json)
    fits("trust", haft("trust", "--yes", "--json").json)
    fits("trust", haft("trust", "--revoke", "--json").json)
    rule = {"tool": "shell", "action": "reject", "matches": {"command": "rm *"}}
    (haft.workspace / "haft.toml").rename(haft.workspace / "haft.json")
    (haft.workspace / "haft.json").write_text(json.dumps({"permissions": [rule]}))
    fits("config", haft("config", "show", "--json").json)
    fits("doctor", haft("doctor", "--json").json)


def test_permissions(haft):
    haft("tools", "use", "shell", "--command", "touch b", "--approve")
    fits("permission-suggestions", haft("permissions", "suggest", "--json").json)
    haft("tools", "use", "shell", "--command", "touch b", "--approve")
    suggested = haft("permissions", "suggest", "--json").json
    fits("permission-suggestions", suggested)
    assert suggested["suggestions"]
    fits("permission-change", haft("permissions", "add", "allow", "shell", "--match", "command=touch *", "--json").json)
    for command in ("ls", "touch a && rm -rf b", "((("):
        fits("permission", haft("permissions", "test", "shell", "--command", command, "--json").json)
        fits("permission", haft("permissions", "test", "shell", "--command", command, "--json", "-v").json)
        tested = haft("permissions", "test", "shell", "--command", command, "--network", "a.example", "--json").json
        fits("permission", tested)
    for line in haft("permissions", "test", "--batch", "-", stdin='{"tool": "shell"}\nnothing\n').out.splitlines():
        fits("permission", json.loads(line))
    (haft.workspace / "haft.toml").write_text('[[permissions]]\ntool = "*"\naction = "allow"\n')
    fits("permission-rules", haft("permissions", "list", "--json").json)
    replayed = haft("permissions", "replay", "--json").json
    fits("permission-replay", replayed)
    assert replayed["flips"]
    fits("permission-change", haft("permissions", "remove", "~/config/haft/haft.toml:1", "--json").json)


def test_the_inbox(haft, ended):
    for _ in range(2):
        ended(haft.ask("tools", "use", "shell", "--command", "touch a && ls", "--wait", "100")[0])
    waiting = haft("inbox", "--json").json
    assert len(waiting) == 2
    fits("inbox", waiting)
    fits("answered", haft("approve", waiting[0]["id"], "--always", "--json").json)
    fits("answered", haft("reject", waiting[1]["id"], "--json").json)


def test_an_open_run_has_the_same_shape(haft, ended):
    ended(haft.begin("tools", "use", "shell", "--command", "sleep 300", "--approve"))
    fits("run", haft.open_run())
    fits("cancelled", haft("cancel", "--all", "--json").json)


def test_tools_that_are_made_and_checked(haft):
    fits("made-tool", haft("tools", "make", "fresh", "--json").json)
    fits("checks", haft("tools", "check", "read_file", "--json").json)
    fits("check-code", haft("tools", "check", "--explain", "no-shebang", "--json").json)


def test_what_a_tool_says_that_it_would_do(haft):
    assert haft("tools", "make", "fresh", "--bash-plugin").code == 0
    shown = haft("tools", "use", "plugins/fresh", "--path", "a $(touch x)", "--preview", "--json")
    fits("preview", shown.json)
    assert shown.json == {"preview": "fresh path=a\\ \\$\\(touch\\ x\\) limit=10"}
    assert haft("tools", "use", "read_file", "--path", "x", "--preview", "--json").json == {"preview": None}
    assert haft("tools", "use", "plugins/fresh", "--limit", "5", "--preview").code == 2, "it could not be called so"
    assert haft("log", "--json").json == [], "nothing was called"


def test_skills(haft):
    fits("skill-made", haft("skills", "make", "one", "--json").json)
    fits("skill-change", haft("skills", "activate", "one", "--thread", "T-1", "--json").json)
    fits("skill-change", haft("skills", "deactivate", "one", "--json").json)
    fits("skills-installed", haft("skills", "install", ".agents/skills/one", "--global", "--json").json)
    fits("skills", haft("skills", "list", "--all", "--json").json)
    fits("skill", haft("skills", "show", "one", "--json").json)


def test_plugins(haft):
    (haft.workspace / "haft.toml").write_text('plugins = ["bash:./one.bash"]\n')
    (haft.home.parent / "config/haft").mkdir(parents=True)
    (haft.home.parent / "config/haft/haft.toml").write_text('plugins = ["bash+git:/nowhere#v1"]\n')
    fits("plugins", listed := haft("plugins", "list", "--json").json)
    fits("plugins-updated", updated := haft("plugins", "update", "--json").json)
    assert len(listed) == 2 and len(updated) == 1


class RemoteServer(BaseHTTPRequestHandler):
    """An MCP server over HTTP that has no tools."""

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answers = {
            "initialize": {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "remote", "version": "1"},
            },
            "tools/list": {"tools": []},
        }
        result = answers.get(asked["method"])
        if "id" not in asked:
            self.send_response(202)
            self.end_headers()
            return
        failed = {"error": {"code": -32601, "message": "no such method"}}
        answer = {"jsonrpc": "2.0", "id": asked["id"], **(failed if result is None else {"result": result})}
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.send_error(405)

    def log_message(self, *words):
        pass


@pytest.fixture
def remote():
    server = ThreadingHTTPServer(("127.0.0.1", 0), RemoteServer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/mcp"
    server.shutdown()
    server.server_close()


def test_providers(haft, remote):
    (haft.workspace / ".mcp.json").write_text('{"mcpServers": {"a": {"command": "no-such-program"}, "b": {}}}')
    fits("providers-added", haft("providers", "add", "c", remote, "--json").json)
    fits("provider-trust", haft("providers", "trust", "a", "--yes", "--json").json)
    fits("provider-trust", haft("providers", "trust", "a", "--revoke", "--json").json)
    fits("provider-started", haft("providers", "restart", "c", "--json").json)
    fits("provider-login", logged_in := haft("providers", "login", "c", "--json").json)
    fits("provider-log", haft("providers", "logs", "c", "--json").json)
    fits("providers", listed := haft("providers", "list", "--json").json)
    fits("provider-removed", haft("providers", "remove", "c", "--json").json)
    assert [one["state"] for one in listed] == ["ready", "changed", "broken"] and logged_in["needed"] is False


def test_tokens(haft):
    fits("token-added", haft("tokens", "add", "codex", "--json").json)
    fits("tokens", haft("tokens", "list", "--json").json)
    fits("token-revoked", haft("tokens", "revoke", "codex", "--json").json)


def test_sessions(haft):
    fits("sign-in-link", haft("tokens", "link", "http://127.0.0.1:8000", "--json").json)
    made, _ = Sessions(haft.home).begin("ana", "link")
    fits("sessions", haft("tokens", "sessions", "--json").json)
    fits("session-ended", haft("tokens", "sessions", "--end", made.id, "--json").json)


def test_templates(haft):
    assert haft("tools", "make", "fresh", "--studio", "--to", "made").code == 0
    fits("checks", haft("templates", "check", "made/fresh", "--json").json)
    fits("templates-packed", haft("templates", "pack", "made/fresh", "--to", "pack.zip", "--json").json)
    fits("templates-installed", haft("templates", "install", "pack.zip", "--workflow", "W", "--json").json)
    fits("templates", listed := haft("templates", "list", "--in", "templates", "--json").json)
    (Path(listed[0]["folder"]) / "requirements.txt").write_text("# nothing\n")
    fits("template-built", haft("templates", "build", listed[0]["folder"], "--json").json)
    fits("tool", haft("tools", "show", listed[0]["folder"], "--json").json)
    fits("template-removed", haft("templates", "remove", listed[0]["folder"], "--yes", "--json").json)


def test_toolboxes(haft):
    (haft.workspace / "spec.toml").write_text('program = "git"\n[[commands]]\nname = "status"\n')
    fits("toolbox-placed", wrapped := haft("toolbox", "wrap", "--spec", "spec.toml", "--to", "box", "--json").json)
    fits("toolbox-placed", exported := haft("toolbox", "export", "read_file", "--to", "box", "--json").json)
    assert wrapped and exported
    (haft.home.parent / "config/haft").mkdir(parents=True)
    (haft.home.parent / "config/haft/haft.toml").write_text(f'[cli.git]\nspec = "{haft.workspace}/spec.toml"\n')
    fits("tools", haft("tools", "list", "--all", "--json", AMP_TOOLBOX=str(haft.workspace / "box")).json)
    fits("tool", haft("tools", "show", "git-status", "--json").json)


@pytest.mark.parametrize(
    "words",
    [
        ["show", "bogus"],
        ["log", "--status", "bogus"],
        ["log", "--limit", "many"],
        ["tols", "list"],
        ["undo"],
        ["undo", "r_none"],
        ["redo"],
        ["diff", "r_none"],
        ["changes", "apply", "r_none"],
        ["approve", "a_none"],
        ["reject", "a_none"],
        ["permissions", "test", "shel"],
        ["permissions", "add", "alow", "shell"],
        ["permissions", "remove", "remembered:7"],
        ["toolbox", "wrap", "--to", "box"],
        ["log", "--limit", "abc"],
        ["log", "--nothing"],
        ["nothing"],
        ["tools"],
        ["show"],
        ["tools", "check", "./none"],
        ["permissions", "edit"],
        ["skills", "show", "none"],
        ["trust", "none"],
        ["templates", "remove", "none"],
        ["plugins", "update", "none"],
        ["help", "x"],
        ["completion", "x"],
        ["toolbox", "wrap", "--spec", "none.toml", "--to", "box"],
        ["toolbox", "export", "raed_file", "--to", "box"],
    ],
)
def test_what_cannot_be_answered_is_said_in_json_too(haft, words):
    answer = haft(*words, "--json")
    fits("error", answer.json)
    assert answer.code == 2


def test_the_version(haft):
    fits("version", haft("version", "--json").json)


def test_every_shape_is_checked_here():
    text = Path(__file__).read_text()
    forms = {f"{name}-{form}" for name in ("definition", "definitions") for form in FORMS}
    assert not [name for name in SCHEMAS if f'fits("{name}"' not in text and name not in forms]


def test_the_store(haft):
    fits("store", haft("store", "show", "--json").json)
    fits("store-pruned", haft("store", "prune", "--json").json)
    fits("store-verdict", haft("store", "verify", "--json").json)
    (haft.workspace / "big").write_bytes(os.urandom(2_000_000))
    haft("tools", "use", "shell", "--command", "rm big", "--approve")
    held = haft("tools", "use", "write_file", "--path", "b", "--content", "x", "--try").json["run"]
    found = haft("store", "show", "--json").json
    fits("store", found)
    assert found["workspaces"] and [one["run"] for one in found["held"]] == [held]
    for words in (["--dry-run"], []):
        pruned = haft("store", "prune", *words, "--json", HAFT_CHANGES_STORE_BYTES="1000000").json
        fits("store-pruned", pruned)
        assert pruned["runs"] and pruned["held"]
    fits("store-verdict", haft("store", "verify", "--json").json)
    fits("store-backup", haft("store", "backup", "../backup", "--json").json)
    fits("store-restored", haft("store", "restore", "../backup", "--force", "--json").json)


def test_agents_and_their_connections(haft):
    fits("connected", haft("connect", "codex", "--hooks", "--replace", "--print", "--json").json)
    fits("connected", haft("connect", "codex", "--hooks", "--replace", "--yes", "--json").json)
    fits("agents", haft("connect", "--json").json)
    fits("connected", haft("connect", "codex", "--remove", "--yes", "--json").json)


def test_whole_programs(haft):
    fits("outcome", haft("run", "--json", "--", "bash", "-c", "echo x > n.txt; exit 3").json)
    fits("program-runs", haft("run", "--times", "2", "--json", "--", "true").json)
