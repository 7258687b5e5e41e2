"""Undo and redo. Each undo or redo is a run of its own, with one journalled commit, and can itself be undone."""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable, Sequence
from typing import Any, BinaryIO

from haft.changes.candidates import Candidates
from haft.changes.commit.area import remove
from haft.changes.commit.images import Images, open_or_none
from haft.changes.commit.journal import CommitRefused, CommitUnfinished
from haft.changes.commit.manifest import Manifest, PathChange
from haft.changes.commit.rebuild import Rebuilder
from haft.changes.commit.tree import Tree
from haft.changes.ledger import Row
from haft.changes.reversal_plan import Direction, ReversalPlan, ReversalSources, plan_reversal
from haft.changes.store.blobs import DamagedBlob
from haft.changes.transactions import Owner, Transactions
from haft.contracts import BadUsage, Changes, Conflict, ConflictingPath, HaftError, SandboxDenied, ToolFailed
from haft.files import shown
from haft.values import dataclass, field, replace


@dataclass(frozen=True, slots=True)
class ReversalResult:
    """The result of an undo or redo, or of its preview."""

    runs: tuple[str, ...]
    plan: tuple[dict[str, str], ...]
    conflicts: tuple[ConflictingPath, ...]
    changes: Changes = field(default_factory=Changes)
    lost: tuple[str, ...] = ()

    def to_json(self, done_by: str | None) -> dict[str, Any]:
        return {
            "runs": list(self.runs),
            "plan": list(self.plan),
            "conflicts": [conflict.to_json() for conflict in self.conflicts],
            "undo": done_by,
        }


def check_reversible(direction: Direction, rows: Sequence[Row]) -> None:
    """Raise an error if one of the runs cannot be undone or redone; the hint says what to do instead."""
    for row in rows:
        if row.verb != "call" and direction == "redo":
            raise BadUsage(
                f"{row.run} is itself {'an undo' if row.verb == 'undo' else 'a redo'}",
                hint=f"`haft undo {row.run}` undoes it; `haft redo` needs the run that was undone",
            )
        if row.state == "held":
            raise BadUsage(
                f"the changes of {row.run} are held: they are not in the workspace",
                hint=f"`haft changes apply {row.run}` applies them, `haft changes drop {row.run}` discards them",
            )
        if row.state == "discarded":
            raise BadUsage(f"the changes of {row.run} were discarded")
        if direction == "undo" and row.state == "undone":
            raise BadUsage(f"{row.run} is already undone", hint=f"`haft redo {row.run}` restores its changes")
        if direction == "redo" and row.state != "undone":
            raise BadUsage(f"{row.run} was not undone", hint="`haft redo` needs a run that was undone")
        if not row.kept:
            raise ToolFailed(
                f"{row.run} can no longer be undone or redone: {row.reason or 'the replaced files are no longer kept'}"
            )


def preview_reversal(
    transactions: Transactions, direction: Direction, rows: Sequence[Row], *, force: bool
) -> ReversalResult:
    """What an undo or redo would do, without doing it. Raises `Conflict` if it would wait for a call that waits for a
    person."""
    check_reversible(direction, rows)
    publisher = transactions.publisher
    stopped = functools.partial(publisher.gives_way, lambda: False)
    with publisher.locked_and_settled(stopped), transactions.tree() as workspace:
        plan = plan_reversal(direction, rows, transactions.area, workspace, transactions.ledger, force=force)
        return _result(plan)


def _result(plan: ReversalPlan, changes: Changes | None = None, lost: Sequence[str] = ()) -> ReversalResult:
    return ReversalResult(
        tuple(row.run for row in plan.rows),
        tuple(plan.actions()),
        tuple(plan.conflicts),
        changes or Changes(),
        tuple(lost),
    )


def reverse(
    transactions: Transactions,
    direction: Direction,
    rows: Sequence[Row],
    owner: Owner,
    *,
    force: bool = False,
    by_person: bool = True,
    stopped: Callable[[], bool] = lambda: False,
) -> ReversalResult:
    """Undo or redo the runs in `rows`. The undo or redo is itself a run: `owner`. Raises `ReversalConflict`, with
    nothing changed, if others changed the same paths since. With `force`, these later changes are replaced too. If a
    person (`by_person`) uses `force`, the guard does not judge the files that come back."""
    check_reversible(direction, rows)
    with transactions.publisher.locked_and_settled(stopped), transactions.tree() as workspace:
        rows = [transactions.ledger.get(row.run) or row for row in rows]
        check_reversible(direction, rows)  # Another process may have reversed these runs before we got the lock.
        plan = plan_reversal(direction, rows, transactions.area, workspace, transactions.ledger, force=force)
        if plan.conflicts:
            raise ReversalConflict(direction, _result(plan))
        return _reverse(transactions, plan, owner, workspace, is_guarded=not (force and by_person))


class ReversalConflict(Conflict):
    """Nothing was undone or redone: later runs, or someone outside haft, changed the same paths."""

    def __init__(self, direction: Direction, found: ReversalResult) -> None:
        self.found = found
        names = [f"`{shown(each.path)}` ({each.by})" for each in found.conflicts]
        more = f" and {len(names) - 5} more" if len(names) > 5 else ""
        super().__init__(
            f"these paths changed again since: {', '.join(names[:5])}{more}; nothing was changed",
            hint=f"{direction} the later runs first, or use `--force` (haft keeps the files it replaces)",
        )


