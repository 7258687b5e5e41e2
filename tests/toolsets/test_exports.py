"""Tools that were exported from one workspace, used through AMP_TOOLBOX in another: the tool itself is called there."""

import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from haft.authoring.toolbox.exporter import export
from haft.config.files import workspace_config
from haft.config.trust_store import trust
from haft.contracts import BadUsage, Environment
from haft.testing import ToolBench

PYTHON = '''
from haft import tool


@tool
def note(text: str) -> str:
    """Write a note."""
    with open("note.txt", "a") as file:
        file.write(text)
    return f"noted {text}"
'''
MARKS = {
    "id": "mark",
    "version": "0.1.0",
    "args_mode": "positional",
    "positional": [{"name": "path"}],
    "tools": [
        {
            "type": "function",
            "function": {
                "name": "mark",
                "description": "Mark a file.",
                "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
            },
        }
    ],
}
BASH = f"""#!/usr/bin/env bash
case "$1" in
schema) printf '%s' '{json.dumps(MARKS)}' ;;
run) echo marked > "$2"; echo "marked $2" ;;
*) exit 1 ;;
esac
"""
TEMPLATE = '''"""Greet someone into a file."""
import argparse
import json

from pydantic import BaseModel, Field


class UserParameters(BaseModel):
    greeting: str


class ToolParameters(BaseModel):
    name: str = Field(description="Whom")


def run_tool(config, args):
    with open("greeting.txt", "w") as file:
        file.write(f"{config.greeting}, {args.name}")
    return f"{len(config.greeting)} letters for {args.name}"


OUTPUT_KEY = "tool_output"

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--user-params", required=True)
    parser.add_argument("--tool-params", required=True)
    args = parser.parse_args()
    config = UserParameters(**json.loads(args.user_params))
    params = ToolParameters(**json.loads(args.tool_params))
    print(OUTPUT_KEY, run_tool(config, params))
'''
SECRET = "a secret greeting"


class OfTheTests:
    """Environments that are there already: each is that of these tests."""

    def __init__(self, *_given):
        steps = {sys.prefix, sys.base_prefix, os.path.dirname(os.path.realpath(sys.executable))}
        self._environment = Environment(sys.executable, tuple(steps), "test")

    def current(self, _folder):
        return self._environment

    async def prepare(self, _folder, _told=None, *, may_build=False):
        return self._environment


class Two:
    """Workspace A, which has tools, and B, which uses them, of one user."""

    def __init__(self, place):
        self.a, self.b, self.box = place / "a", place / "b", place / "box"
        self.home = place / "state"
        for folder in (self.a, self.b, self.box):
            folder.mkdir()
        self._open = []

    def bench(self, workspace):
        self._open.append(ToolBench(workspace, self.home, environ=os.environ))
        return self._open[-1]

    def trust(self):
        trust(str(self.home), str(self.a), workspace_config(str(self.a)), "me")

    def export(self, *names):
        """Export tools of A; the texts of the executables."""
        with self.bench(self.a) as bench:
            tools = bench.tools()
            placed = export([tools[name] for name in names], str(self.box), str(self.a))
        return [Path(one.path).read_text() for one in placed]

    def close(self):
        for one in self._open:
            one.close()


@pytest.fixture
def two(tmp_path, monkeypatch):
    monkeypatch.setattr("haft.toolsets.templates._OnUse._real", lambda _self: OfTheTests())
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("AMP_TOOLBOX", str(tmp_path / "box"))
    made = Two(tmp_path.resolve())
    yield made
    made.close()


def give(two, kind):
    """A tool of a kind in A; what it is called, and how it is called."""
    match kind:
        case "python":
            (two.a / "notes.py").write_text(PYTHON)
            (two.a / "haft.toml").write_text('plugins = ["python:./notes.py"]\n')
            two.trust()
            return "note", {"text": "x"}, "note.txt"
        case "bash":
            (two.a / "mark").write_text(BASH)
            (two.a / "mark").chmod(0o755)
            (two.a / "haft.toml").write_text('plugins = ["bash:./mark"]\nplugin_policy.allow_bash_tools = true\n')
            return "mark", {"path": "m.txt"}, "m.txt"
        case "template":
            (two.a / "templates/greet").mkdir(parents=True)
            (two.a / "templates/greet/tool.py").write_text(TEMPLATE)
            (two.a / "templates/greet/requirements.txt").write_text("pydantic\n")
            (two.a / "haft.toml").write_text(
                '[[templates.instances]]\nname = "greet"\ntemplate = "./templates/greet"\n'
                f'user_params = {{greeting = "{SECRET}"}}\n'
            )
            return "greet", {"name": "you"}, "greeting.txt"
        case "builtin":
            return "write_file", {"path": "w.txt", "content": "x"}, "w.txt"
    raise AssertionError(kind)


