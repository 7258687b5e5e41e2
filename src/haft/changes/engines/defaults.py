"""Defaults for transactions of calls that leave no process behind."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator


class TransactionDefaults:
    """A transaction of a call whose processes have all ended."""

    covers_others = False
    """Whether changes that others made to the workspace meanwhile are counted as the call's."""

    @contextlib.asynccontextmanager
    async def at_rest(self) -> AsyncIterator[str | None]:
        """No process of the call is left, so there is nothing to stop and no reason for doubt."""
        yield None
