"""Describes one toolbox executable and returns its cache entry."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
from typing import Final

from haft.contracts import DescribeLauncher, Grants, names_read, withheld
from haft.sources.amp_toolbox.describe_action import run_describe
from haft.sources.amp_toolbox.description import Unreadable, read_description
from haft.sources.amp_toolbox.discover import Candidate
from haft.sources.amp_toolbox.interpreters import missing_interpreter
from haft.sources.amp_toolbox.separator import detect_separator
from haft.sources.amp_toolbox.tool import file_name
from haft.sources.brief_run import DESCRIBE_SECONDS, ProgramOutput, stderr_summary
from haft.sources.description_cache import FAIR_SECONDS, CacheEntry

LARGEST_SCRIPT: Final = 64_000
_FETCHES: Final = re.compile(r"#!.*?\b(uv run|uvx|pipx run|npx|pnpx|bunx|bun|deno)\b")
"""The first line of a script whose runner may fetch packages before it starts the script."""


async def describe(candidate: Candidate, launcher: DescribeLauncher, seconds: float) -> CacheEntry:
    """Describe one file. If that fails, the cache entry has a `problem`."""
    place = candidate.place
    output = await run_describe(
        candidate.path,
        launcher,
        seconds=seconds,
        folder=place.folder,
        from_workspace=place.provenance == "workspace",
    )
    known: CacheEntry = {"identity": candidate.identity}
    try:
        try:
            known |= read(output, candidate.path, seconds)
        except Unreadable:
            raise
        except Exception as error:  # A bad description must break only this tool.
            raise Unreadable(f"its description cannot be understood: {type(error).__name__}", "simplify it") from error
    except Unreadable as error:
        known["problem"] = f"{error.message}; {error.cure}"
        if output.stderr.strip():
            known["problem"] += f"; stderr: {stderr_summary(output.stderr)}"
        given, from_workspace = launcher.granted, place.provenance == "workspace"
        fetching = None if given.network else fetching_hint(candidate.path, from_workspace=from_workspace)
        known["problem"] += _withheld(candidate, given) + (f"; {fetching}" if fetching else "")
        known["needs"] = missing_interpreter(candidate.path)
        known["passing"] = output.is_machine_fault or (output.timed_out and seconds < FAIR_SECONDS)
    return known


def _withheld(candidate: Candidate, given: Grants) -> str:
    """A hint with the command that passes on the variables which the tool's script reads and haft withholds; empty if
    there are no such variables."""
    names = withheld(names_read(script(candidate.path)), os.environ, given.env)
    if not names:
        return ""
    options = " ".join(f"--env {name}" for name in names)
    # A rule applies to a tool of the workspace only after a person has called the tool.
    if candidate.place.provenance == "workspace":
        how = f"haft tools use {shlex.quote(candidate.path)} {options}"
    else:
        how = f"haft permissions add allow {file_name(candidate.path)} {options}"
    return f"; it reads {' and '.join(names)}, which haft withheld from it: to pass it on, `{how}`"


def fetching_hint(path: str, *, from_workspace: bool) -> str | None:
    """A hint with the command that gives a tool the network, if the tool's script is run by a program that may fetch
    packages, such as npx; otherwise None."""
    found = _FETCHES.match(script(path))
    if found is None:
        return None
    how = f"`haft permissions add allow {file_name(path)} --network`"
    if from_workspace:
        # A rule applies to a tool of the workspace only after a person has called the tool.
        how = f"`haft tools use {shlex.quote(path)} --network` once, then {how}"
    return f"`{found[1]}` may have to fetch packages first, and had no network: to give it the network, {how}"


def read(output: ProgramOutput, path: str, seconds: float = DESCRIBE_SECONDS) -> CacheEntry:
    """The cache entry of a description. Raises `Unreadable` if the program failed or printed no description."""
    again = f"`haft tools check {path}` describes it again"
    missing = missing_interpreter(path) if output.start_failure is not None or output.exit_code == 127 else None
    if missing is not None:
        raise Unreadable(f"it is run by `{missing}`, which is not on this machine", f"install `{missing}`")
    if output.start_failure is not None:
        raise Unreadable(f"it could not be described: {output.start_failure}", again)
    if output.is_too_long:
        raise Unreadable("it printed too much on TOOLBOX_ACTION=describe", "describe it in a few lines")
    if output.timed_out:
        raise Unreadable(f"it did not describe itself within {min(seconds, DESCRIBE_SECONDS):.2g} s", again)
    if output.exit_code != 0:
        raise Unreadable(
            f"it exited {output.exit_code} on TOOLBOX_ACTION=describe", "exit 0 on TOOLBOX_ACTION=describe"
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
        detected = detect_separator(script(path))
        known |= {"separator": detected.separator, "assigns": detected.assigns}
    return known


def script(path: str) -> str:
    """The text of a script; empty for a compiled program or a very long file."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            data = file.read(LARGEST_SCRIPT + 1)
    except OSError:
        return ""
    return "" if b"\0" in data or len(data) > LARGEST_SCRIPT else data.decode("utf-8", "replace")
