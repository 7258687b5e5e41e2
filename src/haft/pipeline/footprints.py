"""What a call reads and writes, from its arguments: see `Footprint`.

Batches are planned and locks are taken by footprints. A footprint is computed from the declarations of the tool, from
the words of a command line, and from what the sandbox lets the call write. haft trusts a declared read set; a call that
writes more than its footprint says is found when it commits.

Not covered: the `/tmp` of a thread, unless a command line names it, and hard links.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any, Final

from haft.contracts import (
    NO_GRANTS,
    NOTHING,
    UNKNOWN,
    CallError,
    Decision,
    Footprint,
    Grants,
    Paths,
    Tool,
    ToolSpec,
    Workspace,
)
from haft.pipeline import nesting
from haft.pipeline.run import Run
from haft.policy import links_on_way

READS_ANYTHING: Final = Footprint(None, ())
_SCRATCH: Final = ("/tmp", "TMPDIR")  # noqa: S108  only looked for in command lines
_SESSION_KINDS: Final = {"python": "python-plugin"}


class Footprints:
    """Computes the footprints of a host's calls."""

    def __init__(
        self,
        workspace: Workspace,
        is_confined: Callable[[], Awaitable[bool]],
        published_links: Callable[[], Collection[str]] = tuple,
    ) -> None:
        """`is_confined` returns whether the sandbox of this machine keeps processes from writing files.
        `published_links` returns the paths at which committed changes, which are not in the workspace's own files yet,
        have made or removed a link."""
        self._workspace = workspace
        self._is_confined = is_confined
        self._published_links = published_links

    async def of(
        self,
        tool: Tool,
        arguments: Mapping[str, Any],
        *,
        cwd: str = ".",
        env: Mapping[str, str] | None = None,
        grants: Grants = NO_GRANTS,
        decision: Decision | None = None,
        workspace: Workspace | None = None,
        is_nested: bool = False,
    ) -> Footprint:
        """The footprint of a call. The arguments must be valid. Before a call is decided, `decision` is None. If other
        files than those of the host's workspace are visible to the call, `workspace` accesses them. With `is_nested`,
        the words of a command line are not used, because a caller of the call may have made links which are not in the
        host's workspace. Never raises."""
        if (known := constant_footprint(tool.spec)) is not None:
            return known
        seen = self._workspace if workspace is None else workspace
        found = await self._of_arguments(tool, arguments, cwd, env or {}, grants, decision, seen, is_nested=is_nested)
        if found.reads == () or not (links := self._published_links()):
            return found
        # Links are followed in the workspace's own files: what lies behind these links is not known yet.
        if any(_leads_through(path, links) for path in (*(found.reads or ()), *(found.writes or ()))):
            return Footprint(None, None if found.writes else (), found.resources)
        return found

    async def _of_arguments(
        self,
        tool: Tool,
        arguments: Mapping[str, Any],
        cwd: str,
        env: Mapping[str, str],
        grants: Grants,
        decision: Decision | None,
        seen: Workspace,
        *,
        is_nested: bool,
    ) -> Footprint:
        spec = tool.spec
        resources = _resources(spec)
        if spec.hosting in ("session", "remote"):
            if await self._cannot_write(spec, grants):
                return Footprint((), (), resources)
            return Footprint(None, None, resources)
        if spec.commands:
            return await self._of_line(spec, arguments, cwd, env, decision, is_nested=is_nested)
        base = cwd if spec.kind == "python" and spec.hosting == "per-call" else "."
        links: dict[str, None] = {}
        reads = _paths(spec, spec.reads, arguments, seen, base, links)
        writes = () if _only_reads(spec, decision) else _paths(spec, spec.writes, arguments, seen, base, links)
        writes = self._with_directories(writes)
        besides: Any = getattr(tool, "reads_besides", None)
        if reads is not None and writes is not None:
            more = () if besides is None else besides(reads)
            reads = (*dict.fromkeys((*reads, *links, *writes, *more)),)
        return Footprint(reads, writes, resources)

    async def of_run(self, run: Run) -> Footprint:
        """The footprint of a call in the pipeline."""
        call = run.call
        caller = nesting.caller_with_layer(run)
        return await self.of(
            run.tool,
            call.arguments,
            cwd=call.cwd,
            env=call.env,
            grants=call.grants,
            decision=call.decision,
            workspace=None if caller is None else caller.workspace,
            is_nested=caller is not None,
        )

    async def _of_line(
        self,
        spec: ToolSpec,
        arguments: Mapping[str, Any],
        cwd: str,
        env: Mapping[str, str],
        decision: Decision | None,
        *,
        is_nested: bool,
    ) -> Footprint:
        """The footprint of a call of a tool that runs command lines."""
        from haft.policy import AnalysisContext, footprint_of_line

        lines = [arguments.get(name) for name in spec.commands]
        given = arguments.get("env")
        env = {**env, **given} if isinstance(given, Mapping) else env
        found = UNKNOWN
        if spec.kind == "builtin" and len(lines) == 1 and isinstance(lines[0], str) and not is_nested:
            context = AnalysisContext(
                self._workspace.root, str(arguments.get("cwd", cwd)), confined=await self._is_confined()
            )
            found = footprint_of_line(lines[0], context, env, is_decided=decision is not None)
        # A read-only sandbox still lets the call write the `/tmp` of its thread.
        names_scratch = any(word in str(line) for line in lines for word in _SCRATCH)
        if found.writes is None and _only_reads(spec, decision) and not names_scratch:
            return READS_ANYTHING
        writes = self._with_directories(found.writes)
        reads = None if found.reads is None else (*dict.fromkeys((*found.reads, *(writes or ()))),)
        return Footprint(reads, writes)

    def _with_directories(self, writes: Paths) -> Paths:
        """Written paths, each replaced by the first directory above it that is missing: the call makes this directory,
        or needs an earlier call that does."""
        return writes and (*dict.fromkeys(map(self._first_missing, writes)),)

    def _first_missing(self, path: str) -> str:
        above = os.path.dirname(path)
        while above and not os.path.lexists(os.path.join(self._workspace.root, above)):
            path, above = above, os.path.dirname(above)
        return path

    async def _cannot_write(self, spec: ToolSpec, grants: Grants) -> bool:
        if spec.hosting == "remote" or spec.effects.readonly:
            return True
        return not spec.grants.write and not grants.write and await self._is_confined()


