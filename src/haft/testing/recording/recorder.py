"""Records past runs as scenario files."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from haft.audit import secret_values
from haft.contracts import BadUsage, Secrets, ToolSpec, texts_in
from haft.files import is_repository_top
from haft.testing.reading import read_scenario_file
from haft.testing.recording.drafting import Draft, draft_of
from haft.testing.recording.past_run import PastRun, PastRuns, when
from haft.testing.recording.program_calls import record_programs
from haft.testing.recording.replay import confirmed, scenario_of
from haft.testing.recording.secret_finder import SHORTEST, SecretFinder, is_secret_file
from haft.testing.recording.tool_places import WorkspaceTools
from haft.testing.recording.yaml_text import yaml_text
from haft.testing.scenarios import Scenario
from haft.values import dataclass

if TYPE_CHECKING:
    from haft.service import StateHome

_ENDINGS: Final = (".yaml", ".yml", ".json")
_MOST_READ: Final = 1_000_000
_SKIPPED: Final = frozenset({".git", "node_modules", "__pycache__"})
_MOST_FOLDERS: Final = 2_000


@dataclass(frozen=True)
class Recorded:
    """A scenario that was written."""

    path: str
    run: str
    tool: str
    notes: tuple[str, ...]
    """What the scenario does not know, and what it left out."""

    def to_json(self) -> dict[str, Any]:
        return {"file": self.path, "run": self.run, "tool": self.tool, "notes": list(self.notes)}


async def record_run(
    name: str,
    home: StateHome,
    *,
    to: str | None = None,
    files: Sequence[str] = (),
    programs: Sequence[str] = (),
    folder: str | None = None,
    in_session: bool = False,
) -> Recorded:
    """Write a scenario that repeats a past run and expects what the run did. Replays it first.

    `to` is the file; without it, the file gets a name of its own in `folder`, or beside the tool. `files` are glob
    patterns of files of the workspace to add. The answers of `programs` are recorded: the real ones run once more for
    that. With `in_session`, the options are those of a whole session, so that no note names a program that the tool did
    not call. Raises `BadUsage` if the run cannot be recorded, and `NotReproducible` if a replay does something else."""
    runs = PastRuns(home)
    try:
        run = runs.find(name)
        tools = await asyncio.to_thread(WorkspaceTools, run.workspace, home)
        place = tools.find(run.record.tool)
        path = _target(run, to, folder or _folder(run, place.folder))
        finder = SecretFinder(_known_secrets(run.workspace, tools))
        draft = draft_of(runs, run, place, tools, os.path.dirname(path), files, finder)
    finally:
        runs.close()
    title = os.path.basename(path).partition(".scenario.")[0]
    is_repository = is_repository_top(run.workspace)
    starts_none = _is_recorded_server(draft) or (
        place.listing.spec.kind == "builtin" and not place.listing.spec.commands
    )
    missing: Sequence[str] = programs
    if programs and not starts_none:
        git = is_repository and shutil.which("git") is not None
        folder = os.path.dirname(path)
        missing = await record_programs(draft, programs, run.record.id, folder, finder, git=git)
    if not in_session:
        draft.notes += [f"the tool did not call {each}" for each in missing]
    draft = await confirmed(draft, run.record.id, os.path.dirname(path), title, in_repository=is_repository)
    if "git" in draft.data:
        is_committed = draft.data["git"] is True
        first = "one commit of its own files" if is_committed else "an empty commit and its own files uncommitted"
        draft.notes.append(f"the scenario begins with {first}, without the history and the branches of the workspace")
    draft.notes += [f"secrets are masked in {each}" for each in finder.masked_in]
    draft.notes += _unknown(run, place.listing.spec, draft)
    _write(path, draft, run, finder.secrets)
    return Recorded(path, run.record.id, run.record.tool, tuple(dict.fromkeys(draft.notes)))


def _is_recorded_server(draft: Draft) -> bool:
    """Whether the tool is one of an MCP server that only gives recorded answers."""
    return "mcp" in draft.data and "load" not in draft.data


def _unknown(run: PastRun, spec: ToolSpec, draft: Draft) -> Iterator[str]:
    """What no record of a run says."""
    arguments = run.record.record["arguments"]
    reads = [arguments.get(each) or "." for each in spec.reads or ()]
    if _is_recorded_server(draft) or (spec.reads is not None and "." not in reads):
        return
    named = "the arguments name no files" if not arguments else "the tool may read files that its arguments do not name"
    yield f"{named}: `--files GLOB` adds files"


def _folder(run: PastRun, beside: str | None) -> str:
    """Where the file goes: beside the tool, if the tool is in the workspace, else into the current directory."""
    inside = os.path.join(os.path.realpath(run.workspace), "")
    if (
        beside is not None
        and os.path.join(os.path.realpath(beside), "").startswith(inside)
        and os.access(beside, os.W_OK)
    ):
        return beside
    return os.getcwd()


def _target(run: PastRun, to: str | None, folder: str) -> str:
    path = os.path.abspath(to or os.path.join(folder, f"{run.record.tool}.{run.record.id[2:15]}.scenario.yaml"))
    if not path.endswith(_ENDINGS):
        raise BadUsage(f"{path} cannot be a recording", hint=f"its name must end with {' or '.join(_ENDINGS)}")
    if os.path.lexists(path):
        raise BadUsage(f"{path} exists", hint="`--to FILE` names another file")
    if not os.path.isdir(os.path.dirname(path)):
        raise BadUsage(f"there is no folder {os.path.dirname(path)}", hint="make it first")
    return path


def _known_secrets(workspace: str, tools: WorkspaceTools) -> set[str]:
    """The values that haft knows to be secret: of the configuration, of this process's environment, and of the files of
    the workspace whose names say that they hold secrets."""
    return {*tools.secrets, *secret_values(os.environ), *_in_secret_files(workspace)}


def _in_secret_files(workspace: str) -> Iterator[str]:
    """The values in files such as `.env`."""
    for count, (at, folders, names) in enumerate(os.walk(workspace)):
        if count > _MOST_FOLDERS:
            return
        folders[:] = [each for each in folders if each not in _SKIPPED]
        for name in filter(is_secret_file, names):
            try:
                with open(os.path.join(at, name), encoding="utf-8", errors="replace") as file:
                    text = file.read(_MOST_READ)
            except OSError:
                continue
            finder = SecretFinder()
            finder.learn(text)
            yield from finder.secrets.values
            for line in text.splitlines():
                value = line.partition("=")[2].strip().strip("\"'")
                if len(value) >= SHORTEST and not line.lstrip().startswith("#"):
                    yield value


def _write(path: str, draft: Draft, run: PastRun, secrets: Secrets) -> None:
    """Write the scenario, if it has no secret and reads back as it was replayed."""
    comments = [
        f"Recorded from {run.record.id}, a call of {run.record.tool} at {when(run)}.",
        *dict.fromkeys(draft.notes),
    ]
    if path.endswith(".json"):
        text = json.dumps(draft.data, ensure_ascii=False, indent=2) + "\n"
    else:
        text = yaml_text(draft.data, comments)
    late = SecretFinder()
    late.learn(sorted({*texts_in(draft.data), *draft.data.get("files", ()), *draft.data["expect"].get("files", ())}))
    if (secrets | late.secrets).are_in(text.encode("utf-8", "surrogateescape")):
        raise BadUsage(
            f"{run.record.id} cannot be recorded, because a secret would be in the scenario",
            hint="the secret is part of a name, of a path or of a number; call the tool without it",
        )
    with open(path, "x", encoding="utf-8", newline="") as file:
        file.write(text)
    try:
        (read,) = read_scenario_file(path)
        wanted = scenario_of(draft, os.path.dirname(path), read.name)
        if _replayed_parts(read) != _replayed_parts(wanted):
            raise BadUsage(f"{path} does not read back as it was replayed; this is a mistake in haft")
    except BaseException:
        os.unlink(path)
        raise


def _replayed_parts(scenario: Scenario) -> tuple[Any, ...]:
    return scenario.args, scenario.files, scenario.git, scenario.uncommitted, scenario.expect
