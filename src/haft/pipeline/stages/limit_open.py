"""A stage that may stop a call: it bounds how many calls of one user are open at the same time
(`limits.max_open_per_user`). A further call ends at once with the error `busy`.

A call is open from its beginning to its end, also while it waits for a place, for a lock or for a person. So one user
cannot fill the waiting line and the inbox of a host that many people share. Calls that an open call makes do not count.
"""

from __future__ import annotations

from haft.contracts import Busy, Outcome
from haft.pipeline.chain import Proceed
from haft.pipeline.run import Run


class LimitOpen:
    """Refuses a call if its user has too many open calls."""

    def __init__(self, limit: int) -> None:
        """`limit` is the number of open calls that one user may have; 0: no limit."""
        self._limit = limit
        self._open: dict[str, int] = {}

    def skips(self, run: Run) -> bool:
        """Whether the call does not count: another call made it, or it is a command of a person, such as undo."""
        return self._limit == 0 or run.parent is not None or run.call.decision is not None

    async def __call__(self, run: Run, proceed: Proceed) -> Outcome:
        who = run.call.who
        count = self._open.get(who, 0)
        if count >= self._limit:
            raise Busy(
                f"`{run.call.name}` was not called: {count} calls of {who} are open already"
                f" (`limits.max_open_per_user` = {self._limit})",
                hint="call it again when one of them has ended",
            )
        self._open[who] = count + 1
        try:
            return await proceed(run)
        finally:
            left = self._open[who] - 1
            if left:
                self._open[who] = left
            else:
                del self._open[who]
