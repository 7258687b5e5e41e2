"""The calls of a session process: a process that a tool keeps running between its calls. During each call, the process
works in a layer for this call. Between two calls, it works in another layer.

    stop ─► collect writes between calls ─► a fresh layer ─► the call ─► stop ─► commit ─► a fresh layer ─► go on

When a call ends, haft copies the layer of this call, and commits the files of the copy. If haft committed the files of
the layer itself, the process could still change them through descriptors that it has open. Writes between two calls
belong to no call: writes to protected paths are dropped, and all other writes are held for a person.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

from haft.changes.commit.journal import remove_inside
from haft.changes.commit.tree import Tree
from haft.changes.engines.layer import LayerContents, TooDeep, read_large
from haft.changes.engines.layer_copy import replace_by_copy
from haft.changes.engines.overlay import OverlayTransaction
from haft.changes.published.views import View
from haft.changes.transactions import EndAction, Owner, TransactionResult, Transactions
from haft.changes.uncancellable import await_uncancellable, run_uncancellable
from haft.contracts import HaftError, Layer, LayeredSession, StorageFailed, new_run_id
from haft.files import shown
from haft.values import dataclass

TakeView = Callable[[], Awaitable[View]]
MOST_HOLDERS = 10
WHY = "its process wrote it between two calls"


class SessionEnded(Exception):
    """The process ended before the call could begin."""


@dataclass(frozen=True, slots=True)
class WritesBetweenCalls:
    """The files that a session process wrote while none of its calls ran."""

    run: str
    """The run that holds these changes."""
    held: tuple[str, ...]
    dropped: tuple[str, ...]
    """Protected paths: their changes are discarded."""
    problem: str | None = None
    """If the changes could not be held and are lost: the reason."""

    def sentence(self) -> str:
        """One sentence for a person."""
        parts = []
        if self.held:
            parts.append(
                f"{_list_paths(self.held)} (held: `haft diff {self.run}`, `haft changes apply|drop {self.run}`)"
            )
        if self.dropped:
            parts.append(f"{_list_paths(self.dropped)} (protected: dropped)")
        if self.problem:
            parts.append(f"changes that could not be held: {self.problem}")
        return f"between calls its process wrote {'; '.join(parts)}"


class SessionCalls:
    """The layers of one session process, one after another. The process answers one call at a time."""

    def __init__(
        self, transactions: Transactions, granted_paths: Sequence[str], report: Callable[[WritesBetweenCalls], None]
    ) -> None:
        """`granted_paths` are the paths that the process may write. `report` receives what the process wrote between
        calls."""
        self._transactions = transactions
        self._spared = granted_paths
        self._between: BetweenCallsLayer | None = BetweenCallsLayer(transactions)
        self._report = report
        self._turn = asyncio.Lock()
        self._last = Owner(new_run_id(), "", "")
        self.session: LayeredSession | None = None
        """The process, once it has started."""

    @property
    def at_work(self) -> str | None:
        """The id of the run that the process works on now; None between calls."""
        return self._last.run if self._turn.locked() else None

    @property
    def first(self) -> Layer:
        """The layer in which the process starts."""
        assert self._between is not None
        return self._between.layer

    async def begin(self, owner: Owner, take_view: TakeView) -> SessionTransaction:
        """A transaction for one call, after the earlier calls have ended. Raises `SessionEnded` if the process has
        ended."""
        assert self.session is not None
        await self._turn.acquire()
        try:
            return await await_uncancellable(self._begin(self.session, owner, take_view))
        except BaseException:
            self._turn.release()
            raise

    async def _begin(self, session: LayeredSession, owner: Owner, take_view: TakeView) -> SessionTransaction:
        try:
            holders = await session.stop()
            written = await self.collect_writes()
            view = await take_view()
            transaction = SessionTransaction(self._transactions, owner, self, holders, written, view)
            self._last = owner
            try:
                await session.resume(transaction.layer)
            except BaseException:
                transaction.leave_view()
                transaction.drop()
                raise
        except ConnectionResetError:
            raise SessionEnded from None
        except HaftError:
            await session.end()
            raise
        return transaction

    async def collect_writes(self) -> WritesBetweenCalls | None:
        """Hold the writes of the process since its last call, report these writes, and return them. Returns None if the
        process wrote nothing. The process must be stopped or ended."""
        between, self._between = self._between, None
        if between is None:
            return None
        written = await run_uncancellable(lambda: between.collect_writes(self._last, self._spared))
        if written is not None:
            self._report(written)
        return written

    async def after_call(self, session: LayeredSession) -> None:
        """Let the process continue, in a fresh layer, after a call whose changes have been read."""
        try:
            self._between = BetweenCallsLayer(self._transactions)
            await session.resume(self._between.layer)
        except ConnectionResetError:
            await self.collect_writes()
        except (HaftError, OSError):
            await session.end()

    def release(self) -> None:
        self._turn.release()


class BetweenCallsLayer(OverlayTransaction):
    """The layer of a process while none of its calls runs."""

    def __init__(self, transactions: Transactions) -> None:
        super().__init__(transactions, Owner(new_run_id(), "", ""))

    def collect_writes(self, last: Owner, granted_paths: Sequence[str]) -> WritesBetweenCalls | None:
        """Hold the writes in this layer as a run of their own, with the same `who` and `thread` as `last`, the owner of
        the last call. Writes to protected paths are dropped. Returns None if there are no writes."""
        if self.is_untouched():
            self.drop()
            return None
        transactions, run = self._transactions, self._owner.run
        owner = Owner(run, last.who, last.thread)
        try:
            replace_by_copy(self._place)
            most = transactions.limits.max_written_bytes
            with Tree(self._upper, forced=True) as upper:
                known = read_large(upper, most, lambda: False)
            with transactions.locked():
                found = self._read_layer(known)
                dropped = self._drop_protected(found, granted_paths)
                if not found.entries:
                    return WritesBetweenCalls(run, (), dropped) if dropped else None
                settled = transactions.end_change_set(
                    owner, self._manifest(found), self._below_area(), "hold", conflicts=found.conflicts, why=WHY
                )
            held = tuple(each.path for each in found.entries)
            is_held = settled.changes.state == "held"
            problem = None if is_held else settled.changes.reason
            return WritesBetweenCalls(run, held if is_held else (), dropped, problem)
        except (OSError, StorageFailed, TooDeep) as error:
            return WritesBetweenCalls(run, (), (), str(error) or type(error).__name__)
        finally:
            if not transactions.has_journal(run):
                self.drop()

    def _below_area(self) -> str:
        return os.path.relpath(self._upper, self._transactions.area.path)

    def _drop_protected(self, found: LayerContents, granted_paths: Sequence[str]) -> tuple[str, ...]:
        """Remove from the layer, and from `found`, the files that could run code later on this machine, until the guard
        has no objection. Returns the removed paths."""
        dropped: dict[str, None] = {}
        with Tree(self._upper, forced=True) as upper:
            while (
                objection := self._transactions.objections.of_guard(found.entries, self._below_area(), granted_paths)
            ) is not None:
                paths = [path for path in getattr(objection, "paths", ()) if path not in dropped]
                if not paths:  # The guard names no paths: drop everything.
                    paths = [each.path for each in found.entries]
                dropped.update(dict.fromkeys(paths))
                for path in paths:
                    remove_inside(upper, path)
                gone = tuple(f"{path}/" for path in paths)
                found.entries[:] = [
                    each for each in found.entries if each.path not in dropped and not each.path.startswith(gone)
                ]
        return tuple(dropped)


class SessionTransaction(OverlayTransaction):
    """The transaction of one call of a session process."""

    def __init__(
        self,
        transactions: Transactions,
        owner: Owner,
        calls: SessionCalls,
        holders: Sequence[str],
        written: WritesBetweenCalls | None,
        view: View,
    ) -> None:
        super().__init__(transactions, owner, makes_calls=True, view=view)
        self._calls = calls
        self._holders = list(holders)
        self.written = written
        """What the process wrote before this call."""

    @contextlib.asynccontextmanager
    async def at_rest(self) -> AsyncIterator[str | None]:
        """Within this context, the process is stopped. Yields the reason why the call's changes may be incomplete, or
        None. Afterwards the process goes on, and the next call may begin."""
        session = self._calls.session
        assert session is not None
        try:
            with contextlib.suppress(ConnectionResetError):
                self._holders += await await_uncancellable(session.stop())
            found = [*dict.fromkeys(self._holders)]
            yield _describe_holders(found) if found else None
        finally:
            try:
                if not session.is_over:
                    await await_uncancellable(self._calls.after_call(session))
            finally:
                self._calls.release()

    def finish(
        self,
        action: EndAction,
        *,
        granted_paths: Sequence[str] = (),
        why: str | None = None,
        stopped: Callable[[], bool],
        doubt: str | None = None,
        is_layer_open: Callable[[], bool] = lambda: True,
    ) -> TransactionResult:
        """Commit, hold or discard a copy of the layer. `is_layer_open` is ignored: the process still exists, and may
        have any file of the layer open."""
        return super().finish(
            action, granted_paths=granted_paths, why=why, stopped=stopped, doubt=doubt, is_layer_open=lambda: True
        )


def _describe_holders(holders: Sequence[str]) -> str:
    more = f" and {len(holders) - MOST_HOLDERS} more" if len(holders) > MOST_HOLDERS else ""
    names = ", ".join(map(shown, holders[:MOST_HOLDERS]))
    return f"its process still holds files from before the call ({names}{more}): writes there are lost"


def _list_paths(paths: Sequence[str]) -> str:
    return ", ".join(map(shown, paths[:20])) + (f" and {len(paths) - 20:_} more" if len(paths) > 20 else "")
