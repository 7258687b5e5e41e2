"""`/metrics`, for Prometheus. It needs a token whose role may see the machine, such as that of a reader:
`haft tokens add prometheus --role reader`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import Response

from haft.contracts import BadConfig
from haft.service import MeasuredState
from haft.surfaces.http.rules import GuardedRoute, Rule

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.routing import BaseRoute

    from haft.surfaces.http.server import Server


def routes(server: Server) -> list[BaseRoute]:
    """The route of the metrics."""
    state = MeasuredState(server.home)

    async def metrics(_request: Request) -> Response:
        try:
            from haft.service import METRICS_TYPE, metrics_text
        except ImportError as error:
            raise BadConfig(
                f"metrics need the client of Prometheus, which is not installed: {error}",
                hint='pip install "haft[server]"',
            ) from None
        facts = await state.facts()
        is_ready = server.readiness.is_ready
        text = metrics_text(server.workspaces.counts, server.requests, facts, is_ready=is_ready)
        return Response(text, headers={"content-type": METRICS_TYPE})

    return [GuardedRoute("/metrics", metrics, rule=Rule(action="see-machine"))]
