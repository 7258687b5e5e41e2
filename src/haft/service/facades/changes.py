"""What runs changed: looked at, undone and redone, applied and dropped."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Any, Final

from haft.changes import (
    ChangesTool,
    Direction,
    KeptChanges,
    ReversalResult,
    Row,
    Verb,
    difference,
    preview_reversal,
)
from haft.contracts import BadUsage, Call, Decision, Principal, RunId, ToolName, UnknownRun, new_run_id
from haft.pipeline import Run
from haft.service.assembly import Host
from haft.service.changes import nothing_to, rows_for, told_of_calls

BY_NAME: Final = Decision(
    action="allow",
    layer="built-in",
    rule="undo, redo, apply and drop are called by whoever holds the service",
    source="haft's own rules",
    by="person",
    reason="it was asked for by name",
)


class HostChanges:
    """The change sets of a workspace."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def undo(
        self, *runs: str, thread: str | None = None, force: bool = False, who: str | Principal | None = None
    ) -> Run:
        """Take back what runs changed, all of them or none; without any, the last of whoever undoes. Returns at once
        with the run that does it. `thread` names runs to take back, and is not the thread of whoever undoes."""
        principal = self._host.acting(who)
        rows = self._rows("undo", runs, thread, principal.who)
        return self._settle("undo", [row.run for row in rows], principal, force=force)

    def redo(self, *runs: str, force: bool = False, who: str | Principal | None = None) -> Run:
        """Bring back what was undone; named are the runs that were undone."""
        principal = self._host.acting(who)
        rows = self._rows("redo", runs, None, principal.who)
        return self._settle("redo", [row.run for row in rows], principal, force=force)

    def apply(self, run: str, *, who: str | Principal | None = None) -> Run:
        """Commit what a run holds. `NeedsPerson` for agents."""
        principal = self._host.acting(who)
        principal.must_be_person("apply")
        return self._settle("apply", [self._here([self._change_set("apply", run)])[0].run], principal)

    def drop(self, run: str, *, who: str | Principal | None = None) -> Run:
        """Throw away what a run holds."""
        principal = self._host.acting(who)
        return self._settle("drop", [self._here([self._change_set("drop", run)])[0].run], principal)

    def look_ahead(
        self, direction: Direction, *runs: str, thread: str | None = None, force: bool = False
    ) -> ReversalResult:
        """What an undo or redo would do."""
        rows = self._rows(direction, runs, thread, self._host.principal.who)
        return preview_reversal(self._host.changes(), direction, rows, force=force)

    async def plan(
        self, direction: Direction, *runs: str, thread: str | None = None, force: bool = False
    ) -> ReversalResult:
        """The same, while the event loop goes on."""
        return await asyncio.to_thread(self.look_ahead, direction, *runs, thread=thread, force=force)

    def patch(self, run: str) -> str:
        """What a run changed, as a patch. `BadUsage` where it changed nothing."""
        changes = self._host.changes()
        self._change_set("diff", run)
        with contextlib.closing(KeptChanges(changes.ledger, changes.blobs)) as kept:
            found = kept.find(run)
            shown = difference(found.entries, lambda each, side: kept.read(found, each, side))
            return "".join(each.text for each in shown if each.text)

    async def diff(self, run: str) -> str:
        """The same, while the event loop goes on."""
        return await asyncio.to_thread(self.patch, run)

    def _rows(self, direction: Direction, runs: Sequence[str], thread: str | None, who: str) -> list[Row]:
        changes = self._host.changes()
        for run in runs:
            if not (run.startswith("b_") or changes.ledger.of_parent(run) or self._made_by(run)):
                self._change_set(direction, run)
        return self._here(rows_for(changes.ledger, changes.workspace, who, runs, thread, direction, self._made_by))

    def _made_by(self, run: str) -> list[RunId]:
        return self._host.history().made_by(run)

    def _change_set(self, verb: str, run: str) -> Row:
        """What a run changed; `BadUsage` where that is nothing, `UnknownRun` where there is no such run."""
        try:
            return self._host.changes().ledger.find(run)
        except UnknownRun:
            record = self._host.history().find(run)
            hint = told_of_calls(self._host.changes().ledger, self._made_by(record.id)) if verb == "diff" else None
            raise nothing_to(verb, record, hint) from None

    def _here(self, rows: list[Row]) -> list[Row]:
        """Only change sets of this workspace can be moved from here."""
        for row in rows:
            if row.workspace != self._host.root.root:
                raise BadUsage(f"{row.run} changed {row.workspace}, which is not the workspace of this service")
        return rows

    def _settle(self, verb: Verb, runs: list[str], principal: Principal, *, force: bool = False) -> Run:
        arguments: dict[str, Any] = {"runs": runs, **({"force": True} if force else {})}
        pipeline = self._host.running()
        caller = pipeline.within()
        return pipeline.call(
            Call(
                run=new_run_id(),
                name=ToolName(verb),
                arguments=arguments,
                principal=principal,
                parent=None if caller is None else caller.id,
                tool=ChangesTool(verb, self._host.changes(), by_person=principal.kind == "person"),
                decision=BY_NAME,
                secrets=self._host.known(),
            )
        )
