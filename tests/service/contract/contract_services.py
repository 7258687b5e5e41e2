"""The services of the contract suite: one interface, without `await`, to each kind of service.

`SyncToolService` has this interface itself. `Awaited` gives it to the services with an event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import threading

from contract_tools import TOOLS

from haft import ToolService

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
        events = self._loop.wait(_plain(lambda: aiter(self.run)))
        while True:
            try:
                yield self._loop.wait(anext(events))
            except StopAsyncIteration:
                return


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
        catalogues = self._loop.wait(_plain(self._service.watch_tools))
        while True:
            yield self._loop.wait(anext(catalogues))


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


KINDS = {"embedded": Embedded, "blocking": Blocking}
