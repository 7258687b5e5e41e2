"""The table of tools: which tool has which name, which tools are ready, and why others are not.

A name always means the same tool: if a new tool has a name that is taken, the new tool is renamed, never the existing
one. So rules about a name stay valid. The schema of a tool is compiled when the tool is first called, not when tools
are listed; so a tool that was listed as ready may turn out to be broken. Changes wake watchers; a slow watcher misses
intermediate states, but never the last one.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from typing import Any

from haft.contracts import (
    BadConfig,
    DiscoveredTool,
    Listing,
    RenamedTool,
    Tool,
    ToolName,
    ToolSpec,
    UnknownTool,
    clean_tool_name,
    is_tool_name,
)
from haft.schema import shortened, validator_for
from haft.values import dataclass, replace


@dataclass(slots=True)
class _Entry:
    """One row of the table. `tool` is None if there is nothing to call."""

    listing: Listing
    tool: Tool | None
    checked: bool = False
    """Whether `get` may return the tool without further checks: its input schema is compiled, and every thread may call
    it."""


class Catalogue:
    """All tools of one host. `why_off` returns the reason why a tool is switched off, or None. A tool that is switched
    off is listed as disabled, and policy rejects its calls. `why_inactive` returns the reason why a skill's tool is not
    active in a thread."""

    def __init__(
        self,
        why_off: Callable[[ToolSpec], str | None] = lambda _spec: None,
        why_inactive: Callable[[ToolSpec, str | None], str | None] = lambda _spec, _thread: None,
    ) -> None:
        self._why_off = why_off
        self._why_inactive = why_inactive
        self._found: dict[str, list[DiscoveredTool]] = {}
        self._named: dict[str, _Entry] = {}
        self._duplicates: list[_Entry] = []
        self._watchers: set[Callable[[], None]] = set()
        self._version = 0

    @property
    def version(self) -> int:
        """A number that grows with every change."""
        return self._version

    def add(self, tool: Tool) -> Listing:
        """Add a tool. The returned listing says which name it got, and whether it can be called."""
        entry = self._add(tool, "")
        self._changed()
        return entry.listing

    def _add(self, tool: Tool, source: str) -> _Entry:
        spec = tool.spec
        _require_name(spec)
        free = self._free_name(spec)
        if free is None:
            entry = _Entry(Listing(spec, "duplicate", self._conflict(spec, free), source), None)
            self._duplicates.append(entry)
        else:
            reason = None
            if free != spec.name:
                reason = self._conflict(spec, free)
                spec = replace(spec, name=free)
                tool = RenamedTool(spec, tool)
            problem = _schema_problem(spec)
            if problem is None:
                entry = _Entry(Listing(spec, "ready", reason, source), tool)
            else:
                entry = _Entry(Listing(replace(spec, input_schema={}), "broken", problem, source), None)
            self._named[free] = entry
        return entry

    def replace_source(self, source: str, found: Iterable[DiscoveredTool]) -> bool:
        """Replace all tools of a source by `found`; return whether anything changed. A tool that cannot be called is
        listed, but its name stays free for others."""
        found = list(found)
        if found == self._found.get(source, []):
            return False
        given: list[Any] = found  # A source from outside may not have been type-checked.
        if wrong := [one for one in given if not isinstance(one, DiscoveredTool) or not isinstance(one.spec.name, str)]:
            raise TypeError(f"{shortened(repr(wrong[0]), 80)} is not a `DiscoveredTool` with a name")
        self._found[source] = found
        self._named = {name: entry for name, entry in self._named.items() if entry.listing.source != source}
        self._duplicates = [entry for entry in self._duplicates if entry.listing.source != source]
        for one in found:
            if one.tool is None or one.state != "ready":
                self._duplicates.append(_Entry(Listing(one.spec, one.state, one.reason, source), one.tool))
                continue
            try:
                self._add(one.tool, source)
            except BadConfig as error:  # The name of this tool is not valid. The others are still added.
                self._duplicates.append(_Entry(Listing(one.spec, "broken", error.message, source), None))
        self._changed()
        return True

    def report_broken(self, spec: ToolSpec, reason: str) -> Listing:
        """List a tool that cannot be loaded, with the reason. If its name is free, the broken tool takes the name, and
        no other tool can get it."""
        _require_name(spec)
        entry = _Entry(Listing(spec, "broken", reason), None)
        if spec.name in self._named:
            self._duplicates.append(entry)
        else:
            self._named[spec.name] = entry
        self._changed()
        return entry.listing

    def remove(self, name: str) -> None:
        """Remove the tool with this name. Raises `BadConfig` for a built-in tool: its name always means the built-in
        tool."""
        entry = self._named.get(name)
        if entry is not None:
            if entry.listing.spec.provenance == "builtin":
                raise BadConfig(f"`{name}` is built in and cannot be removed")
            del self._named[name]
        else:
            left = [other for other in self._duplicates if other.listing.spec.name != name]
            if len(left) == len(self._duplicates):
                raise UnknownTool(shortened(name, 80), self._named)
            self._duplicates = left
        self._changed()

    def forget(self, origin: str) -> None:
        """Remove the tools whose spec names this origin, such as a file. Only tools of the user and of the workspace
        that were added one by one are removed; tools that `replace_source` added stay."""
        for entry in list(self._named.values()):
            spec = entry.listing.spec
            if spec.origin == origin and not entry.listing.source and spec.provenance in ("user", "workspace"):
                del self._named[spec.name]
        self._duplicates = [one for one in self._duplicates if one.listing.source or one.listing.spec.origin != origin]

    def get(self, name: str, thread: str | None = None) -> Tool:
        """The tool to call. Raises `UnknownTool`, or `BadConfig` if the tool exists but cannot be called."""
        entry = self._named.get(name)
        if entry is not None and entry.checked and entry.tool is not None:
            return entry.tool
        return self._examine(name, entry, thread)

    def peek(self, name: str) -> Tool | None:
        """The tool with this name; None if no tool has this name, or if the tool cannot be called."""
        entry = self._named.get(name)
        return None if entry is None else entry.tool

    def listing(self, name: str) -> Listing | None:
        """The listing of the tool with this name; None if no tool has this name, or if the tool cannot be called."""
        entry = self._named.get(name)
        return None if entry is None or entry.tool is None else entry.listing

    def listings(self, *, all: bool = False, thread: str | None = None) -> list[Listing]:  # noqa: A002 - as `--all`
        """The tools that can be called, sorted by name: in this thread, or in any if `thread` is None. With `all`, also
        the tools that cannot be called."""
        shown = [self._shown(entry.listing, thread) for entry in self._entries()]
        found = [listing for listing in shown if all or listing.enabled]
        return sorted(found, key=lambda listing: (listing.spec.name, listing.state != "ready", listing.spec.origin))

    def _shown(self, listing: Listing, thread: str | None) -> Listing:
        """The listing, marked as disabled or inactive if the tool is. The listing of a broken tool stays as it is."""
        if listing.state != "ready":
            return listing
        if (reason := self._why_off(listing.spec)) is not None:
            return replace(listing, state="disabled", reason=reason)
        if (reason := self._why_inactive(listing.spec, thread)) is not None:
            return replace(listing, state="inactive", reason=reason)
        return listing

    async def watch(
        self,
        *,
        all: bool = False,  # noqa: A002 - as in `listings`
        thread: str | None = None,
    ) -> AsyncIterator[list[Listing]]:
        """Yield the listings now, and again after every change. If several changes happen before the watcher asks for
        the next listings, the watcher gets only the listings after the last of these changes."""
        import asyncio

        loop = asyncio.get_running_loop()
        news = asyncio.Event()

        def wake() -> None:
            # A tool may be added from any thread, and the watcher's loop may have been closed.
            try:
                loop.call_soon_threadsafe(news.set)
            except RuntimeError:
                self._watchers.discard(wake)

        self._watchers.add(wake)
        try:
            while True:
                news.clear()
                yield self.listings(all=all, thread=thread)
                await news.wait()
        finally:
            self._watchers.discard(wake)

    def _entries(self) -> Iterator[_Entry]:
        yield from list(self._named.values())
        yield from list(self._duplicates)

    def _examine(self, name: str, entry: _Entry | None, thread: str | None) -> Tool:
        """The slow path of `get`: compile the schema and return the tool, or raise the reason why it cannot be
        called."""
        if entry is None:
            entry = next((other for other in self._duplicates if other.listing.spec.name == name), None)
        if entry is None:
            entry = self._server_entry(name)
        if entry is None:
            raise unknown_tool(name, [each.listing for each in self._entries()])
        if entry.tool is not None:
            spec = entry.listing.spec
            if (inactive := self._why_inactive(spec, thread)) is not None:
                raise BadConfig(f"`{name}` cannot be called in this thread, because it is inactive: {inactive}")
            try:
                validator_for(spec.input_schema)
                entry.checked = "skill" not in spec.meta
                return entry.tool
            except BadConfig as error:
                entry.tool = None
                entry.listing = replace(entry.listing, state="broken", reason=error.message)
                self._changed()
        origin = "" if entry.listing.spec.kind == "mcp" else entry.listing.spec.origin  # The reason names the server.
        raise BadConfig(
            f"`{name}` cannot be called, {entry.listing.why_not}", hint=f"it comes from {origin}" if origin else None
        )

    def _server_entry(self, name: str) -> _Entry | None:
        """The entry of the MCP server that a tool of this name would belong to, if the server is listed because its
        tools are not known; else None."""
        for entry in self._duplicates:
            spec = entry.listing.spec
            if spec.kind == "mcp" and "tool" not in spec.meta.get("mcp", {}) and name.startswith(f"{spec.name}__"):
                return entry
        return None

    def _free_name(self, spec: ToolSpec) -> ToolName | None:
        prefixed = f"{spec.kind}__{spec.name}"
        for name in (spec.name, prefixed):
            if name not in self._named and is_tool_name(name):
                return ToolName(name)
        return None

    def _conflict(self, spec: ToolSpec, given: ToolName | None) -> str:
        holder = self._named[spec.name].listing.spec
        sentence = f"`{spec.name}` is already the {holder.kind} tool from {holder.origin or 'elsewhere'}"
        if given is not None:
            return f"{sentence}; this one is called `{given}`"
        return f"{sentence}, and `{spec.kind}__{spec.name}` is not free either"

    def _changed(self) -> None:
        self._version += 1
        for wake in list(self._watchers):
            wake()


def unknown_tool(name: str, listings: Iterable[Listing]) -> UnknownTool:
    """The error for an unknown tool. It suggests a similar name, or names the broken tools and plugins that may be the
    reason."""
    listings = list(listings)
    off = [one for one in listings if one.state in ("broken", "needs-config")]
    return UnknownTool(
        shortened(name, 80),
        (one.spec.name for one in listings if one.enabled),
        {one.spec.name: f"{one.state}: {one.reason}" for one in off},
        [one.spec.name for one in off if "plugin" in one.spec.meta],
    )


def _require_name(spec: ToolSpec) -> None:
    if not is_tool_name(spec.name):
        raise BadConfig(
            f"{spec.name!r} cannot be the name of a tool: a name has 1 to 64 letters, digits, `_` and `-`",
            hint=f"use `{clean_tool_name(spec.name)}`",
        )


def _schema_problem(spec: ToolSpec) -> str | None:
    """An obvious mistake in the input schema, or None. The schema is compiled later, when the tool is first called."""
    schema: Any = spec.input_schema
    if not isinstance(schema, Mapping):
        return f"its input schema must be an object, not a Python `{type(schema).__name__}`"
    if schema.get("type", "object") != "object":
        return f"its input schema must have the type `object`, not {schema['type']!r}"
    return None
