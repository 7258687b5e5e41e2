"""The changes of runs: methods that show, undo, redo, apply and drop them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Any, Final

from haft.changes import (
    ChangesTool,
    Direction,
    FileDifference,
    KeptChanges,
    Merge,
    MergedText,
    MergePlan,
    ReversalResult,
    Row,
    Verb,
    difference,
    plan_merge,
    preview_reversal,
    show_merge,
)
from haft.contracts import (
    BadUsage,
    Call,
    Conflict,
    Decision,
    NeedsPerson,
    Principal,
    RunId,
    ToolName,
    UnknownRun,
    new_run_id,
)
from haft.files import shown
from haft.pipeline import Run
from haft.service.assembly import Host
from haft.service.changes import nested_changes_text, nothing_to, rows_for, with_batches
from haft.service.text_merge import merge_texts
from haft.values import dataclass, replace

BY_NAME: Final = Decision(
    action="allow",
    layer="built-in",
    rule="whoever uses the service may call undo, redo, apply and drop",
    source="haft's own rules",
    by="person",
    reason="it was called directly",
)
_MOST_NAMED: Final = 5
BY_AGENT: Final = replace(BY_NAME, by="rule", reason="an agent called it directly")
BY_ANSWER: Final = replace(BY_NAME, reason="a person approved these changes of a trial run")


@dataclass(frozen=True, slots=True)
class HeldMerge:
    """The merge of the held changes of a run with the changes of others."""

    run: str
    plan: MergePlan
    merged: tuple[MergedText, ...]
    """The files that both sides changed."""
    differences: tuple[FileDifference, ...]
    """What would change in the workspace's own files. Files that are still in conflict have markers."""

    @property
    def unmerged(self) -> dict[str, str]:
        """The paths that are still in conflict, each with the reason."""
        marked = {each.path: "both sides changed the same lines" for each in self.merged if not each.is_clean}
        return marked | self.plan.problems


def still_in_conflict(merge: HeldMerge) -> Conflict:
    """The error for a merge that cannot be applied."""
    paths = [*merge.unmerged]
    named = ", ".join(f"`{shown(path)}`" for path in paths[:_MOST_NAMED])
    more = f" and {len(paths) - _MOST_NAMED} more" if len(paths) > _MOST_NAMED else ""
    return Conflict(
        f"nothing was applied: {named}{more} {'is' if len(paths) == 1 else 'are'} still in conflict",
        hint=f"`haft changes apply {merge.run} PATH…` applies other paths, and replaces the workspace's own files;"
        f" `haft changes drop {merge.run}` drops the changes",
    )


