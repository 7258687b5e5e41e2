"""Defaults for transactions of calls that leave no process behind."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable

from haft.changes.published.views import View
from haft.changes.transactions import Transactions
from haft.contracts import Workspace


class TransactionDefaults:
    """Base class for transactions of calls whose processes have all ended when `finish` is called."""

    covers_others = False
    """Whether changes that others made to the workspace during the call are counted as the call's."""

    view: View | None = None
    """The view of the call; None if it has none, because it has the workspace alone or shares its caller's layer."""
    _transactions: Transactions

    _check: Callable[[list[str]], str | None] = staticmethod(lambda _paths: None)

    def keep_order(self, check: Callable[[list[str]], str | None]) -> None:
        """`check` says why changed paths may not be committed, because of the order of a batch; None if they may. The
        commit of a call with a view asks the view instead."""
        self._check = check

    def stop_using_view(self) -> None:
        """Note that the tool has ended. A call that waits for the workspace alone would otherwise wait for this call,
        whose commit waits for the other one."""
        if self.view is not None:
            self._transactions.publisher.views.stop_using(self.view)

    def leave_view(self, *, flushes: bool = True) -> None:
        """End the view of the call, whose changes have been committed, held or discarded."""
        if self.view is not None:
            self._transactions.publisher.end_view(self.view, flushes=flushes)

    def show(self, seen: Workspace) -> None:
        """Does nothing: the call's processes see their layer."""

    @contextlib.asynccontextmanager
    async def at_rest(self) -> AsyncIterator[str | None]:
        """Yields None: no process of the call is left to be stopped, so nothing makes the changes incomplete."""
        yield None
