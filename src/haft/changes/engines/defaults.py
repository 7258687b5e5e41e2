"""Defaults for transactions of calls that leave no process behind."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator


class TransactionDefaults:
    """Base class for transactions of calls whose processes have all ended when `finish` is called."""

    covers_others = False
    """Whether changes that others made to the workspace during the call are counted as the call's."""

    @contextlib.asynccontextmanager
    async def at_rest(self) -> AsyncIterator[str | None]:
        """Yields None: no process of the call is left to be stopped, so nothing makes the changes incomplete."""
        yield None
