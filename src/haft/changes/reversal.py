"""Undo and redo as transactions of their own: one commit, journalled, that can itself be reversed."""

from __future__ import annotations

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
    """What an undo or redo did, or would."""

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
    """Refuse what cannot be reversed, with what could be done instead."""
    for row in rows:
        if row.verb != "call" and direction == "redo":
            raise BadUsage(
                f"{row.run} is itself {'an undo' if row.verb == 'undo' else 'a redo'}",
                hint=f"`haft undo {row.run}` takes it back; `redo` takes the run that was undone",
            )
        if row.state == "held":
            raise BadUsage(
                f"the changes of {row.run} are held: they are not in the workspace",
                hint=f"`haft changes apply {row.run}` takes them in, `haft changes drop {row.run}` throws them away",
            )
        if row.state == "discarded":
            raise BadUsage(f"the changes of {row.run} were thrown away")
        if direction == "undo" and row.state == "undone":
            raise BadUsage(f"{row.run} is undone already", hint=f"`haft redo {row.run}` brings it back")
        if direction == "redo" and row.state != "undone":
            raise BadUsage(f"{row.run} was not undone", hint="`redo` takes the run that was undone")
        if not row.kept:
            raise ToolFailed(
                f"{row.run} can no longer be reversed: {row.reason or 'what it changed is no longer kept'}"
            )


def preview_reversal(
    transactions: Transactions, direction: Direction, rows: Sequence[Row], *, force: bool
) -> ReversalResult:
    """What it would do, without doing it."""
    check_reversible(direction, rows)
    with transactions.locked(), transactions.tree() as workspace:
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
    """Do it, as the run `owner`. `Conflict` where someone stands in the way; nothing was touched then. `force` brings
    in what could run later only where a person says so."""
    check_reversible(direction, rows)
    with transactions.locked(stopped), transactions.tree() as workspace:
        rows = [transactions.ledger.get(row.run) or row for row in rows]
        check_reversible(direction, rows)  # Another process may have been faster.
        plan = plan_reversal(direction, rows, transactions.area, workspace, transactions.ledger, force=force)
        if plan.conflicts:
            raise ReversalConflict(direction, _result(plan))
        return _reverse(transactions, plan, owner, workspace, is_guarded=not (force and by_person))


class ReversalConflict(Conflict):
    """Later runs or a person changed the same paths."""

    def __init__(self, direction: Direction, found: ReversalResult) -> None:
        self.found = found
        named = [f"`{shown(each.path)}` ({each.by})" for each in found.conflicts]
        more = f" and {len(named) - 5} more" if len(named) > 5 else ""
        super().__init__(
            f"it was changed again since: {', '.join(named[:5])}{more}; nothing was touched",
            hint=f"{direction} what came later first, or use --force: what is replaced is kept",
        )


class ReversalUnfinished(ToolFailed):
    """The disk failed in the middle: the next one who takes the lock finishes it."""

    def __init__(self, direction: Direction, manifest: Manifest, left: CommitUnfinished) -> None:
        super().__init__(
            f"the disk failed in the middle of this {direction} ({shown(left.path)}: {left.why}): it is half done",
            hint="it is finished by the next call or `haft` command once the disk works again",
        )
        self.changes = replace(manifest, complete=False).changes("committed", reason=self.message)


def _reverse(
    transactions: Transactions, plan: ReversalPlan, owner: Owner, workspace: Tree, *, is_guarded: bool
) -> ReversalResult:
    run, area = owner.run, transactions.area
    if plan.lost:
        raise ToolFailed(f"{', '.join(plan.lost)} can no longer be reversed: what it changed is no longer kept")
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
            lambda place, path: transactions.make_renamable(run, place, path),
            lambda known, path: transactions.make_hard_link(run, known, path),
        )
        for path in coming:
            sources.require(path)
        if sources.lost:
            named = ", ".join(f"`{shown(path)}`" for path in sources.lost[:3])
            raise ToolFailed(
                f"what {named} held is no longer kept, or was changed where it was kept; nothing was touched"
            )
        if is_guarded and (error := _objection(transactions, plan, images, workspace, candidates)) is not None:
            raise error
        manifest = transactions.commit(run, manifest, sources)
        if missing := [*_unset_attributes(rebuilder), *_separated_hard_links(plan, workspace)]:
            manifest = replace(manifest, complete=False, reason="; ".join(missing))
    except CommitUnfinished as left:
        if left.becomes == "committed":
            raise ReversalUnfinished(plan.direction, manifest, left) from left
        raise ToolFailed(f"the disk failed ({shown(left.path)}: {left.why}): what was done was taken back") from left
    except DamagedBlob as damaged:
        raise ToolFailed(f"what is kept is damaged, and nothing was touched: {damaged}") from damaged
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
        if not transactions.has_journal(run):  # Else what is still to come in waits there.
            remove(os.path.join(area.path, layer))
    transactions.finish(manifest)
    return _result(plan, manifest.changes("committed"))


def _unset_attributes(rebuilder: Rebuilder) -> list[str]:
    named = ", ".join(map(shown, dict.fromkeys(rebuilder.unset_attributes)))
    return [f"extended attributes could not be set: {named}"] if named else []


def _separated_hard_links(plan: ReversalPlan, workspace: Tree) -> list[str]:
    """What should be one file under several names again, and is not: someone has changed one of them since."""
    workspace.forget()
    parted = []
    for group in sorted({plan.linked_names[each.path] for each in plan.entries if each.path in plan.linked_names}):
        found = [workspace.status(name) for name in group]
        if len({each.st_ino for each in found if each is not None}) > 1:
            parted.append(", ".join(map(shown, group[:3])) + ("" if len(group) <= 3 else ", …"))
    return [f"{' and '.join(parted)}: were one file each (hard links), and are not any more"] if parted else []


def _objection(
    transactions: Transactions,
    plan: ReversalPlan,
    images: Images,
    workspace: Tree,
    candidates: Callable[[str], list[str]],
) -> HaftError | None:
    """What an undo puts back was there before. But it may bring something to life that was left lying meanwhile, and a
    redo brings things in again that were judged when other things lay beside them."""

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
        f"this {plan.direction} would bring in what could run later on this machine",
        error.message,
        "a person's `--force` does it",
    )


def _is_accepted(transactions: Transactions, run: str) -> bool:
    """Whether a person took it in, or granted what it touches."""
    manifest = Manifest.read(os.path.join(transactions.area.kept, run))
    return manifest is not None and bool(manifest.notes.get("accepted"))