class HostChanges:
    """The change sets of a workspace."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def undo(
        self,
        *runs: str,
        thread: str | None = None,
        force: bool = False,
        who: str | Principal | None = None,
        run_id: RunId | None = None,
    ) -> Run:
        """Undo the changes of the named runs. If one of them cannot be undone, nothing is undone. Without named runs
        and without `thread`, the last run of `who` is undone (by default, of the service's own principal). Returns the
        run that does the undo, without waiting for its end. `thread` selects all runs of that thread; it is not the
        thread of the undo itself."""
        principal = self._host.acting(who)
        rows = self._rows("undo", runs, thread, principal.who)
        return self._settle("undo", [row.run for row in rows], principal, force=force, run_id=run_id)

    def redo(
        self, *runs: str, force: bool = False, who: str | Principal | None = None, run_id: RunId | None = None
    ) -> Run:
        """Redo the changes of runs that were undone. `runs` are the undone runs, not the runs that undid them. Returns
        the run that does the redo, without waiting for its end. An agent can redo only changes that it undid itself:
        raises `NeedsPerson` if someone else undid them."""
        principal = self._host.acting(who)
        rows = self._rows("redo", runs, None, principal.who)
        if principal.kind != "person":
            self._check_undone_by(principal, rows)
        return self._settle("redo", [row.run for row in rows], principal, force=force, run_id=run_id)

    def apply(
        self,
        run: str,
        *,
        paths: Sequence[str] = (),
        who: str | Principal | None = None,
        run_id: RunId | None = None,
    ) -> Run:
        """Apply the held changes of a run. With `paths`, apply only the changes of these paths and of everything below
        them: the rest stays held, and the run that applies them has these changes as its own. Paths are relative to the
        workspace. Returns the run that applies them, without waiting for its end. Raises `NeedsPerson` if this method
        acts for an agent and not for a person."""
        principal = self._host.acting(who)
        principal.must_be_person("apply")
        found = self._here([self._change_set("apply", run)])[0].run
        self._require_other(principal, found)
        return self._settle("apply", [found], principal, paths=paths, run_id=run_id)

    def apply_approved(
        self, run: str, paths: Sequence[str], *, granted: Sequence[str], principal: Principal, parent: RunId | None
    ) -> Run:
        """Apply those changes of a trial run that a person approved. Unlike in `apply`, the guard judges them, except
        in the `granted` paths. `parent` is the run that made the trial run, if one did."""
        return self._settle("apply", [run], principal, paths=paths, granted=granted, parent=parent)

    async def merge(self, run: str) -> HeldMerge:
        """Merge the held changes of a run with the changes that others have made to the same files. Changes nothing:
        `apply_merge` applies the result. Raises `ToolFailed` if git is missing."""
        host = self._host
        found = self._here([self._change_set("apply", run)])[0].run
        plan = await asyncio.to_thread(plan_merge, host.changes(), found)
        config = host.config
        merged = await merge_texts(plan.texts, found, host.home.path, host.environ, config.limits, config.sandbox_mode)
        differences = await asyncio.to_thread(lambda: tuple(show_merge(host.changes(), plan, merged)))
        return HeldMerge(found, plan, tuple(merged), differences)

    def apply_merge(self, merge: HeldMerge, *, who: str | Principal | None = None) -> Run:
        """Apply a merge that a person has seen. Returns the run that applies it, without waiting for its end. Raises
        `BadUsage` if some files are still in conflict, and `NeedsPerson` if this method acts for an agent."""
        principal = self._host.acting(who)
        principal.must_be_person("apply")
        if merge.unmerged:
            raise still_in_conflict(merge)
        self._require_other(principal, merge.run)
        return self._settle("apply", [merge.run], principal, merge=(merge.plan, merge.merged))

    def drop(self, run: str, *, who: str | Principal | None = None, run_id: RunId | None = None) -> Run:
        """Drop the held changes of a run. Returns the run that drops them, without waiting for its end."""
        principal = self._host.acting(who)
        return self._settle("drop", [self._here([self._change_set("drop", run)])[0].run], principal, run_id=run_id)

    def look_ahead(
        self, direction: Direction, *runs: str, thread: str | None = None, force: bool = False
    ) -> ReversalResult:
        """What an undo or redo would do, without doing it. Blocks the event loop."""
        rows = self._rows(direction, runs, thread, self._host.principal.who)
        return preview_reversal(self._host.changes(), direction, rows, force=force)

    async def plan(
        self, direction: Direction, *runs: str, thread: str | None = None, force: bool = False
    ) -> ReversalResult:
        """Like `look_ahead`, without blocking the event loop."""
        return await asyncio.to_thread(self.look_ahead, direction, *runs, thread=thread, force=force)

    def patch(self, run: str) -> str:
        """The changes of a run as a patch. Raises `BadUsage` if the run changed nothing. Blocks the event loop."""
        changes = self._host.changes()
        self._change_set("diff", run)
        with contextlib.closing(KeptChanges(changes.ledger, changes.blobs)) as kept:
            found = kept.find(run)
            patches = difference(found.entries, lambda each, side: kept.read(found, each, side))
            return "".join(each.text for each in patches if each.text)

    async def diff(self, run: str) -> str:
        """Like `patch`, without blocking the event loop."""
        return await asyncio.to_thread(self.patch, run)

    def _require_other(self, principal: Principal, run: str) -> None:
        """Raise `OwnCall` if somebody else must apply the changes of a run: see `approval.four_eyes`."""
        if self._host.config.four_eyes:
            record = self._host.history().find(run).record
            self._host.require_other(principal, record, f"the held changes of {run}")

    def _rows(self, direction: Direction, runs: Sequence[str], thread: str | None, who: str) -> list[Row]:
        changes = self._host.changes()
        runs = with_batches(runs, changes.ledger, self._host.history(), direction)
        for run in runs:
            if not (changes.ledger.of_parent(run) or self._made_by(run)):
                self._change_set(direction, run)
        return self._here(rows_for(changes.ledger, changes.workspace, who, runs, thread, direction, self._made_by))

    def _check_undone_by(self, principal: Principal, rows: Sequence[Row]) -> None:
        """Raise `NeedsPerson` if someone else undid one of these change sets: what a person took back, no agent brings
        back."""
        for row in rows:
            if row.state != "undone":
                continue
            by = self._host.history().find(row.latest).record
            if (by["who"], by.get("whoKind", "person")) != (principal.who, principal.kind):
                raise NeedsPerson(f"redo {row.run}, which {by['who']} undid,", principal.who, principal.kind)

    def _made_by(self, run: str) -> list[RunId]:
        return self._host.history().made_by(run)

    def _change_set(self, verb: str, run: str) -> Row:
        """The change set of a run. Raises `BadUsage` if the run has no change set, and `UnknownRun` if there is no such
        run."""
        try:
            return self._host.changes().ledger.find(run)
        except UnknownRun:
            record = self._host.history().find(run)
            hint = (
                nested_changes_text(self._host.changes().ledger, self._made_by(record.id)) if verb == "diff" else None
            )
            raise nothing_to(verb, record, hint) from None

    def _here(self, rows: list[Row]) -> list[Row]:
        """Returns `rows` unchanged. Raises `BadUsage` if one of these change sets belongs to another workspace."""
        for row in rows:
            if row.workspace != self._host.root.root:
                raise BadUsage(f"{row.run} changed {row.workspace}, which is not the workspace of this service")
        return rows

    def _settle(
        self,
        verb: Verb,
        runs: list[str],
        principal: Principal,
        *,
        force: bool = False,
        paths: Sequence[str] = (),
        merge: Merge | None = None,
        run_id: RunId | None = None,
        granted: Sequence[str] | None = None,
        parent: RunId | None = None,
    ) -> Run:
        arguments: dict[str, Any] = {"runs": runs, **({"force": True} if force else {})}
        if paths:
            arguments["paths"] = list(paths)
        if merge is not None:
            arguments["merge"] = True
        pipeline = self._host.running()
        if parent is None and (caller := pipeline.within()) is not None:
            parent = caller.id
        return pipeline.call(
            Call(
                run=run_id or new_run_id(),
                name=ToolName(verb),
                arguments=arguments,
                principal=principal,
                parent=parent,
                tool=ChangesTool(
                    verb,
                    self._host.changes(),
                    by_person=principal.kind == "person",
                    merge=merge,
                    granted_paths=granted,
                ),
                decision=BY_ANSWER if granted is not None else BY_NAME if principal.kind == "person" else BY_AGENT,
                secrets=self._host.known(),
            )
        )
