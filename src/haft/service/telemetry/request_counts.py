"""Counts the HTTP requests of a server, for `metrics`. Routes are counted by their pattern, such as `/healthz`, never
by the path that a client asked for."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final

from haft.service.telemetry.run_counts import OTHER, Histogram

METHODS: Final = ("GET", "HEAD", "POST", "PUT", "DELETE")


class CountedRequest:
    """One request that is counted."""

    def __init__(self, route: Callable[[], tuple[str, bool] | None]) -> None:
        """`route` returns the pattern of the route that answers, and whether it answers with a stream; None while the
        request has reached no route."""
        self._route = route
        self.status: int | None = None
        """The status of the answer; None until it begins."""

    @property
    def pattern(self) -> str:
        route = self._route()
        return OTHER if route is None else route[0]

    @property
    def is_stream(self) -> bool:
        route = self._route()
        return route is not None and route[1]


class RequestCounts:
    """Everything happens in the thread of the event loop."""

    def __init__(self) -> None:
        self.answered: Counter[tuple[str, str, str]] = Counter()
        """By route, method and status."""
        self.durations = {method: Histogram() for method in (*METHODS, OTHER)}
        self._open: set[CountedRequest] = set()

    @contextlib.contextmanager
    def counting(self, method: str, route: Callable[[], tuple[str, bool] | None]) -> Iterator[CountedRequest]:
        """A context manager around one request."""
        method = method if method in METHODS else OTHER
        request, began = CountedRequest(route), time.monotonic()
        self._open.add(request)
        try:
            yield request
        finally:
            self._open.discard(request)
            self.answered[request.pattern, method, "none" if request.status is None else str(request.status)] += 1
            if not request.is_stream:
                self.durations[method].add(time.monotonic() - began)

    @property
    def open(self) -> dict[str, int]:
        """How many requests have not ended, by whether their answer is a stream."""
        streams = sum(request.is_stream for request in self._open)
        return {"request": len(self._open) - streams, "stream": streams}
