"""Checks of a source that call no tool: what it lists, and what it says about paths."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Callable
from typing import Any, Final, get_args

from haft.contracts import NO_GRANTS, BadUsage, Hosting, Provenance, ToolSpec, is_tool_name
from haft.schema import validator_for
from haft.sources.checks import CODES
from haft.testing.conformance.process_watch import process_starts
from haft.testing.conformance.world import OpenedSource
from haft.testing.scenarios.snapshots import differences, snapshot

_OTHERS: Final = {"empty": b"", "notes.txt": b"Buy milk.\n", "data.bin": bytes(range(256)), "gone": None}
"""Files that are no tools; the last one does not exist."""
Problems = AsyncIterator[str]
ListingCheck = Callable[[OpenedSource], Problems]


async def starts_nothing(opened: OpenedSource) -> Problems:
    """`find` starts no process, whether the tools were described before or not."""
    with process_starts() as started:
        list(opened.source.find())
    await opened.refreshed()
    with process_starts() as started_later:
        list(opened.source.find())
    started += started_later
    for each in started:
        yield f"`find` started a process: {each}"


async def lists_the_tool(opened: OpenedSource) -> Problems:
    """`refresh` lists each tool once, with the object that runs it."""
    found = [each for each in await opened.refreshed() if each.spec.name == opened.case.tool]
    if not found:
        yield f"`refresh` lists no tool `{opened.case.tool}`"
    elif len(found) > 1:
        yield f"`refresh` lists `{opened.case.tool}` {len(found)} times"
    elif found[0].state != "ready":
        yield f"`{opened.case.tool}` is {found[0].state}: {found[0].reason}"
    elif found[0].tool is None:
        yield f"`{opened.case.tool}` is ready, but has no object that runs it"
    elif found[0].tool.spec != found[0].spec:
        yield f"the object that runs `{opened.case.tool}` has another spec than the list"


async def has_a_whole_spec(opened: OpenedSource) -> Problems:
    """A spec has a valid name, a description, a JSON Schema of an object, and says where the tool comes from."""
    spec = await opened.spec()
    for each in () if spec is None else _faults_of(spec):
        yield each


def _faults_of(spec: ToolSpec) -> list[str]:
    found = []
    if not is_tool_name(spec.name):
        found.append(f"`{spec.name}` is no valid name of a tool")
    if not spec.description.strip():
        found.append("the description is empty")
    if not spec.origin:
        found.append("`origin` is empty, so nobody can see where the tool comes from")
    if spec.provenance not in get_args(Provenance):
        found.append(f"`provenance` is {spec.provenance!r}, which is none of {', '.join(get_args(Provenance))}")
    if spec.hosting not in get_args(Hosting):
        found.append(f"`hosting` is {spec.hosting!r}, which is none of {', '.join(get_args(Hosting))}")
    found += [f"`files` has {each}, which is no absolute path" for each in spec.files if not os.path.isabs(each)]
    return [*found, *_schema_faults(spec)]


def _schema_faults(spec: ToolSpec) -> list[str]:
    schema = spec.input_schema
    if schema.get("type") != "object":
        return [f"the type of `input_schema` is {schema.get('type')!r}, and must be 'object'"]
    try:
        json.dumps([schema, dict(spec.meta)])
        validator_for(schema).is_valid({})
    except (TypeError, ValueError, BadUsage) as error:
        return [f"`input_schema` is no JSON Schema: {error}"]
    missing = [each for each in schema.get("required", ()) if each not in schema.get("properties", {})]
    return [f"`input_schema` requires `{each}`, and does not describe it" for each in missing]


async def remembers(opened: OpenedSource) -> Problems:
    """After `refresh`, `find` returns the same tools at once."""
    refreshed = {each.spec.name: each.spec for each in await opened.refreshed()}
    found = {each.spec.name: each.spec for each in opened.source.find()}
    for name in sorted(refreshed.keys() | found.keys()):
        if refreshed.get(name) != found.get(name):
            yield f"`{name}` differs between `refresh` and the following `find`"


async def stays_the_same(opened: OpenedSource) -> Problems:
    """A second `refresh` without any change returns the same specs, or None."""
    first = {each.spec.name: each.spec for each in await opened.refreshed()}
    again = await opened.source.refresh(opened.launcher, lambda _done, _all: None)
    second = first if again is None else {each.spec.name: each.spec for each in again}
    for name in sorted(first.keys() | second.keys()):
        if first.get(name) != second.get(name):
            yield f"`{name}` differs between two refreshes, although nothing changed"
    spec = next((each for name, each in first.items() if name == opened.case.tool), None)
    if spec is not None and not opened.source.is_current(spec):
        yield "`is_current` says that the tool changed, although nothing changed"


async def changes_nothing(opened: OpenedSource) -> Problems:
    """Listing and checking change no file of the workspace."""
    workspace = str(opened.world.workspace)
    before = snapshot(workspace)
    list(opened.source.find())
    await opened.refreshed()
    list(opened.source.places())
    if opened.case.path is not None:
        opened.source.recognizes(opened.world.path)
        for target in opened.source.targets(opened.world.path):
            await opened.source.check(target, opened.launcher, ())
    for path, what in differences(before, snapshot(workspace)).items():
        yield f"{path} was {what} by listing or checking"


async def names_absolute_places(opened: OpenedSource) -> Problems:
    """`places` returns absolute paths, also before anything was found."""
    for each in opened.source.places():
        if not os.path.isabs(each):
            yield f"`places` has {each!r}, which is no absolute path"


async def recognizes_its_own(opened: OpenedSource) -> Problems:
    """`recognizes` is true for a tool of this format, false for other files, and never an error."""
    if opened.case.path is None:
        return
    if not opened.source.recognizes(opened.world.path):
        yield f"`recognizes` is false for {opened.case.path}"
    for name, content in _OTHERS.items():
        path = opened.world.workspace / "other files" / name
        path.parent.mkdir(exist_ok=True)
        if content is not None:
            path.write_bytes(content)
        try:
            if opened.source.recognizes(str(path)) and not opened.takes_any_file:
                yield f"`recognizes` is true for a file that is no tool: {name}"
        except Exception as error:
            yield f"`recognizes` raised {error!r} for the file {name}"


async def loads_by_path(opened: OpenedSource) -> Problems:
    """`load` returns the tool at its path, with the description that the list has."""
    if opened.case.path is None or not opened.case.loads:
        return
    loaded = await opened.source.load(opened.world.path, opened.launcher, NO_GRANTS)
    spec = await opened.spec()
    if loaded is None or loaded.tool is None:
        yield f"`load` returns no tool for {opened.case.path}"
    elif spec is not None and (loaded.spec.description, loaded.spec.input_schema) != (
        spec.description,
        spec.input_schema,
    ):
        yield "`load` returns another description or schema than the list"


async def checks_its_own(opened: OpenedSource) -> Problems:
    """`check` finds no error in a working tool, and its findings have codes that are explained."""
    for report in await _reports(opened):
        if not report.ok:
            yield f"`check` finds an error in a working tool: {report.findings[0].message}"
        for finding in report.findings:
            if finding.explained is None and finding.code not in CODES:
                yield f"`check` has a finding with the code {finding.code}, which is explained nowhere"


async def _reports(opened: OpenedSource) -> list[Any]:
    if opened.case.path is None:
        return []
    targets = list(opened.source.targets(opened.world.path))
    return [report for target in targets for report in await opened.source.check(target, opened.launcher, ())]
