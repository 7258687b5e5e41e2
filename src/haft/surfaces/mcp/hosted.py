"""Resources and prompts of the MCP servers that haft hosts, as clients of haft see them.

They keep the URI or the name that their server gave them. If two servers give the same one, the second is offered with
the name of its server before it. Reading and getting them are calls of `read_resource` and `get_prompt`, so rules,
approval and the audit log see them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from haft.service import ToolService

READ_RESOURCE: Final = "read_resource"
GET_PROMPT: Final = "get_prompt"


class Offer(NamedTuple):
    """A resource, a template of resources, or a prompt of a hosted server."""

    server: str
    name: str
    """The URI or the name that the server gave it."""
    form: dict[str, Any]
    """As MCP writes it, with the URI or the name that clients of haft use."""


class Hosted:
    """What hosted servers offer beside tools."""

    def __init__(self, service: ToolService) -> None:
        self._service: Any = service

    async def resources(self) -> list[Offer]:
        """The resources, by server."""
        return _offers(await self._service.providers.resources(), "uri", "{server}+{name}", ())

    async def templates(self) -> list[Offer]:
        """The templates of resources."""
        return _offers(await self._service.providers.templates(), "uriTemplate", "{server}+{name}", ())

    async def prompts(self, taken: Collection[str]) -> list[Offer]:
        """The prompts. `taken`: names that haft's own prompts have."""
        return _offers(await self._service.providers.prompts(), "name", "{server}__{name}", taken)

    async def resource(self, uri: str) -> tuple[str, str] | None:
        """The server of a resource, and the URI that the server knows; None if no server has the resource."""
        for offer in await self.resources():
            if offer.form["uri"] == uri:
                return offer.server, offer.name
        for offer in await self.templates():
            if matches(offer.form["uriTemplate"], uri):
                prefix = f"{offer.server}+"
                return offer.server, uri if offer.form["uriTemplate"] == offer.name else uri.removeprefix(prefix)
        return None

    async def template(self, uri: str) -> tuple[str, str] | None:
        """The server of a template or a resource, and the URI that the server knows; None if no server has it."""
        for offer in await self.templates():
            if offer.form["uriTemplate"] == uri:
                return offer.server, offer.name
        return await self.resource(uri)

    async def complete(self, server: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """What a server would complete an argument with."""
        found: dict[str, Any] = await self._service.providers.complete(server, params)
        return found


def _offers(
    found: Sequence[tuple[str, Mapping[str, Any]]], key: str, clash: str, taken: Collection[str]
) -> list[Offer]:
    names = set(taken)
    offers = []
    for server, form in found:
        name = str(form[key])
        shown = name if name not in names else clash.format(server=server, name=name)
        names.add(shown)
        offers.append(Offer(server, name, {**form, key: shown}))
    return offers


def matches(template: str, uri: str) -> bool:
    """Whether a URI fits a template."""
    from mcp.shared.uri_template import InvalidUriTemplate, UriTemplate

    try:
        return UriTemplate.parse(template).match(uri) is not None
    except InvalidUriTemplate:
        return False
