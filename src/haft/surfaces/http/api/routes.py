"""The routes of the API, made from the table."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, Final

import orjson
from pydantic import ValidationError
from starlette.responses import Response, StreamingResponse

from haft.contracts import HaftError
from haft.surfaces.http.api.ask import Ask
from haft.surfaces.http.api.endpoint import PREFIX
from haft.surfaces.http.api.idempotency import HEADER, key_in
from haft.surfaces.http.api.openapi import document
from haft.surfaces.http.api.problems import HttpError, InvalidRequest, problem
from haft.surfaces.http.api.table import ENDPOINTS
from haft.surfaces.http.asgi import IDENTITY, TRACE
from haft.surfaces.http.rules import GuardedRoute, Rule

DOCUMENT: Final = f"{PREFIX}/openapi.json"

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.routing import BaseRoute

    from haft.surfaces.http.api.endpoint import Endpoint
    from haft.surfaces.http.server import Server


def routes(server: Server) -> list[BaseRoute]:
    """A route for each endpoint."""
    return [*(ApiRoute(server, endpoint) for endpoint in ENDPOINTS), GuardedRoute(DOCUMENT, _document, rule=Rule())]


async def _document(_request: Request) -> Response:
    return Response(orjson.dumps(document()), media_type="application/json")


class ApiRoute(GuardedRoute):
    """The route of one endpoint."""

    def __init__(self, server: Server, endpoint: Endpoint) -> None:
        rule = Rule(action=endpoint.action, body_bytes=endpoint.body_bytes if endpoint.has_body else 0)
        super().__init__(endpoint.whole_path, self._answer, rule=rule, methods=(endpoint.method,), name=endpoint.name)
        self.described = endpoint
        self._server = server

    async def _answer(self, request: Request) -> Response:
        endpoint = self.described
        try:
            ask = Ask(self._server, request.scope[IDENTITY], key=_key(endpoint, request))
            path = dict(request.path_params)
            if endpoint.is_in_workspace:
                ask = ask.within(path.pop("workspace"))
            given = await given_in(endpoint, request, path)
            answer = await ask.perform(endpoint.name, given)
        except HaftError as error:
            return problem(error, request.scope[TRACE])
        if isinstance(answer, AsyncIterator):
            return StreamingResponse(answer, endpoint.status, media_type=endpoint.media_type)
        return Response(orjson.dumps(answer), endpoint.status, media_type=endpoint.media_type)


def _key(endpoint: Endpoint, request: Request) -> str | None:
    key = key_in(request.headers.getlist(HEADER))
    if key is not None and not endpoint.takes_key:
        raise HttpError("invalid-request", f"`{endpoint.name}` takes no `{HEADER}`")
    return key


async def given_in(endpoint: Endpoint, request: Request, path: dict[str, Any]) -> Any:
    """The parameters of a request. Raises `HttpError` if they do not fit the endpoint."""
    if endpoint.has_body:
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            raise HttpError("unsupported-media-type", "the body must be JSON: send `Content-Type: application/json`")
        try:
            told = orjson.loads(await request.body())
        except ValueError as error:
            raise HttpError("bad-json", f"the body is not JSON: {error}") from None
        if not isinstance(told, dict):
            raise InvalidRequest(["the body must be an object"])
    else:
        told = _query(endpoint, request)
    return _checked(endpoint, {**told, **path}, strict=endpoint.has_body)


def _query(endpoint: Endpoint, request: Request) -> dict[str, Any]:
    told: dict[str, Any] = {}
    for name, value in request.query_params.multi_items():
        if name in told:
            raise InvalidRequest([f"`{name}` occurs twice in the query"])
        told[name] = value
    return told


def _checked(endpoint: Endpoint, told: dict[str, Any], *, strict: bool) -> Any:
    try:
        return endpoint.given.model_validate(told, strict=strict, by_alias=True, by_name=False)
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False, include_input=False)
        raise InvalidRequest([f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in found]) from None
