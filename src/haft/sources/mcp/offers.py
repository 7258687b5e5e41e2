"""What MCP servers offer beside tools, as haft shows it: resources, templates of resources, and prompts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from haft.sources.mcp import texts

KEYS: Final[Mapping[str, str]] = {"resources": "uri", "templates": "uriTemplate", "prompts": "name"}
"""What identifies an offer of each kind."""
_WORDS: Final[Mapping[str, str]] = {"resources": "the resource", "templates": "the template", "prompts": "the prompt"}


def shown_offer(server: str, kind: str, offer: Mapping[str, Any]) -> dict[str, Any]:
    """An offer of a server with its texts bounded and visible, and its description marked. What identifies it goes back
    to the server as it is. So this raises `ValueError` if that cannot be shown as it is."""
    key = KEYS[kind]
    arguments = offer.get("arguments") or ()
    for what, name in ((key, offer[key]), *(("name of an argument", each["name"]) for each in arguments)):
        if not texts.is_plain(name, texts.LONGEST_DESCRIPTION):
            which = f"{_WORDS[kind]} `{texts.line(offer[key], 100)}` of the MCP server `{server}`"
            raise ValueError(f"{which} is left out: its {what} is too long, has hidden characters, or imitates haft")
    shown: dict[str, Any] = texts.visible_json(offer, most=texts.LONGEST_DESCRIPTION)
    return {**shown, "description": texts.marked(server, offer.get("description") or "")}
