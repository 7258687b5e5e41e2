"""Undo, redo, apply and drop as tools, so that their runs are recorded like all others. Agents cannot call these tools
by name; only the program that opened the service can."""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal, TypeVar

from haft.changes.commit.read_entry import CallStopped
from haft.changes.held_changes import apply, apply_part, drop
from haft.changes.merging import MergedText, MergePlan, apply_merge
from haft.changes.reversal import ReversalConflict, ReversalResult, ReversalUnfinished, reverse
from haft.changes.transactions import Owner, Transactions
from haft.changes.uncancellable import run_uncancellable
from haft.contracts import Answer, Changes, Effects, HaftError, ToolContext, ToolName, ToolSpec

_Result = TypeVar("_Result")
Verb = Literal["undo", "redo", "apply", "drop"]

Merge = tuple[MergePlan, Sequence[MergedText]]

_DESCRIPTIONS = {
    "undo": "Undo the changes of runs.",
    "redo": "Redo changes that were undone.",
    "apply": "Apply the held changes of a run.",
    "drop": "Discard the held changes of a run.",
}
_SCHEMA = {
    "type": "object",
    "properties": {
        "runs": {"type": "array", "items": {"type": "string"}, "minItems": 1},
        "force": {"type": "boolean"},
        "paths": {"type": "array", "items": {"type": "string"}, "minItems": 1},
        "merge": {"type": "boolean"},
    },
    "required": ["runs"],
    "additionalProperties": False,
}


class OwnChanges:
    """A base class of tools that make their own change sets, so that the pipeline makes none for their calls."""


class ChangesTool(OwnChanges):
    """One of the four tools: undo, redo, apply or drop."""

    def __init__(
        self,
        verb: Verb,
        transactions: Transactions,
        *,
        by_person: bool = True,
        merge: Merge | None = None,
        granted_paths: Sequence[str] | None = None,
    ) -> None:
        """`by_person` says that a person, not an agent, wants the undo or redo. `merge` is a merge that a person has
        seen, for an `apply`. `granted_paths`: an `apply` of paths answers a request for approval, so the guard judges
        these changes, except in the granted paths."""
        self._merge = merge
        self._granted_paths = granted_paths
        self._by_person = by_person
        self._verb = verb
        self._transactions = transactions
        self.spec = ToolSpec(
            ToolName(verb),
            "builtin",
            _DESCRIPTIONS[verb],
            _SCHEMA,
            effects=Effects(),
            provenance="builtin",
            origin="haft.changes",
        )

    async def preprocess(self, arguments: dict[str, Any], context: ToolContext) -> dict[str, Any]:
        return arguments

    async def invoke(self, arguments: dict[str, Any], context: ToolContext) -> Answer:
        try:
            return await self._run(arguments, context)
        except ReversalConflict as error:
            found = error.found
            changes = Changes(conflicts=found.conflicts)
            return Answer(failure=error.failure(), result=found.to_json(None), changes=changes)
        except ReversalUnfinished as error:
            return Answer(failure=error.failure(), changes=error.changes)
        except HaftError as error:
            return Answer(failure=error.failure(), changes=Changes())  # Nothing was touched.

    async def _run(self, arguments: dict[str, Any], context: ToolContext) -> Answer:
        runs: Sequence[str] = arguments["runs"]
        owner = Owner(context.run, context.who, context.thread)
        transactions = self._transactions
        if self._verb in ("undo", "redo"):
            direction: Any = self._verb
            rows = [transactions.ledger.find(run) for run in runs]
            force = bool(arguments.get("force"))
            done = await self._in_thread(
                lambda stopped: reverse(
                    transactions, direction, rows, owner, force=force, by_person=self._by_person, stopped=stopped
                )
            )
            await run_uncancellable(self._settle)
            return Answer(text=_reversal_text(self._verb, done), result=done.to_json(context.run), changes=done.changes)
        row = transactions.ledger.find(runs[0])
        run = row.run
        if self._verb == "drop":
            changes = await run_uncancellable(lambda: drop(transactions, run))
            return Answer(
                text=f"{run}: {_count(len(changes.files))} dropped",
                result={"run": run, "state": "discarded"},
                changes=Changes(),
            )
        left = 0
        if paths := arguments.get("paths"):
            # The part belongs to the thread of the run, so that an undo of this thread takes it back too.
            owner = replace(owner, parent=run, thread=row.thread)
            granted = self._granted_paths
            part = await self._in_thread(lambda stopped: apply_part(transactions, run, paths, owner, stopped, granted))
            settled, left = part.result, part.left
        elif self._merge is not None:
            plan, merged = self._merge
            settled = await self._in_thread(lambda stopped: apply_merge(transactions, plan, merged, stopped))
        else:
            settled = await self._in_thread(lambda stopped: apply(transactions, run, stopped=stopped))
        await run_uncancellable(self._settle)
        if settled.error is not None:
            failure = settled.error.failure()
            if failure.hint is not None:
                failure = replace(failure, hint=failure.hint.replace("RUN", run))
            return Answer(
                failure=failure,
                result={"run": run, "state": settled.changes.state},
                changes=_changes_of_failed_apply(settled.changes),
            )
        text = f"{run}: {_count(len(settled.changes.files))} applied"
        result = {"run": run, "state": "committed", **({"left": left} if left else {})}
        return Answer(text=text, result=result, changes=settled.changes if left else Changes())

    def _settle(self) -> None:
        """Wait until the changes are in the workspace's own files, but not for a call that waits for a person."""
        publisher = self._transactions.publisher
        with contextlib.suppress(CallStopped):
            publisher.settle(lambda: publisher.held_up_by_person() is not None)

    async def _in_thread(self, work: Callable[[Callable[[], bool]], _Result]) -> _Result:
        """The result of `work`, which gets a function to call while it waits: see `Publisher.gives_way`."""
        stop: list[bool] = []
        stopped = functools.partial(self._transactions.publisher.gives_way, lambda: bool(stop))
        try:
            return await run_uncancellable(lambda: work(stopped), lambda: stop.append(True))
        except CallStopped:
            raise asyncio.CancelledError from None


def _changes_of_failed_apply(changes: Changes) -> Changes:
    """The changes that the run of a failed `apply` reports. They list no files, because the files are listed with the
    run that made the changes. If the commit was interrupted, the state stays `committed`, because the commit will be
    finished later."""
    if changes.state == "committed":
        return replace(changes, files=())
    return Changes(conflicts=changes.conflicts)


def _reversal_text(verb: str, done: ReversalResult) -> str:
    past = "undone" if verb == "undo" else "redone"
    lines = [f"{', '.join(done.runs)} {past}: {_count(len(done.changes.files))}"]
    lines += [f"  {step['action']} {step['path']}" for step in done.plan[:50]]
    if len(done.plan) > 50:
        lines.append(f"  and {len(done.plan) - 50} more")
    return "\n".join(lines)


def _count(files: int) -> str:
    return "1 path" if files == 1 else f"{files} paths"
