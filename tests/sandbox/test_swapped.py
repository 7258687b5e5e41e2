"""A path that another process replaces after a call was resolved, and before its sandbox is mounted, is not mounted.

The tool of these tests makes the swap itself, by another process, at the last moment that there is: when its command is
about to start.
"""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from haft.contracts import Answer, Command, Effects, ToolSpec
from haft.processes import ProcessLauncher
from haft.service import ToolService

pytestmark = [
    pytest.mark.every_user,
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux has a sandbox"),
]

SWAPPED = "something else"


@pytest.fixture
def workspace(tmp_path):
    place = tmp_path / "workspace"
    place.mkdir()
    return place


class Swapping:
    """Runs `argv` after `mv` put another directory in the place of one."""

    def __init__(self, place: Path, argv: list[str], files=(), readable=()) -> None:
        self.place = place
        self.argv = argv
        self.readable = readable
        self.spec = ToolSpec(
            name="swapping",
            kind="python",
            description="Swaps.",
            input_schema={"type": "object"},
            provenance="embedded",
            effects=Effects(),
            hosting="per-call",
            files=tuple(map(str, files)),
        )

    async def preprocess(self, arguments, context):
        return arguments

    async def invoke(self, arguments, context):
        swap(self.place)
        end = await context.launcher.run(Command(self.argv, readable=tuple(map(str, self.readable))), context)
        return Answer(exit_code=end.code)


def swap(place: Path) -> None:
    """Move a directory away, and its double to where it was."""
    subprocess.run(["sh", "-c", 'mv -T "$1" "$1.away" && mv -T "$1.double" "$1"', "sh", place], check=True)


def doubled(place: Path, name: str, words: str = "as approved") -> Path:
    """A directory with a file, and its double, with another."""
    for each, said in ((place, words), (Path(f"{place}.double"), SWAPPED)):
        each.mkdir(parents=True)
        (each / name).write_text(f"#!/bin/sh\necho {said}\n")
        (each / name).chmod(0o755)
    return place


def called(tmp_path, workspace, tool, *, grants=None, settings=None):
    seen = []

    async def approver(request):
        seen.append(request.sandbox)
        return True

    async def main():
        options = {"settings": settings or {}, "installed": False, "home": tmp_path / "home", "tools": [tool]}
        async with ToolService.open(workspace, approver=approver, **options) as service:
            return await service.call("swapping", {}, grants=grants)

    outcome = asyncio.run(main())
    assert len(seen) == 1
    assert outcome.sandbox.to_json() == seen[0].to_json()
    return outcome


def refused(outcome, place) -> bool:
    assert SWAPPED not in outcome.output
    assert outcome.error is not None
    assert (outcome.error.code, str(place) in outcome.error.message) == ("conflict", True), outcome.error
    return True


@pytest.mark.parametrize(
    ("kind", "engine"), [("read", "auto"), ("path", "auto"), ("write", "auto"), ("write", "snapshot")]
)
def test_a_granted_directory_that_was_swapped_is_not_mounted(tmp_path, workspace, kind, engine):
    place = doubled(tmp_path / "granted", "said")
    tool = Swapping(place, ["sh", "-c", f"cat {place}/said; echo more >> {place}/said"])
    settings = {"changes.engine": engine}
    assert refused(called(tmp_path, workspace, tool, grants={kind: [str(place)]}, settings=settings), place)
    assert (place / "said").read_text() == f"#!/bin/sh\necho {SWAPPED}\n"


@pytest.mark.parametrize(("kind", "where"), [("path", "programs"), ("write", ".git/hooks"), ("read", "texts")])
def test_a_granted_directory_of_the_workspace_that_was_swapped_is_not_used(tmp_path, workspace, kind, where):
    place = doubled(workspace / where, "said")
    tool = Swapping(place, ["sh", "-c", f"PATH=$PATH:{place} said; echo more >> {place}/said"])
    assert refused(called(tmp_path, workspace, tool, grants={kind: [where]}), place)


