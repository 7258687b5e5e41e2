"""Views: the committed state of the workspace that one call sees from its beginning to its end."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from typing import Final

from haft.changes.published.register import FILES, Register
from haft.contracts import Isolation, Paths
from haft.values import dataclass, field

WaitNews = Callable[[str | None, bool], None]
"""Is told for which run a call waits, if that is known, and whether that run waits for a person."""

_SHORTEST, _LONGEST = 0.0005, 0.02

Lowers = tuple[tuple[str, int, int], ...]

EXEMPT: Final[ContextVar[tuple[View, ...]]] = ContextVar("haft-views-of-callers", default=())
"""The views of the calls that wait for the current call. They do not delay its commit: they are renewed after it."""


@dataclass(slots=True)
class View:
    """The view of one call."""

    name: str
    """Its name in the register."""
    run: str
    lowers: Lowers = ()
    """The published layers that lie over the workspace, the newest first: their directories below the area, each with
    device and inode."""
    isolation: Isolation = "snapshot"
    reads: Paths = None
    """What the call may have read."""
    check: Callable[[list[str]], str | None] = field(default=lambda _paths: None)
    """Says why these changed paths may not be committed, because of the order of a batch; None if they may."""
    own: list[str] = field(default_factory=list)
    """The runs whose commits are no conflict, because this call made them."""
    torn: str | None = None
    """The run whose changes were written beneath the view, because the call ran for long."""
    is_over: bool = False

    @property
    def number(self) -> int:
        return int(self.name.partition(".")[0])


@contextlib.contextmanager
def exempt(views: Iterable[View]) -> Iterator[None]:
    """Within this context, these views of callers do not delay commits."""
    before = EXEMPT.set((*EXEMPT.get(), *views))
    try:
        yield
    finally:
        EXEMPT.reset(before)


class Views:
    """Takes and ends the views of one host in one workspace."""

    def __init__(self, area: str, register: Register) -> None:
        self._area = area
        self.register = register
        self.on_release: Callable[[], None] = lambda: None
        """Called when a view has ended: a layer may have waited for it."""

    def try_take(self, run: str) -> View | None:
        """Take a view at once; None if a commit is in progress."""
        descriptor = self.register.try_lock(exclusive=False)
        if descriptor is None:
            return None
        try:
            lowers = self._lowers()
            try:
                return View(self.register.take(run), run, lowers)
            except OSError:  # The disk is full: nobody knows of the view, so it may be torn.
                return View(f"{self.register.number()}.", run, lowers, is_over=True)
        finally:
            os.close(descriptor)

    async def take(self, run: str, waiting: WaitNews = lambda _run, _is_person: None) -> View:
        """Take a view. If a commit is in progress or another call has the workspace alone, wait for its end, and tell
        `waiting` so."""
        pause = _SHORTEST
        while (view := self.try_take(run)) is None:
            if pause == _LONGEST:
                self.tell_holder(waiting)
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LONGEST)
        return view

    def tell_holder(self, waiting: WaitNews) -> None:
        """Tell `waiting` which run has the workspace alone."""
        holder = self.register.holder()
        waiting(holder, holder in self.register.waiting_for_person())

    def _lowers(self) -> Lowers:
        found = []
        for layer in reversed(self.register.open_layers()):
            status = os.stat(self.register.files(layer))
            found.append((f"views/{FILES}/{layer.number}", status.st_dev, status.st_ino))
        return tuple(found)

    def renew(self, view: View) -> None:
        """Let a call see the state as it is committed now, after a call that it made. Waits in the thread."""
        if view.is_over:
            return
        with self.register.locked(exclusive=False):
            view.name = self.register.take(view.run, replaces=view.name)
            view.lowers = self._lowers()

    def stop_using(self, view: View) -> None:
        """Note that nobody looks through a view any more: commits need not wait for its end."""
        if not view.is_over:
            self.register.stop_using(view.name)
            self.on_release()

    def release(self, view: View) -> None:
        """End a view."""
        if not view.is_over:
            view.is_over = True
            with contextlib.suppress(OSError):
                view.torn = self.register.release(view.name) or view.torn
            self.on_release()
