"""Finds the tools of installed packages, by the entry point group `haft.tools`.

`service` calls this module when it builds the catalogue. A person who installs a package trusts its code, so the
package is imported into this process. An entry names a tool, a function, or a list of these. A failing entry is listed
as broken and does not affect the others.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import metadata
from typing import Any, Final

from haft.contracts import BadConfig, HaftError, ToolSpec, clean_tool_name
from haft.sources.python.failures import sentence_of
from haft.sources.python.invoke import PythonTool

GROUP: Final = "haft.tools"


@dataclass(frozen=True, slots=True)
class Broken:
    """An entry that gives no tool, with the spec by which the catalogue lists it, and the reason."""

    spec: ToolSpec
    reason: str


def installed_tools() -> tuple[list[PythonTool[..., Any]], list[Broken]]:
    """Every tool of every installed package, and the entries that failed. Imports the packages' modules."""
    tools: list[PythonTool[..., Any]] = []
    broken: list[Broken] = []
    for entry in sorted(metadata.entry_points(group=GROUP), key=lambda entry: (_package(entry), entry.name)):
        origin = f"{_package(entry)}: {entry.name} = {entry.value}"
        try:
            offered = list(_offered(entry.load()))
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # importing runs foreign code, and that may even exit
            broken.append(_broken(entry.name, origin, error))
            continue
        for number, candidate in enumerate(offered, start=1):
            try:
                found = _as_tool(candidate).with_provenance("installed", origin)
                # Build the spec now, so that a bad signature is reported for this entry.
                _ = found.spec
            except (Exception, SystemExit) as error:
                broken.append(_broken(_label(entry.name, candidate, number, len(offered)), origin, error))
            else:
                tools.append(found)
    return tools, broken


def _offered(loaded: object) -> Iterator[object]:
    if isinstance(loaded, PythonTool) or callable(loaded):
        yield loaded
    elif isinstance(loaded, Iterable) and not isinstance(loaded, str | bytes):
        yield from loaded
    else:
        raise BadConfig(f"the entry is a `{type(loaded).__name__}`, not a tool, a function or a list of them")


def _as_tool(candidate: object) -> PythonTool[..., Any]:
    if isinstance(candidate, PythonTool):
        return candidate
    if callable(candidate) and not inspect.isclass(candidate):
        return PythonTool(candidate)
    raise BadConfig(f"the entry offers a `{type(candidate).__name__}`, not a tool or a function")


def _label(entry: str, candidate: object, number: int, count: int) -> str:
    name = getattr(candidate, "__name__", None)
    if count == 1 or not isinstance(name, str):
        return entry if count == 1 else f"{entry}-{number}"
    return name


def _package(entry: metadata.EntryPoint) -> str:
    return entry.dist.name if entry.dist is not None else "?"


def _broken(name: str, origin: str, error: BaseException) -> Broken:
    reason = error.message if isinstance(error, HaftError) else sentence_of(error)
    spec = ToolSpec(clean_tool_name(name), "python", "", {"type": "object"}, provenance="installed", origin=origin)
    return Broken(spec, reason)
