"""From a file to what it says of itself, in the form in which that is kept."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
from typing import Final

from haft.contracts import AskingLauncher, Grants, names_read, withheld
from haft.sources.amp_toolbox.describe_action import run_describe
from haft.sources.amp_toolbox.description import Unreadable, read_description
from haft.sources.amp_toolbox.discover import Candidate
from haft.sources.amp_toolbox.interpreters import missing_interpreter
from haft.sources.amp_toolbox.separator import shown_by
from haft.sources.amp_toolbox.tool import file_name
from haft.sources.brief_run import DESCRIBE_SECONDS, ProgramOutput, stderr_summary
from haft.sources.description_cache import FAIR_SECONDS, CacheEntry

LARGEST_SCRIPT: Final = 64_000
_FETCHES: Final = re.compile(r"#!.*?\b(uv run|uvx|pipx run|npx|pnpx|bunx|bun|deno)\b")
"""The first line of a script that is run by a program which fetches what the script needs."""


async def describe(candidate: Candidate, launcher: AskingLauncher, seconds: float) -> CacheEntry:
    """What one file says."""
    place = candidate.place
    output = await run_describe(
        candidate.path,
        launcher,
        seconds=seconds,
        folder=place.folder,
        is_workspaces=place.provenance == "workspace",
    )
    known: CacheEntry = {"identity": candidate.identity}
    try:
        try:
            known |= read(output, candidate.path, seconds)
        except Unreadable:
            raise
        except Exception as error:  # Whatever it says, it is this tool's fault alone.
            raise Unreadable(f"its description cannot be understood: {type(error).__name__}", "simplify it") from error
    except Unreadable as error:
        known["problem"] = f"{error.message}; {error.cure}"
        if output.stderr.strip():
            known["problem"] += f"; stderr: {stderr_summary(output.stderr)}"
        given, is_workspaces = launcher.granted, place.provenance == "workspace"
        fetching = None if given.network else fetching_hint(candidate.path, is_workspaces=is_workspaces)
        known["problem"] += _withheld(candidate, given) + (f"; {fetching}" if fetching else "")
        known["needs"] = missing_interpreter(candidate.path)
        known["passing"] = output.is_machine_fault or (output.timed_out and seconds < FAIR_SECONDS)
    return known


def _withheld(candidate: Candidate, given: Grants) -> str:
    """What to type where it may have failed for want of a variable."""
    names = withheld(names_read(script(candidate.path)), os.environ, given.env)
    if not names:
        return ""
    options = " ".join(f"--env {name}" for name in names)
    # A rule does not reach what a workspace brings before somebody has called it.
    if candidate.place.provenance == "workspace":
        how = f"haft tools use {shlex.quote(candidate.path)} {options}"
    else:
        how = f"haft permissions add allow {file_name(candidate.path)} {options}"
    return f"; it names {' and '.join(names)}, set here and withheld from it: to pass it on, `{how}`"


def fetching_hint(path: str, *, is_workspaces: bool) -> str | None:
    """What to type where a tool may have failed because the program that runs it fetches packages."""
    found = _FETCHES.match(script(path))
    if found is None:
        return None
    how = f"`haft permissions add allow {file_name(path)} --network`"
    if is_workspaces:
        # A rule does not reach what a workspace brings before somebody has called it.
        how = f"`haft tools use {shlex.quote(path)} --network` once, then {how}"
    return f"`{found[1]}` may have to fetch packages first, and has no network then: to give it, {how}"


def read(output: ProgramOutput, path: str, seconds: float = DESCRIBE_SECONDS) -> CacheEntry:
    """What was said, in the form in which it is kept. `Unreadable` where it makes no sense."""
    again = f"`haft tools check {path}` asks it again"
    missing = missing_interpreter(path) if output.start_failure is not None or output.exit_code == 127 else None
    if missing is not None:
        raise Unreadable(f"it is run by `{missing}`, which is not on this machine", f"install `{missing}`")
    if output.start_failure is not None:
        raise Unreadable(f"it could not be asked what it is: {output.start_failure}", again)
    if output.is_too_long:
        raise Unreadable("it said more than anyone reads when asked to describe itself", "describe it in a few lines")
    if output.timed_out:
        raise Unreadable(f"it did not describe itself within {min(seconds, DESCRIBE_SECONDS):.2g} s", again)
    if output.exit_code != 0:
        raise Unreadable(
            f"it exited {output.exit_code} when asked to describe itself", "exit 0 for TOOLBOX_ACTION=describe"
        )
    described = read_description(output.stdout)
    definition = {
        "name": described.name,
        "description": described.description,
        "inputSchema": dict(described.input_schema),
        "form": described.form,
        "meta": dict(described.meta),
    }
    digest = hashlib.sha256(json.dumps(definition, sort_keys=True).encode()).hexdigest()
    known: CacheEntry = {**definition, "digest": digest}
    if described.form == "text":
        shown = shown_by(script(path))
        known |= {"separator": shown.separator, "assigns": shown.assigns}
    return known


def script(path: str) -> str:
    """The text of a script; nothing where it is a program, or very long."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            data = file.read(LARGEST_SCRIPT + 1)
    except OSError:
        return ""
    return "" if b"\0" in data or len(data) > LARGEST_SCRIPT else data.decode("utf-8", "replace")
