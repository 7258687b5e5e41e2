"""The services of the contract suite: one interface, without `await`, to each kind of service.

`SyncToolService` has this interface itself. `Awaited` gives it to the services with an event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import socket
import threading

import uvicorn
from contract_tools import TOOLS

import sampling
from haft import Principal, ToolService
from haft.contracts import BadUsage
from haft.service import ServedWorkspaces, StateHome, Tokens

RUNS = ("apply", "call", "drop", "redo", "undo")
"""Methods that return a run at once, which is not awaited."""
SETTINGS = {
    "approval.expires_seconds": 60,
    "permissions": [
        {"tool": "risky", "action": "ask"},
        {"tool": "repeats", "action": "reject", "matches": {"text": "forbidden*"}, "message": "not this text"},
        {"tool": "write_file", "action": "allow"},
    ],
}


class Loop:
    """An event loop in a thread of its own."""

    def __enter__(self):
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_):
        self.wait(self.loop.shutdown_default_executor())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()

    def wait(self, coroutine, timeout=60):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(timeout)

    def iterate(self, begin):
        items = self.wait(_plain(begin))
        try:
            while True:
                try:
                    yield self.wait(_next(items))
                except StopAsyncIteration:
                    return
        finally:
            if self.loop.is_running():
                self.wait(items.aclose())


class AwaitedRun:
    def __init__(self, run, loop):
        self.run, self._loop = run, loop

    def __getattr__(self, name):
        return getattr(self.run, name)

    def wait(self, timeout=60):
        return self._loop.wait(_value(lambda: self.run), timeout)

    def cancel(self):
        return self._loop.wait(_value(self.run.cancel))

    def __iter__(self):
        yield from self._loop.iterate(lambda: aiter(self.run))


class Awaited:
    """A service with an event loop, whose methods are called from outside of it."""

    def __init__(self, service, loop):
        self._service, self._loop = service, loop

    def __getattr__(self, name):
        method = getattr(self._service, name)

        def call(*arguments, **options):
            if name in RUNS:
                return AwaitedRun(self._loop.wait(_plain(lambda: method(*arguments, **options))), self._loop)
            found = self._loop.wait(_value(lambda: method(*arguments, **options), but_not=name in ("resume", "run")))
            return AwaitedRun(found, self._loop) if hasattr(found, "cancel") else found

        return call

    def watch_tools(self):
        yield from self._loop.iterate(self._service.watch_tools)


async def _next(items):
    return await anext(items)


async def _plain(work):
    return work()


async def _value(work, but_not=False):
    """What a method gives, after waiting for it. A run that a method returns is not waited for with `but_not`."""
    found = work()
    if but_not:
        return await found if inspect.iscoroutine(found) else found
    return await found if inspect.isawaitable(found) else found


class Embedded:
    """The service with an event loop, in this process."""

    @contextlib.contextmanager
    def open(self, place, **options):
        with Loop() as loop:
            service = ToolService.open(**_given(place, options))
            loop.wait(service.__aenter__())
            try:
                yield Awaited(service, loop)
            finally:
                loop.wait(service.close())


class Blocking:
    """The service without an event loop, in this process."""

    @contextlib.contextmanager
    def open(self, place, **options):
        with ToolService.open_sync(**_given(place, options)) as service:
            yield service


class Server:
    """A server on a free port of loopback, with the tools of the suite, in a thread of its own."""

    def __init__(self, place, settings=SETTINGS, *, port=0, scheme="http", **tls):
        """`tls` are options of uvicorn."""
        self._place, self._settings, self._port, self._scheme, self._tls = place, settings, port, scheme, tls
        (place / "workspace").mkdir(exist_ok=True)

    def token(self, name="mia", kind="person", roles=("operator",)):
        """A token, instead of the one that this name had."""
        tokens = Tokens(self._place / "home")
        with contextlib.suppress(BadUsage):  # There is none yet.
            tokens.revoke(name, Principal("tester"))
        return tokens.add(name, Principal("tester"), kind=kind, roles=[*roles])[1]

    def __enter__(self):
        self._loop = Loop().__enter__()
        self._loop.wait(self._start())
        return self

    def __exit__(self, *_):
        self._loop.wait(self._stop())
        self._loop.__exit__()

    async def _start(self):
        from haft.surfaces.http.app import application
        from haft.surfaces.http.server import Server as Served
        from haft.surfaces.http.sign_in import SignIn
        from haft.surfaces.http.streams.hub import Hub

        home = StateHome(str(self._place / "home"))
        self._stack = contextlib.AsyncExitStack()
        opening = ServedWorkspaces.only(self._place / "workspace", home=home.path, tools=TOOLS, settings=self._settings)
        opened = await self._stack.enter_async_context(opening)
        served = Served(opened, SignIn(home), home)
        served.hub = await self._stack.enter_async_context(Hub({each.name: each.service for each in opened}))
        self._guard = application(served)
        listening = socket.create_server(("127.0.0.1", self._port))
        options = {"log_config": None, "access_log": False, "ws": "none", "timeout_graceful_shutdown": 1, **self._tls}
        config = uvicorn.Config(self._guard, **options)
        self._carrier = uvicorn.Server(config)
        self._carrier.capture_signals = contextlib.nullcontext
        self._serving = asyncio.ensure_future(self._carrier.serve([listening]))
        self._watching = asyncio.ensure_future(self._guard.watch())
        self.port = listening.getsockname()[1]
        self.url = f"{self._scheme}://127.0.0.1:{self.port}"

    async def _stop(self):
        self._carrier.should_exit = True
        await self._serving
        self._watching.cancel()
        await self._guard.end_all()
        await self._stack.aclose()


class Remote:
    """The service of a server, with an event loop."""

    @contextlib.contextmanager
    def open(self, place, **options):
        with self._connected(place, options) as (url, given), Loop() as loop:
            service = ToolService.connect(url, **given)
            loop.wait(service.__aenter__())
            try:
                yield Awaited(service, loop)
            finally:
                loop.wait(service.close())

    @contextlib.contextmanager
    def _connected(self, place, options):
        with Server(place, SETTINGS | options.pop("settings", {})) as server:
            yield server.url, {"token": server.token(), **options}


class RemoteBlocking(Remote):
    """The service of a server, without an event loop."""

    @contextlib.contextmanager
    def open(self, place, **options):
        with self._connected(place, options) as (url, given), ToolService.connect_sync(url, **given) as service:
            yield service


def _given(place, options):
    (place / "workspace").mkdir(exist_ok=True)
    settings = SETTINGS | options.pop("settings", {})
    return {
        "workspace": place / "workspace",
        "home": place / "home",
        "tools": TOOLS,
        "who": "mia",
        "settings": settings,
        **options,
    }


_REMOTE = [("remote", Remote), ("remote-blocking", RemoteBlocking)]
KINDS = {
    "embedded": Embedded,
    "blocking": Blocking,
    **dict(sampling.some(_REMOTE, 1, "contract") if sampling.IS_DAILY else _REMOTE),
}
