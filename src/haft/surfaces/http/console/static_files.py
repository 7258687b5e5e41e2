"""The styles, scripts and pictures of the console. Their addresses have a digest of all of them, so browsers keep them
for good, and an update shows at once."""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from starlette.responses import Response

from haft.values import dataclass

if TYPE_CHECKING:
    from starlette.requests import Request

TYPES: Final = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
DIRECTORY: Final = os.path.join(os.path.dirname(__file__), "static")


@dataclass(frozen=True, slots=True)
class StaticFiles:
    """All files below `static/`, in memory."""

    files: Mapping[str, bytes]
    digest: str

    def address(self, name: str) -> str:
        """Where a browser gets a file. Raises `KeyError` if there is no such file."""
        self.files[name]
        return f"/static/{self.digest}/{name}"

    async def answer(self, request: Request) -> Response:
        """The file that a request names; the digest may be missing, or that of another version."""
        name = request.path_params["name"]
        first, _, rest = name.partition("/")
        is_current = first == self.digest
        data = self.files.get(rest) if rest in self.files else self.files.get(name)
        if data is None:
            return Response("There is no such file.\n", 404, media_type="text/plain")
        kept = "public, max-age=31536000, immutable" if is_current else "no-cache"
        headers = {"cache-control": kept, "x-content-type-options": "nosniff"}
        return Response(data, headers=headers, media_type=TYPES[os.path.splitext(name)[1]])


@functools.cache
def static_files() -> StaticFiles:
    """The files of this installation."""
    files = {}
    for directory, _, names in sorted(os.walk(DIRECTORY)):
        for name in sorted(names):
            path = os.path.join(directory, name)
            if os.path.splitext(name)[1] in TYPES:
                with open(path, "rb") as file:
                    files[os.path.relpath(path, DIRECTORY).replace(os.sep, "/")] = file.read()
    whole = hashlib.sha256()
    for name, data in files.items():
        whole.update(f"{name} {len(data)}\n".encode() + data)
    return StaticFiles(files, whole.hexdigest()[:16])
