"""The event streams."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.routing import BaseRoute

    from haft.surfaces.http.server import Server


def routes(server: Server) -> list[BaseRoute]:
    """The routes."""
    return []
