"""What is common to transactions of calls that are over when they end."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator


class TransactionDefaults:
    """A transaction of a call of which no process is left."""

    covers_others = False
    """Whether what others did to the workspace meanwhile is among its changes."""

    @contextlib.asynccontextmanager
    async def at_rest(self) -> AsyncIterator[str | None]:
        """While nothing of the call moves: why its changes may not be all there are. It ends within."""
        yield None
