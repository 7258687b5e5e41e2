"""Requests that a client may send twice, because it gave them a key: the same request begins its runs once.

The key is stored before the runs begin, with the ids that they will have, and the runs are stored before they execute a
step. So whoever finds the key finds the runs too, or no run has begun: then the request begins them, under these ids.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, TypeVar
from weakref import WeakValueDictionary

from haft.contracts import Conflict, KeyInUse, KeyReused, RunId, UnknownRun, new_run_id
from haft.pipeline import Run
from haft.runs import History, RunRecord
from haft.service.assembly import Host
from haft.storage import KeyedRequest, RequestKeys, open_stores

T = TypeVar("T")
SECONDS_KEPT: Final = 86_400.0
"""How long a key stands for its request."""


class HostKeyedRequests:
    """The requests with keys that one host gets."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def runs_of(
        self,
        key: str,
        request: str,
        count: int,
        start: Callable[[list[RunId]], Sequence[Run]],
        *,
        ids: Sequence[RunId] = (),
    ) -> Sequence[Run | RunRecord]:
        """The runs of the request with this key. `start` begins them, with the ids that it gets, unless the same
        request has begun them before. `request` is a digest of what is asked. `ids` are the ids that the client has
        made for them, if it has. Raises `KeyReused` if the key stands for another request, `KeyInUse` if another
        process is about to begin its runs, and `Conflict` if other runs have the ids of the client."""
        turn = self._turns.setdefault(key, asyncio.Lock())
        async with turn:
            made = tuple(ids) or tuple(new_run_id() for _ in range(count))
            wanted = KeyedRequest(key, request, made, self._host.lease.host, time.time())
            kept = await self._claim(wanted)
            if kept.request != request:
                raise KeyReused
            is_new = (kept.host, kept.at) == (wanted.host, wanted.at)
            if not is_new:
                if found := await self._found(kept.runs):
                    return found
                await self._take_over(kept)
            try:
                if is_new and ids:
                    await self._check_free(ids)
                runs = start(list(kept.runs))
            except BaseException:
                await asyncio.to_thread(self._stored, lambda keys: keys.forget(key))
                raise
            for run in runs:
                run.save()
            return runs

    async def _claim(self, wanted: KeyedRequest) -> KeyedRequest:
        return await asyncio.to_thread(self._stored, lambda keys: keys.claim(wanted, wanted.at - SECONDS_KEPT))

    async def _take_over(self, kept: KeyedRequest) -> None:
        """Make a request whose runs never began one of this host. Raises `KeyInUse` if another host has it."""
        own = self._host.lease.host
        if kept.host == own:
            return
        is_alive = open_stores(self._host.home).leases().is_alive(kept.host)
        if is_alive or not await asyncio.to_thread(self._stored, lambda keys: keys.take_over(kept.key, kept.host, own)):
            raise KeyInUse

    async def _check_free(self, ids: Sequence[RunId]) -> None:
        """Raise `Conflict` if a run has one of these ids."""
        taken: list[RunId] = [run.id for run in await self._found(ids)]
        taken += [name for name in ids if name in self._host.running().live]  # It may have begun meanwhile.
        if taken:
            raise Conflict(f"there is a run called {taken[0]} already", hint="make another id for the new run")

    async def _found(self, runs: Sequence[RunId]) -> Sequence[Run | RunRecord]:
        """The runs that have begun."""
        live = self._host.running().live
        found: list[Run | RunRecord] = []
        for name in runs:
            with contextlib.suppress(UnknownRun):
                run = live.get(name)
                found.append(await self._host.with_history(partial(_record, name)) if run is None else run)
        return found

    def _stored(self, work: Callable[[RequestKeys], T]) -> T:
        with contextlib.closing(open_stores(self._host.home).connect()) as connection:
            return work(connection.request_keys)


def _record(name: RunId, history: History) -> RunRecord:
    return history.find(name)
