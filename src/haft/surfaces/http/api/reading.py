"""Reads what is stored, in a thread, so that the event loop is not blocked."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from haft.contracts import UnknownRun
from haft.service import ChangesFacade, open_changes, open_history

if TYPE_CHECKING:
    from haft.service import History, RunRecord
    from haft.surfaces.http.api.ask import Ask

T = TypeVar("T")


async def with_history(ask: Ask, work: Callable[[History], T]) -> T:
    """The result of `work`, which gets the history of runs."""

    def read() -> T:
        history = open_history(ask.server.home)
        assert history is not None  # The services of the workspaces are open, so there is a state home.
        with contextlib.closing(history):
            return work(history)

    return await asyncio.to_thread(read)


async def with_changes(ask: Ask, work: Callable[[ChangesFacade], T]) -> T:
    """The result of `work`, which gets the change sets."""

    def read() -> T:
        changes = open_changes(ask.server.home)
        assert changes is not None
        with contextlib.closing(changes):
            return work(changes)

    return await asyncio.to_thread(read)


async def visible_run(ask: Ask, run: str) -> RunRecord:
    """The record of a run that this identity may see, in the workspace of the request. Raises `UnknownRun` for all
    others, as if there were none: nobody learns whose runs there are."""
    record = await ask.service.runs.record(run)
    if record.record["workspace"] != ask.here.path or not may_see(ask, record):
        raise UnknownRun(run)
    return record


def may_see(ask: Ask, record: RunRecord) -> bool:
    """Whether the identity may see a run of a workspace that it may enter."""
    return ask.identity.may("see-all-runs") or ask.identity.owns(record)
