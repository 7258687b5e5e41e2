"""The routes of the streams: the events of one run, and the feed of one workspace or of all.

A client that comes back says which event it has last: a browser in the header `Last-Event-ID`, other programs also with
`after=` in the query. `run=` in the query of a feed names a run whose events it has too, as RUN or RUN:NUMBER, where
NUMBER is that of the last event that the client has; in the feed of all workspaces as WORKSPACE/RUN:NUMBER.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from starlette.requests import Request

from haft.contracts import HaftError, UnknownRun
from haft.surfaces.http.api.ask import Ask
from haft.surfaces.http.api.endpoint import IN_WORKSPACE, PREFIX
from haft.surfaces.http.api.problems import HttpError, InvalidRequest, problem
from haft.surfaces.http.asgi import IDENTITY, TRACE
from haft.surfaces.http.rules import GuardedRoute, Rule
from haft.surfaces.http.streams.chunks import LARGEST_CHUNK
from haft.surfaces.http.streams.feed_events import FeedView

if TYPE_CHECKING:
    from starlette.routing import BaseRoute

    from haft.surfaces.http.asgi import Message, Receive, Scope, Send
    from haft.surfaces.http.server import Server
    from haft.surfaces.http.streams.hub import Hub
    from haft.surfaces.http.streams.stream import Stream

MOST_SHOWN: Final = 20
"""How many runs one feed can show."""
MOST_OF_ONE: Final = 100
"""How many streams one identity can have open."""
MOST_STREAMS: Final = 4000
"""How many streams the server has open at once."""

Open = Callable[["Request", Ask, "Hub"], Awaitable["Stream"]]


def stream_routes(server: Server) -> list[BaseRoute]:
    """The routes of the streams."""
    found = (
        (f"{PREFIX}{IN_WORKSPACE}/runs/{{run}}/events", _run, "followRun"),
        (f"{PREFIX}{IN_WORKSPACE}/events", _feed, "followWorkspace"),
        (f"{PREFIX}/events", _feed, "followAll"),
    )
    rule = Rule(action="see-own-runs", is_stream=True)
    return [GuardedRoute(path, _StreamRoute(server, opened), rule=rule, name=name) for path, opened, name in found]


class _StreamRoute:
    """An ASGI application that answers with a stream."""

    def __init__(self, server: Server, opened: Open) -> None:
        self._server = server
        self._opened = opened

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            stream = await self._open(request)
        except HaftError as error:
            await problem(error, scope[TRACE])(scope, receive, send)
            return
        try:
            await _send(stream, scope, receive, send)
        finally:
            stream.close()

    async def _open(self, request: Request) -> Stream:
        identity, hub = request.scope[IDENTITY], self._server.hub
        if len(hub.streams) >= MOST_STREAMS or sum(each.owner == identity.key for each in hub.streams) >= MOST_OF_ONE:
            crowd = HttpError("too-many-requests", "too many streams are open", retryable=True)
            crowd.headers["retry-after"] = "5"
            raise crowd
        ask = Ask(self._server, identity)
        if (workspace := request.path_params.get("workspace")) is not None:
            ask = ask.within(workspace)
        return await self._opened(request, ask, hub)


async def _run(request: Request, ask: Ask, hub: Hub) -> Stream:
    after = _number(_last_seen(request) or "-1", "after")
    name = await _visible(ask, request.path_params["run"])
    return hub.follow(ask.identity.key, ask.here.name, name, after)


async def _feed(request: Request, ask: Ask, hub: Hub) -> Stream:
    names = [ask.here.name] if ask.workspace is not None else [each.name for each in ask.workspaces()]
    wanted = request.query_params.getlist("run")
    if len(wanted) > MOST_SHOWN:
        raise InvalidRequest([f"a feed shows at most {MOST_SHOWN} runs"])
    runs = []
    for text in wanted:
        name, _, number = text.partition(":")
        workspace, slash, run = name.rpartition("/")
        if bool(slash) == (ask.workspace is not None):
            raise InvalidRequest(["`run` must be RUN or RUN:NUMBER, and WORKSPACE/RUN in the feed of all workspaces"])
        here = ask.within(workspace) if slash else ask
        runs.append((here.here.name, await _visible(here, run), _number(number or "-1", "run")))
    view = FeedView.of(ask.identity, names)
    return await hub.subscribe(ask.identity.key, view, after=_last_seen(request), runs=runs)


def _last_seen(request: Request) -> str | None:
    """The id of the last event that the client has. The header is newer: a browser sends it when it comes back to the
    same address."""
    return request.headers.get("last-event-id") or request.query_params.get("after")


def _number(text: str, name: str) -> int:
    if not text.removeprefix("-").isdecimal() or not text.isascii() or len(text) > 15:
        raise InvalidRequest([f"`{name}` needs the number of an event, not `{text}`"])
    return int(text)


async def _visible(ask: Ask, name: str) -> str:
    """The id of a run of the workspace that the identity may see. Raises `UnknownRun` if there is none."""
    live = ask.service.runs.live(name)  # First: a run that has ended is on disk.
    if live is not None:
        who: str | None = live.call.who
    else:
        found = await ask.service.runs.find(workspace=ask.here.path, limit=1, before=f"{name}\x00")
        who = next((each.who for each in found if each.id == name), None)
    if who is None or not (ask.identity.may("see-all-runs") or who == ask.identity.name):
        raise UnknownRun(name)
    return name


async def _send(stream: Stream, scope: Scope, receive: Receive, send: Send) -> None:
    """Send a stream until it ends, or the client goes away."""
    headers = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-store"), (b"x-accel-buffering", b"no")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    if scope["method"] == "HEAD":
        await send({"type": "http.response.body", "body": b"", "more_body": False})
        return
    gone = asyncio.ensure_future(_disconnected(receive))
    gone.add_done_callback(lambda _: stream.subscriber.end())
    try:
        async for chunk in stream:
            # In small pieces: the transport of a client that does not read keeps at most one of them beyond its limit.
            for start in range(0, len(chunk), LARGEST_CHUNK):
                await send(_body(chunk[start : start + LARGEST_CHUNK]))
    finally:
        gone.cancel()
    await send(_body(b"", more=False))


def _body(data: bytes, *, more: bool = True) -> Message:
    return {"type": "http.response.body", "body": data, "more_body": more}


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        continue