def constant_footprint(spec: ToolSpec) -> Footprint | None:
    """The footprint that all calls of a tool have; None if it depends on the call."""
    if spec.reads is None and spec.resource is None and spec.effects.readonly and not spec.commands:
        return NOTHING if spec.hosting == "remote" else READS_ANYTHING
    return None


def _only_reads(spec: ToolSpec, decision: Decision | None) -> bool:
    """Whether a call cannot write the workspace: its tool declares so, or the sandbox prevents it."""
    if spec.effects.readonly:
        return True
    return spec.hosting == "per-call" and decision is not None and decision.profile == "read-only"


def _resources(spec: ToolSpec) -> tuple[str, ...]:
    """The names of what a call uses that is no file. Calls of one session or server share a name, unless haft trusts
    that they only read."""
    declared = () if spec.resource is None else (spec.resource,)
    if spec.hosting not in ("session", "remote") or spec.effects.readonly:
        return declared
    server = spec.meta.get("mcp")
    plugin = spec.meta.get("plugin")
    name = spec.origin
    if server is not None:
        name = str(server["server"])
    elif plugin is not None:
        name = str(plugin["reference"])
    return (*declared, f"{_SESSION_KINDS.get(spec.kind, spec.kind)}:{name}")


def _paths(
    spec: ToolSpec,
    names: tuple[str, ...] | None,
    arguments: Mapping[str, Any],
    workspace: Workspace,
    base: str,
    links: dict[str, None],
) -> Paths:
    """The real paths that the parameters `names` name; None if they are not known. Adds the links on the way to
    `links`."""
    top = f"{workspace.root.rstrip('/')}/"
    if names is None:
        return None
    found: dict[str, None] = {}
    for name in names:
        value = arguments.get(name, spec.input_schema.get("properties", {}).get(name, {}).get("default"))
        for path in value if isinstance(value, list | tuple) else (value,):
            if path is None and (name in arguments or _has_default(spec, name)):
                continue  # The tool is told that there is no path.
            if not isinstance(path, str):
                return None
            try:
                path = path if base == "." or path.startswith("/") else f"{base}/{path}"
                found[workspace.locate(path)] = None
                on_way = links_on_way(os.path.join(top, path))
                links.update(dict.fromkeys(each.removeprefix(top) for each in on_way if each.startswith(top)))
            except (CallError, OSError, ValueError):
                return None
    return tuple(found)


def _has_default(spec: ToolSpec, name: str) -> bool:
    return "default" in spec.input_schema.get("properties", {}).get(name, {})


def _leads_through(path: str, links: Collection[str]) -> bool:
    """Whether one of these links is the path itself or lies above it, or below it."""
    return any(
        path == link or path == "." or path.startswith(f"{link}/") or link.startswith(f"{path}/") for link in links
    )
