"""Every `--json` shape against its JSON Schema in the documentation."""

import json
from pathlib import Path

import jsonschema_rs
import pytest

SHAPES = Path(__file__).parents[3] / "docs" / "reference" / "shapes"
SCHEMAS = {path.stem: json.loads(path.read_text()) for path in SHAPES.glob("*.json")}
REGISTRY = jsonschema_rs.Registry([(schema["$id"], schema) for schema in SCHEMAS.values()])

CALL = ["tools", "use", "shell", "--command", "echo a; echo b >&2; sleep 300 & exit 3", "--approve", "--config", "k=v"]


def fits(name, value):
    jsonschema_rs.validator_for(SCHEMAS[name], registry=REGISTRY).validate(value)


def test_tools_and_definitions(haft):
    fits("tools", haft("tools", "list", "--all", "--json").json)
    fits("tools", haft("tools", "search", "file", "--json").json)
    fits("tool", haft("tools", "show", "shell", "--json").json)
    for form in ("mcp", "openai", "anthropic", "amp"):
        fits(f"definition-{form}", haft("tools", "show", "shell", "--as", form).json)


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


def test_changes_and_what_became_of_them(haft):
    def write(*words, content="x"):
        return haft("tools", "use", "write_file", "--path", "a.txt", "--content", content, "--json", *words).json

    first = write("--approve")
    fits("outcome", first)
    fits("diff", haft("diff", first["run"], "--json").json)
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
    fits("runs", haft("log", "--json").json)
    fits("diff", haft("diff", haft("tools", "use", "read_file", "--path", "a.txt").json["run"], "--json").json)


def test_config_and_doctor(haft):
    (haft.workspace / "haft.toml").write_text("[limits]\nmax_seconds = 9999\n")
    fits("config", haft("config", "show", "--json").json)
    fits("doctor", haft("doctor", "--json").json)


def test_an_open_run_has_the_same_shape(haft, ended):
    ended(haft.start("tools", "use", "shell", "--command", "sleep 300", "--approve"))
    fits("run", haft.open_run())
    fits("cancelled", haft("cancel", "--all", "--json").json)


@pytest.mark.parametrize(
    "words",
    [
        ["show", "bogus"],
        ["log", "--status", "bogus"],
        ["log", "--limit", "many"],
        ["tools", "use", "read_file", "--pth", "x"],
        ["tols", "list"],
        ["undo"],
        ["undo", "r_none"],
        ["redo"],
        ["diff", "r_none"],
        ["changes", "apply", "r_none"],
    ],
)
def test_what_cannot_be_answered_is_said_in_json_too(haft, words):
    answer = haft(*words, "--json")
    fits("error", answer.json)
    assert answer.code == 2


def test_every_shape_is_checked_here():
    text = Path(__file__).read_text()
    forms = {f"definition-{form}" for form in ("mcp", "openai", "anthropic", "amp")}
    assert not [name for name in SCHEMAS if f'fits("{name}"' not in text and name not in forms]
