"""The tools that MCP clients see: which of haft's tools, under which names, and their definitions as MCP writes them.
`service/offered_names.py` makes the names."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

from haft.contracts import Listing, Rights, ToolSpec
from haft.service import mcp_definition, offered_name
from haft.surfaces.mcp.results import outcome_schema

if TYPE_CHECKING:
    from haft.service import ToolService

ONLY_TOOLS: Final[ContextVar[tuple[str, ...]]] = ContextVar("ONLY_TOOLS", default=())
"""Patterns for the names of the tools that the client of this request may call; () for all. What serves HTTP sets it,
because the token of a client says so."""


def definition(spec: ToolSpec, name: str) -> dict[str, Any]:
    """The definition of a tool as MCP writes it."""
    form = mcp_definition(spec, name)
    if spec.output_schema is not None:
        form["outputSchema"] = outcome_schema(spec.output_schema)
    if name != spec.name:
        form["_meta"] = {"dev.haft/name": spec.name}
    return form


class OfferedTools:
    """The tools of a service as one server offers them."""

    def __init__(
        self, service: ToolService, *, globs: tuple[str, ...] = (), read_only: bool = False, taken: Iterable[str] = ()
    ) -> None:
        self._service = service
        self._globs = globs
        self._read_only = read_only
        self._taken = frozenset(taken)
        self._definitions: dict[tuple[str, str], tuple[ToolSpec, dict[str, Any]]] = {}
        self._long_names: tuple[int, dict[str, str]] = (-1, {})

    def listings(self, thread: str | None) -> list[Listing]:
        """The tools that a client may call in this thread."""
        return [listing for listing in self._service.tools(thread=thread) if self.offers(listing.spec)]

    def offers(self, spec: ToolSpec) -> bool:
        """Whether the options of this server, and the token of the client, let it call the tool."""
        return self._fits(spec.name) and (spec.effects.readonly or spec.delegates or not self._read_only)

    @property
    def rights(self) -> Rights | None:
        """What sub-agents that clients start may do at most: what the clients themselves may."""
        is_bounded = bool(self._globs or ONLY_TOOLS.get())
        if not is_bounded and not self._read_only:
            return None
        names = (listing.spec.name for listing in self._service.tools(all=True) if self._fits(listing.spec.name))
        return Rights(
            "a sub-agent of a client of this MCP server",
            frozenset(names) if is_bounded else None,
            readonly=self._read_only,
            binds_subagents_only=True,
        )

    def _fits(self, name: str) -> bool:
        bounds = (self._globs, ONLY_TOOLS.get())
        return all(not globs or any(fnmatch.fnmatchcase(name, glob) for glob in globs) for globs in bounds)

    def definitions(self, thread: str | None) -> list[dict[str, Any]]:
        """The definitions of all tools, as `tools/list` returns them."""
        return [self.definition(listing.spec) for listing in self.listings(thread)]

    def definition(self, spec: ToolSpec) -> dict[str, Any]:
        """The definition of one tool."""
        known = self._definitions.get((spec.name, spec.digest))
        if known is None or known[0] is not spec:
            known = (spec, definition(spec, self.shown_name(spec.name)))
            self._definitions[spec.name, spec.digest] = known
        return known[1]

    def shown_name(self, name: str) -> str:
        """The name under which clients see the tool with this name of haft's."""
        return offered_name(name, self._taken)

    def known_name(self, shown: str) -> str:
        """haft's name for a name that clients see, also if this server does not offer the tool."""
        return self._names().get(shown, shown)

    def real_name(self, name: str) -> str | None:
        """haft's name for an offered name; None if this server offers no such tool. A name that the catalogue does not
        have yet is returned as it is: calling it may discover its tool."""
        listing = None if name in self._taken else self._service.catalogue.listing(name)
        if listing is None:
            name = self.known_name(name)
            listing = self._service.catalogue.listing(name)
        if listing is None:
            return name if self._fits(name) and not self._read_only else None
        return name if self.offers(listing.spec) else None

    def _names(self) -> dict[str, str]:
        """The tools that are offered under another name than their own."""
        version = self._service.catalogue.version
        if self._long_names[0] != version:
            names = (listing.spec.name for listing in self._service.tools(all=True))
            renamed = {self.shown_name(name): name for name in names}
            self._long_names = (version, {shown: name for shown, name in renamed.items() if shown != name})
        return self._long_names[1]

    def has(self, name: str) -> bool:
        """Whether haft has a tool of this name that is switched on, and this server offers it."""
        return any(one.spec.name == name and self.offers(one.spec) for one in self._service.tools())

    def input_schema(self, name: str) -> Mapping[str, Any] | None:
        """The input schema of an offered tool; None if there is no such tool."""
        real = self.real_name(name)
        listing = None if real is None else self._service.catalogue.listing(real)
        return None if listing is None else listing.spec.input_schema