def test_a_directory_on_path_that_was_swapped_is_not_searched_without_a_sandbox_either(tmp_path, workspace):
    place = doubled(tmp_path / "programs", "said")
    tool, settings = Swapping(place, ["said"]), {"sandbox.mode": "off"}
    assert refused(called(tmp_path, workspace, tool, grants={"path": [str(place)]}, settings=settings), place)


@pytest.mark.parametrize("swapped", ["package", "package/programs"])
@pytest.mark.parametrize("inside", [True, False])
def test_a_package_of_a_tool_that_was_swapped_is_not_mounted(tmp_path, workspace, swapped, inside):
    base = workspace if inside else tmp_path
    program = doubled(base / "package" / "programs", "said") / "said"
    doubled(base / "package.double" / "programs", "said", SWAPPED)
    place = base / swapped
    tool = Swapping(place, [str(program)], files=[program], readable=[base / "package"])
    assert refused(called(tmp_path, workspace, tool), place)


def test_a_file_of_a_tool_that_was_swapped_is_not_run(tmp_path, workspace):
    program = doubled(tmp_path / "package", "said") / "said"
    (tmp_path / "package" / "said.double").write_text(f"#!/bin/sh\necho {SWAPPED}\n")
    (tmp_path / "package" / "said.double").chmod(0o755)
    tool = Swapping(program, [str(program)], files=[program], readable=[program.parent])
    assert refused(called(tmp_path, workspace, tool), program)


def test_an_activated_environment_that_was_swapped_is_not_used(tmp_path, workspace, monkeypatch):
    programs = doubled(workspace / ".venv" / "bin", "said")
    (workspace / ".venv" / "pyvenv.cfg").write_text("home = /usr/bin\n")
    monkeypatch.setenv("VIRTUAL_ENV", str(workspace / ".venv"))
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    run = ProcessLauncher.run

    async def swapping(self, command, sink):
        if command.argv[-1] == "said":
            swap(programs)
        return await run(self, command, sink)

    monkeypatch.setattr(ProcessLauncher, "run", swapping)

    async def approver(request):
        return True

    async def main():
        async with ToolService.open(workspace, approver=approver, home=tmp_path / "home", installed=False) as service:
            return await service.call("shell", {"command": "said"})

    assert refused(asyncio.run(main()), programs)


def test_a_layer_that_was_swapped_takes_nothing_in(tmp_path, workspace):
    victim = tmp_path / "victim"
    victim.mkdir()

    class Layered(Swapping):
        async def invoke(self, arguments, context):
            (upper,) = tmp_path.glob(f"**/{context.run}.layer/upper")
            subprocess.run(["sh", "-c", f"mv {upper} {upper}.away && ln -s {victim} {upper}"], check=True)
            end = await context.launcher.run(Command(["touch", "evil"]), context)
            return Answer(exit_code=end.code)

    outcome = called(tmp_path, workspace, Layered(victim, []))
    assert not (victim / "evil").exists()
    assert not (workspace / "evil").exists()
    assert outcome.error.code == "conflict"


def test_a_workspace_that_was_swapped_is_not_worked_in(tmp_path, workspace):
    Path(f"{workspace}.double").mkdir()
    outcome = called(tmp_path, workspace, Swapping(workspace, ["touch", "made"]))
    assert outcome.error.code == "conflict"
    assert not (workspace / "made").exists()
    assert not Path(f"{workspace}.away", "made").exists()


def test_what_a_call_replaced_itself_does_not_end_its_next_command(tmp_path, workspace):
    place = doubled(workspace / ".vscode", "settings.json")

    class Twice(Swapping):
        async def invoke(self, arguments, context):
            script = "cp -r .vscode other && rm -r .vscode && mv other .vscode"
            for _ in range(2):
                end = await context.launcher.run(Command(["sh", "-c", script]), context)
            return Answer(exit_code=end.code)

    for engine in ("auto", "snapshot"):
        outcome = called(
            tmp_path,
            workspace,
            Twice(place, []),
            grants={"write": [".vscode"]},
            settings={"changes.engine": engine},
        )
        assert (outcome.status, outcome.exit_code) == ("done", 0), outcome