class ReversalUnfinished(ToolFailed):
    """The disk failed in the middle of an undo or redo. The next process that takes the workspace lock finishes it."""

    def __init__(self, direction: Direction, manifest: Manifest, left: CommitUnfinished) -> None:
        super().__init__(
            f"the disk failed in the middle of this {direction} ({shown(left.path)}: {left.why}): it is half done",
            hint="once the disk works again, the next call or `haft` command finishes it",
        )
        self.changes = replace(manifest, complete=False).changes("committed", reason=self.message)


def _reverse(
    transactions: Transactions, plan: ReversalPlan, owner: Owner, workspace: Tree, *, is_guarded: bool
) -> ReversalResult:
    run, area = owner.run, transactions.area
    if plan.lost:
        raise ToolFailed(
            f"{', '.join(plan.lost)} can no longer be undone or redone: the replaced files are no longer kept"
        )
    reverses = [row.run for row in plan.rows]
    manifest = Manifest(
        run,
        transactions.workspace,
        "declared",
        tuple(plan.entries),
        notes={
            "began": time.time(),
            "owner": owner.to_json(),
            "verb": plan.direction,
            "reverses": reverses,
        },
    )
    images = Images(area, transactions.blobs)
    layer = f"{transactions.live_in_area}/{run}.layer"
    rebuilder = Rebuilder(area.path, layer, transactions.blobs)
    try:
        coming = [each.path for each in plan.entries if each.after is not None]
        candidates = Candidates(transactions.ledger, plan.rows, coming).of
        sources = ReversalSources(
            images,
            workspace,
            plan,
            candidates,
            rebuilder,
            lambda place, path: transactions.staging.make_renamable(run, place, path),
            lambda known, path: transactions.staging.make_hard_link(run, known, path),
        )
        for path in coming:
            sources.require(path)
        if sources.lost:
            names = ", ".join(f"`{shown(path)}`" for path in sources.lost[:3])
            raise ToolFailed(
                f"the earlier content of {names} is no longer kept, or the kept copy was changed; nothing was changed"
            )
        if is_guarded and (error := _objection(transactions, plan, images, workspace, candidates)) is not None:
            raise error
        manifest = transactions.commit(run, manifest, sources)
        if missing := [*_unset_attributes(rebuilder), *_separated_hard_links(plan, transactions)]:
            manifest = replace(manifest, complete=False, reason="; ".join(missing))
    except CommitUnfinished as left:
        if left.becomes == "committed":
            raise ReversalUnfinished(plan.direction, manifest, left) from left
        raise ToolFailed(
            f"the disk failed ({shown(left.path)}: {left.why}): this {plan.direction} was reverted"
        ) from left
    except DamagedBlob as damaged:
        raise ToolFailed(f"a kept file is damaged, and nothing was changed: {damaged}") from damaged
    except CommitRefused as refusal:
        transactions.clear_displaced(run)
        remove(os.path.join(transactions.live, run))
        raise ReversalConflict(
            plan.direction, ReversalResult(tuple(reverses), tuple(plan.actions()), (ConflictingPath(refusal.path),))
        ) from refusal
    finally:
        images.close()
        rebuilder.close()
        workspace.forget()
        if not transactions.has_journal(run):  # An unfinished commit still needs the files in this directory.
            remove(os.path.join(area.path, layer))
    transactions.finish(manifest)
    return _result(plan, manifest.changes("committed"))


def _unset_attributes(rebuilder: Rebuilder) -> list[str]:
    names = ", ".join(map(shown, dict.fromkeys(rebuilder.unset_attributes)))
    return [f"extended attributes could not be set: {names}"] if names else []


def _separated_hard_links(plan: ReversalPlan, transactions: Transactions) -> list[str]:
    """A list with one sentence about the hard links that could not be restored, because one of the names was changed
    since; an empty list if there are none."""
    groups = sorted({plan.linked_names[each.path] for each in plan.entries if each.path in plan.linked_names})
    if not groups:
        return []
    parted = []
    with transactions.publisher.committed_tree() as committed:
        statuses = [(group, [committed.status(name) for name in group]) for group in groups]
    for group, found in statuses:
        if len({each.st_ino for each in found if each is not None}) > 1:
            parted.append(", ".join(map(shown, group[:3])) + ("" if len(group) <= 3 else ", …"))
    return [f"{' and '.join(parted)}: were hard links of one file, and are now separate files"] if parted else []


def _objection(
    transactions: Transactions,
    plan: ReversalPlan,
    images: Images,
    workspace: Tree,
    candidates: Callable[[str], list[str]],
) -> HaftError | None:
    """The guard's error for this undo or redo, or None. An undo restores files that were in the workspace before, but a
    restored file may now cause another file, which arrived since, to be run. A redo brings back files that the guard
    judged at the first run, when other files lay beside them."""

    def read(each: PathChange, side: str) -> BinaryIO | None:
        if side == "before":
            return open_or_none(workspace, each.path)
        after = each.after
        if after is None or after.kind != "file" or not after.content:
            return None
        if images.blobs.has(after.content):
            return images.blobs.open(after.content)
        place = images.original(each.path, after, candidates(each.path))
        return None if place is None else open_or_none(images.ours, place)

    restored = {each.path for each in plan.entries}
    if plan.direction == "redo" and not all(_is_accepted(transactions, row.run) for row in plan.rows):
        restored = set()
    error = transactions.guard(plan.entries, read, (), restored)
    if error is None:
        return None
    return SandboxDenied(
        f"this {plan.direction}: it would restore files that could run code later on this machine",
        error.message,
        "a person can force it with `--force`",
    )


def _is_accepted(transactions: Transactions, run: str) -> bool:
    """Whether a person applied the run's held changes, or the run had grants for paths."""
    manifest = Manifest.read(os.path.join(transactions.area.kept, run))
    return manifest is not None and bool(manifest.notes.get("accepted"))
