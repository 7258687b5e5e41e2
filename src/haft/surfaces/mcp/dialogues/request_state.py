"""Request states: what a client carries from an answer `input_required` to its next request, so that haft knows which
waiting call the client means.

The state comes back from the client, so haft treats it as hostile. The `mcp` package seals it: a state is encrypted,
bound to the client, the tool, the arguments and the workspace, and it expires. This module adds the key of the state
home, so that a state is good after a restart, and makes each state good only once. Handlers see only states that
passed all these checks.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS
from mcp_types.methods import INPUT_REQUIRED_METHODS, is_input_required

from haft.service import SealedStates

if TYPE_CHECKING:
    import os

    from mcp.server import Server
    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext

    from haft.surfaces.mcp.callers import Callers

_log: Final = logging.getLogger(__name__)


def protect_request_states(
    server: Server[Any], callers: Callers, home: str | os.PathLike[str], *, workspace: str, seconds: float
) -> None:
    """Seal all request states of this server. `seconds`: how long a state is good."""
    states = SealedStates(home, seconds=seconds)
    states.prune()
    security = RequestStateSecurity(
        keys=[states.key()],
        ttl=seconds,
        bind_principal=lambda context: callers.of(context).key,
        audience=f"haft {workspace}",
    )
    # The outermost ones, so that no other middleware can answer a client with a state that is not sealed.
    server.middleware[0:0] = [RequestStateBoundary(security, default_audience=None), SingleUse(states)]


class SingleUse:
    """Server middleware inside the package's boundary: gives each state a nonce, and accepts each nonce once. A state
    of another client or another call never gets here, so it uses up nothing."""

    def __init__(self, states: SealedStates) -> None:
        self._states = states

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        context = ctx
        if context.method not in INPUT_REQUIRED_METHODS:
            return await call_next(context)
        if context.params is not None and context.params.get("requestState") is not None:
            opened = self._opened(context.method, context.params["requestState"])
            context = replace(context, params={**context.params, "requestState": opened})
        result = await call_next(context)
        if not is_input_required(result):
            return result
        if isinstance(result, Mapping):
            state = result.get("requestState")
            return {**result, "requestState": self._wrapped(state)} if isinstance(state, str) else result
        given = result.request_state
        return result.model_copy(update={"request_state": self._wrapped(given)}) if given is not None else result

    def _wrapped(self, state: str) -> str:
        return json.dumps([self._states.new_nonce(), state])

    def _opened(self, method: str, sealed: str) -> str:
        try:
            nonce, state = json.loads(sealed)
        except (ValueError, TypeError):
            raise _refused(method, "malformed") from None
        if not isinstance(nonce, str) or not isinstance(state, str):
            raise _refused(method, "malformed")
        if not self._states.use(nonce):
            raise _refused(method, "used before")
        return state


def _refused(method: str, reason: str) -> MCPError:
    """The package's own refusal, so that an answer does not say why."""
    _log.warning("requestState rejected on %s: %s", method, reason)
    return MCPError(
        code=INVALID_PARAMS, message="Invalid or expired requestState", data={"reason": "invalid_request_state"}
    )
