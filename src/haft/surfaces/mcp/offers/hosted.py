"""Resources and prompts of the MCP servers that haft hosts, as clients of haft see them.

They keep the URI or the name that their server gave them. If two servers give the same one, the second is offered with
the name of its server before it. Reading and getting them are calls of `read_resource` and `get_prompt`, so rules,
approval and the audit log see them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from mcp.shared.uri_template import InvalidUriTemplate, UriTemplate

if TYPE_CHECKING:
    from haft.service import ToolService

READ_RESOURCE: Final = "read_resource"
GET_PROMPT: Final = "get_prompt"
NOTES_KEY: Final = "dev.haft/notes"


class Offer(NamedTuple):
    """A resource, a template of resources, or a prompt of a hosted server."""

    server: str
    name: str
    """The URI or the name that the server gave it."""
    form: dict[str, Any]
    """As MCP writes it, with the URI or the name that clients of haft use."""


class Hosted:
    """What hosted servers offer beside tools. Listing asks all servers; reading one thing asks them only if the last
    list does not have it."""

    def __init__(self, service: ToolService) -> None:
        self._service = service
        self._resources: list[Offer] = []
        self._templates: list[Offer] = []
        self._prompts: list[Offer] = []

    async def resources(self) -> list[Offer]:
        """The resources, by server."""
        found = await self._service.providers.resources()
        self._resources = _offers(found, "uri", "{server}+{name}", ())
        return self._resources

    async def templates(self) -> list[Offer]:
        """The templates of resources."""
        found = await self._service.providers.templates()
        self._templates = _offers(found, "uriTemplate", "{server}+{name}", ())
        return self._templates

    async def prompts(self, taken: Collection[str]) -> list[Offer]:
        """The prompts. `taken`: names that haft's own prompts have."""
        self._prompts = _offers(await self._service.providers.prompts(), "name", "{server}__{name}", taken)
        return self._prompts

    def left_out(self, kind: str) -> dict[str, Any]:
        """The part of a result that says what the last list of this kind left out, and why."""
        notes = self._service.providers.left_out(kind)
        return {"_meta": {NOTES_KEY: notes}} if notes else {}

    async def resource(self, uri: str) -> tuple[str, str] | None:
        """The server of a resource, and the URI that the server knows; None if no server has the resource."""
        known = _resource_in(uri, self._resources, self._templates)
        return known or _resource_in(uri, await self.resources(), await self.templates())

    async def template(self, uri: str) -> tuple[str, str] | None:
        """The server of a template, and the template as the server knows it; None if no server has it."""
        for offer in await self.templates():
            if offer.form["uriTemplate"] == uri:
                return offer.server, offer.name
        return None

    async def prompt(self, name: str, taken: Collection[str]) -> Offer | None:
        """The prompt that clients know by this name; None if no server has it."""
        known = [offer for offer in self._prompts if offer.form["name"] == name]
        found = known or [offer for offer in await self.prompts(taken) if offer.form["name"] == name]
        return found[0] if found else None


def _resource_in(uri: str, resources: Sequence[Offer], templates: Sequence[Offer]) -> tuple[str, str] | None:
    for offer in resources:
        if offer.form["uri"] == uri:
            return offer.server, offer.name
    for offer in templates:
        template = offer.form["uriTemplate"]
        if matches(template, uri):
            return offer.server, uri if template == offer.name else uri.removeprefix(f"{offer.server}+")
    return None


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
    try:
        return UriTemplate.parse(template).match(uri) is not None
    except InvalidUriTemplate:
        return False
