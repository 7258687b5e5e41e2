"""What a tool returned beside text: images and links. An image is shown only if its content is PNG, JPEG, GIF or WebP,
whatever the tool says that it is; SVG is not, because it can have scripts. Everything else is named."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping
from typing import Any, Final

from haft.surfaces.http.console.figures import size
from haft.values import dataclass

MOST_SHOWN: Final = 20
LARGEST: Final = 5_000_000
"""A larger image is only named."""


@dataclass(frozen=True, slots=True)
class Shown:
    """One block: an image with its address, or words."""

    words: str
    image: str | None = None
    """The image as a `data:` address."""


def shown_content(blocks: Iterable[Mapping[str, Any]]) -> list[Shown]:
    """The blocks of an outcome as the page shows them."""
    return [_shown(block) for block in list(blocks)[:MOST_SHOWN]]


def image_type(data: bytes) -> str | None:
    """The type of an image by its first bytes; None if it is none of those that are shown."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    return "image/webp" if data[:4] == b"RIFF" and data[8:12] == b"WEBP" else None


def _shown(block: Mapping[str, Any]) -> Shown:
    kind = str(block.get("type", "block"))
    if kind == "resource_link":
        return Shown(f"a link: {block.get('uri', '')}")
    text = block.get("data")
    try:
        data = base64.b64decode(text, validate=True) if isinstance(text, str) else b""
    except binascii.Error:
        data = b""
    found = image_type(data)
    if kind == "image" and found is not None and len(data) <= LARGEST:
        encoded = base64.b64encode(data).decode()
        return Shown(f"{found.removeprefix('image/').upper()}, {size(len(data))}", f"data:{found};base64,{encoded}")
    return Shown(f"{kind}, {size(len(data))}" if data else kind)