KINDS = ["python", "bash", "template", "builtin"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_tool_of_another_workspace_is_called_here_once_and_undone_here(two, kind):
    name, arguments, changed = give(two, kind)
    (text,) = two.export(name)
    assert SECRET not in text
    bench = two.bench(two.b)
    listing = bench.tools()[f"tb__{name}"]
    assert (listing.state, listing.spec.kind, listing.spec.origin) == ("ready", "amp-toolbox", str(two.box / name))
    outcome = bench.call(f"tb__{name}", **arguments)
    assert outcome.status == "done", outcome
    assert [request.tool for request in bench.asked] == [f"tb__{name}"], "one approval"
    assert [run.tool for run in bench.service.runs()] == [f"tb__{name}"], "one run"
    assert (two.b / changed).exists() and not (two.a / changed).exists(), "changes are made where it is called"
    if kind == "template":
        assert (two.b / changed).read_text() == f"{SECRET}, you", "the parameters of the one who configured it"
    undone = bench.service.undo(bench.service.runs()[0].id).wait()
    assert undone.status == "done" and not (two.b / changed).exists()


def test_a_rule_of_the_workspace_that_calls_counts(two):
    name, arguments, changed = give(two, "bash")
    two.export(name)
    (two.b / "haft.toml").write_text('[[permissions]]\ntool = "tb__mark"\naction = "reject"\nmessage = "not here"\n')
    bench = two.bench(two.b)
    outcome = bench.call("tb__mark", **arguments)
    assert outcome.status != "done" and "not here" in outcome.error.message
    assert bench.asked == [] and not (two.b / changed).exists()


def test_an_executable_that_a_workspace_brings_stands_for_nothing(two):
    name, _arguments, _changed = give(two, "template")
    two.export(name)
    (two.b / ".agents").mkdir()
    two.box.rename(two.b / ".agents/tools")
    bench = two.bench(two.b)
    listing = bench.tools()["tb__greet"]
    assert listing.spec.provenance == "workspace" and "export" not in listing.spec.meta
    outcome = bench.call("tb__greet", name="you")
    assert outcome.status == "error" and "haft cannot run inside one of its own calls" in outcome.output
    assert not (two.b / "greeting.txt").exists()


@pytest.mark.parametrize("way", ["the root itself", "a link to it"])
def test_neither_does_one_that_is_reached_by_another_way(two, way, monkeypatch):
    name, _arguments, _changed = give(two, "template")
    two.export(name)
    (two.box / name).rename(two.b / name)
    place = two.b
    if way == "a link to it":
        place = two.b.parent / "another"
        place.symlink_to(two.b)
    monkeypatch.setenv("AMP_TOOLBOX", str(place))
    listing = two.bench(two.b).tools()["tb__greet"]
    assert listing.spec.provenance == "workspace" and "export" not in listing.spec.meta


def test_a_file_that_comes_to_stand_for_another_tool_is_asked_about_again(two):
    two.box.mkdir(exist_ok=True)
    path = two.box / "tidy"
    path.write_text('#!/bin/sh\necho \'{"name": "tidy", "description": "Tidy up.", "args": {}}\'\n')
    path.chmod(0o755)
    bench = two.bench(two.b)
    assert bench.call("tb__tidy").status == "done" and len(bench.asked) == 1
    mark = {"described": "tidy", "name": "list_directory", "workspace": None}
    path.write_text(f"#!/bin/sh\n# haft-export: {json.dumps(mark)}\n")
    outcome = bench.call("tb__tidy", path=".")
    assert outcome.status == "done" and len(bench.asked) == 2, "although a built-in tool that only reads asks nobody"
    assert "have changed since you approved it" in bench.asked[1].reason


def broken(two, name):
    """Why an exported tool cannot be called in B; what a call says agrees."""
    bench = two.bench(two.b)
    listing = bench.tools()[f"tb__{name}"]
    assert listing.state != "ready"
    assert bench.call(f"tb__{name}").status == "error"
    return listing.state, listing.reason


def test_a_workspace_that_is_gone_is_named(two):
    give(two, "bash")
    two.export("mark")
    shutil.rmtree(two.a)
    state, reason = broken(two, "mark")
    assert state == "broken" and str(two.a) in reason and "does not exist" in reason


def test_a_tool_that_is_gone_is_named(two):
    give(two, "bash")
    two.export("mark")
    (two.a / "haft.toml").write_text("")
    state, reason = broken(two, "mark")
    assert (state, reason) == ("broken", f"there is no tool `mark` in {two.a} any more: export it again")


def test_a_tool_that_is_switched_off_where_it_is_configured_is_so_here(two):
    give(two, "bash")
    two.export("mark")
    with (two.a / "haft.toml").open("a") as file:
        file.write('[tools]\ndisable = ["mark"]\n')
    state, reason = broken(two, "mark")
    assert state == "disabled" and "mark" in reason


def test_trust_that_is_taken_back_counts(two):
    give(two, "python")
    two.export("note")
    (two.a / "haft.toml").write_text('plugins = ["python:./notes.py"]\n# changed\n')
    state, _reason = broken(two, "note")
    assert state == "broken"


def test_a_configuration_that_is_wrong_breaks_that_tool_alone(two):
    give(two, "bash")
    two.export("mark")
    (two.a / "haft.toml").write_text("[[[")
    state, reason = broken(two, "mark")
    assert state == "broken" and "haft.toml" in reason


def test_another_definition_is_seen_at_the_next_call_and_asked_about_again(two):
    give(two, "bash")
    two.export("mark")
    bench = two.bench(two.b)
    bench.settings["permissions"] = [{"tool": "tb__mark", "action": "allow"}]
    assert bench.call("tb__mark", path="a").status == "done"
    assert bench.call("tb__mark", path="a").status == "done"
    assert len(bench.asked) == 1, "it is approved"
    before = bench.tools()["tb__mark"].spec.digest
    (two.a / "mark").write_text(BASH.replace("Mark a file.", "Mark another.").replace("echo marked >", "echo other >"))
    assert bench.call("tb__mark", path="b").status == "done"
    listing = bench.tools()["tb__mark"]
    assert listing.spec.description == "Mark another." and listing.spec.digest != before
    assert (two.b / "b").read_text() == "other\n" and len(bench.asked) == 2
    assert "+run) echo other" in bench.asked[1].definition_diff


def test_exports_are_exported_no_second_time_and_embedded_tools_not_at_all(two):
    give(two, "bash")
    two.export("mark")

    def here(text: str) -> str:
        """Only here."""
        return text

    bench = two.bench(two.b)
    bench.service.add(here)
    tools = bench.tools()
    with pytest.raises(BadUsage, match="`tb__mark` is exported already"):
        export([tools["tb__mark"]], str(two.box), str(two.b))
    with pytest.raises(BadUsage, match="`here` cannot be exported: it exists only"):
        export([tools["here"]], str(two.box), str(two.b))
    assert sorted(path.name for path in two.box.iterdir()) == ["mark"]


def test_two_tools_of_one_file_name_are_refused(two):
    give(two, "bash")
    two.export("mark")
    (two.box / "mark").write_text('#!/bin/sh\necho \'{"name": "mark", "description": "d"}\'\n')
    tools = two.bench(two.a).tools()
    with pytest.raises(BadUsage, match="`mark` and `tb__mark` would be the same file"):
        export([tools["mark"], tools["tb__mark"]], str(two.b / "out"), str(two.a))
    assert not (two.b / "out").exists()


@pytest.mark.parametrize("line", ["[]", "{", '{"described": 5, "name": "x", "workspace": null}', "[" * 5000])
def test_a_mark_that_cannot_be_read_makes_no_export(two, line):
    path = two.box / "odd"
    path.write_text(f'#!/bin/sh\n# haft-export: {line}\necho \'{{"name": "odd", "description": "d"}}\'\n')
    path.chmod(0o755)
    listing = two.bench(two.b).tools()["tb__odd"]
    assert listing.state == "ready" and "export" not in listing.spec.meta


def test_an_export_that_leads_to_an_export_is_not_followed(two):
    give(two, "bash")
    (text,) = two.export("mark")
    twice = two.box / "twice"
    twice.write_text(text.replace('"described": "mark", "name": "mark"', '"described": "twice", "name": "tb__mark"'))
    twice.chmod(0o755)
    bench = two.bench(two.b)
    listing = bench.tools()["tb__twice"]
    assert listing.state == "ready", "what the other workspace has is asked like what lies here"
    outcome = bench.call("tb__twice", path="x")
    assert outcome.status == "error", "the executable itself refuses inside of a call"
