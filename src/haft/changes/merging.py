"""Merging held changes with the changes that others have made to the same files meanwhile.

Three states of a file matter: the *base*, as the run found it; *theirs*, as the run left it; and *ours*, the
workspace's own file now. If only one side changed something, that side counts. If both changed the content of a text
file, somebody must merge the three texts: this module only collects them, and later commits the result. Other files
that both sides changed cannot be merged.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, BinaryIO, Final, cast

from haft.changes.candidates import last_changes, with_parents
from haft.changes.commit.attributes import set_attributes
from haft.changes.commit.entry import UNREADABLE, Entry
from haft.changes.commit.images import Images, open_or_none
from haft.changes.commit.manifest import Manifest, PathChange
from haft.changes.commit.read_entry import read_entry
from haft.changes.commit.steps import as_latin, from_latin
from haft.changes.commit.tree import Tree
from haft.changes.diff.difference import FileDifference, differences
from haft.changes.held_changes import MERGED, commit_held, find_held
from haft.changes.transactions import LayerSources, TransactionResult, Transactions
from haft.contracts import BadUsage, Conflict, ToolFailed
from haft.files import digest_of, remove
from haft.values import dataclass, field, replace

MOST_BYTES: Final = 1_000_000
"""The size of the largest file that is merged."""
_MOST_RUNS: Final = 200
"""How many runs that changed a file are searched for its earlier content."""


@dataclass(frozen=True, slots=True)
class Texts:
    """The three texts of a file that both sides changed."""

    path: str
    base: bytes
    ours: bytes
    theirs: bytes


@dataclass(frozen=True, slots=True)
class MergedText:
    """The merge of three texts."""

    path: str
    content: bytes
    """If the merge is not clean, it has conflict markers."""
    is_clean: bool


@dataclass(slots=True)
class MergePlan:
    """What applying held changes with a merge would do."""

    run: str
    entries: list[PathChange] = field(default_factory=list)
    """The changes of the workspace's own files as they are now. The content of `texts` is still missing."""
    texts: list[Texts] = field(default_factory=list)
    problems: dict[str, str] = field(default_factory=dict)
    """By path that cannot be merged: the reason."""
    modes: dict[str, Entry] = field(default_factory=dict)
    """By path whose content or attributes come from both sides: the attributes that the file gets."""

    def is_like(self, other: MergePlan) -> bool:
        """Whether the workspace and the held changes are the same in both plans."""
        mine, others = ([*map(_key, plan.entries)] for plan in (self, other))
        return mine == others and self.texts == other.texts and self.problems == other.problems


def _key(each: PathChange) -> tuple[Any, ...]:
    before, after = each.before, each.after
    return each.path, before and replace(before, inode=0, links=0, ctime_ns=0), after and after.content


def plan_merge(transactions: Transactions, run: str, stopped: Callable[[], bool] = lambda: False) -> MergePlan:
    """Find out what a merge of the held changes of a run must do. Changes nothing."""
    with transactions.publisher.locked_and_settled(stopped):
        held, manifest = find_held(transactions, run)
        return _Planner(transactions, held, manifest).plan()


def show_merge(transactions: Transactions, plan: MergePlan, merged: Sequence[MergedText]) -> Iterator[FileDifference]:
    """The differences between the workspace's own files and the result, also of files that still have markers."""
    texts = {each.path: each.content for each in merged}
    entries = []
    for each in plan.entries:
        content, wanted = texts.get(each.path), plan.modes.get(each.path, each.after)
        if wanted is not None and each.path in plan.modes:
            wanted = replace(wanted, content=each.after.content if each.after is not None else None)
        if wanted is not None and content is not None:
            wanted = replace(wanted, content=digest_of(content), size=len(content))
        entries.append(replace(each, after=wanted))
    held = os.path.join(transactions.area.held, plan.run, "upper")
    with transactions.tree() as workspace, Tree(held, forced=True) as theirs:

        def read(each: PathChange, side: str) -> BinaryIO | None:
            if side == "after" and each.path in texts:
                return io.BytesIO(texts[each.path])
            return open_or_none(workspace if side == "before" else theirs, each.path)

        yield from differences(entries, read)


def apply_merge(
    transactions: Transactions,
    plan: MergePlan,
    merged: Sequence[MergedText],
    stopped: Callable[[], bool] = lambda: False,
) -> TransactionResult:
    """Commit held changes with the merged files. Commits nothing if a file is not merged cleanly, or if the workspace
    or the held changes are no longer as in `plan`."""
    with transactions.publisher.locked_and_settled(stopped):
        held, manifest = find_held(transactions, plan.run)
        open_paths = [*plan.problems, *(each.path for each in merged if not each.is_clean)]
        if open_paths or {each.path for each in merged} != {each.path for each in plan.texts}:
            raise BadUsage(f"{plan.run} was not applied: {', '.join(open_paths[:3])} is still in conflict")
        if not _Planner(transactions, held, manifest).plan().is_like(plan):
            error = Conflict(
                "nothing was applied: a file changed while you looked at the merge",
                hint=f"merge again: `haft changes apply {plan.run} --merge`",
            )
            return TransactionResult(manifest.changes("held", reason=error.message), error)
        if not plan.entries:
            raise BadUsage(
                f"the workspace has all changes of {plan.run} already",
                hint=f"`haft changes drop {plan.run}` drops them",
            )
        try:
            entries, numbers = _written(held, plan, {each.path: each.content for each in merged})
            sources = _MergedSources(transactions, plan.run, numbers)
            notes = {**manifest.notes, "accepted": True, "merged": [as_latin(path) for path in numbers]}
            return commit_held(transactions, held, replace(manifest, entries=tuple(entries), notes=notes), sources)
        except OSError as failure:
            failed = ToolFailed(f"its changes are still held: the disk failed ({failure})")
            return TransactionResult(manifest.changes("held", reason=failed.message), failed)


def _written(held: str, plan: MergePlan, contents: Mapping[str, bytes]) -> tuple[list[PathChange], dict[str, int]]:
    """Write the merged files beside the held ones, and return the change set with them, and the number of each."""
    place = os.path.join(held, MERGED)
    remove(place)
    os.mkdir(place, 0o700)
    entries, numbers = [], dict[str, int]()
    with Tree(place, forced=True) as tree, Tree(os.path.join(held, "upper"), forced=True) as theirs:
        for each in plan.entries:
            wanted = plan.modes.get(each.path)
            if wanted is not None:
                numbers[each.path] = number = len(numbers)
                content = contents.get(each.path)
                if content is None:
                    with os.fdopen(theirs.read(each.path), "rb") as file:
                        content = file.read()
                _write(os.path.join(place, str(number)), content, wanted)
                each = replace(each, after=read_entry(tree, str(number), forced=True))
            entries.append(each)
    return entries, numbers


def _write(path: str, content: bytes, wanted: Entry) -> None:
    with open(path, "xb") as file:
        file.write(content)
        if (wanted.uid, wanted.gid) != (os.geteuid(), os.getegid()):
            os.fchown(file.fileno(), wanted.uid, wanted.gid)
        set_attributes(file.fileno(), wanted.attributes)
        os.fchmod(file.fileno(), wanted.mode & 0o7777)


class _MergedSources(LayerSources):
    """The new files of held changes, some of them merged."""

    def __init__(self, transactions: Transactions, run: str, numbers: Mapping[str, int]) -> None:
        super().__init__(f"{transactions.live_in_area}/{run}/upper", transactions, run)
        self._numbers = numbers

    def place_of(self, each: PathChange) -> str | None:
        number = self._numbers.get(each.path)
        if number is None:
            return super().place_of(each)
        merged = f"{self._transactions.live_in_area}/{self._run}/{MERGED}/{number}"
        return self._transactions.staging.make_renamable(self._run, merged, each.path)


class _Planner:
    """Makes the plan of one merge. Used under the workspace lock."""

    def __init__(self, transactions: Transactions, held: str, manifest: Manifest) -> None:
        self._transactions = transactions
        self._held = held
        self._manifest = manifest
        self._plan = MergePlan(manifest.run)
        self._found_in_conflict = {from_latin(path) for path in manifest.notes.get("conflicts", ())}
        self._bases: Mapping[str, Any] = manifest.notes.get("bases", {})
        self._runs: dict[str, list[str]] = {}

    def plan(self) -> MergePlan:
        images = Images(self._transactions.area, self._transactions.blobs)
        try:
            with self._transactions.tree() as workspace:
                for each in self._manifest.entries:
                    ours = read_entry(workspace, each.path, forced=True)
                    problem = self._take(each, ours, workspace, images)
                    if problem is not None:
                        self._plan.problems[each.path] = problem
        finally:
            images.close()
        return self._plan

    def _take(self, each: PathChange, ours: Entry | None, workspace: Tree, images: Images) -> str | None:
        """Add one path to the plan. Returns the reason if it cannot be merged, otherwise None."""
        theirs, entries = each.after, self._plan.entries
        if (ours is None and theirs is None) or (ours is not None and ours.is_like(theirs)):
            return None
        base, is_known = self._base(each)
        if is_known and (ours.is_like(base) if ours is not None else base is None):
            entries.append(PathChange(each.path, ours, theirs))
            return None
        if theirs is None:
            return "the run deleted it, and somebody else changed it"
        if ours is None:
            return "the run changed it, and somebody else deleted it"
        if ours.kind != theirs.kind:
            return f"the run made it a {theirs.kind}, and now it is a {ours.kind}"
        if theirs.is_directory and ours.is_directory and base is None and ours.mode == theirs.mode:
            return None
        if theirs.kind != "file":
            return f"it is a {theirs.kind}, and both sides changed it"
        if not is_known:
            return "haft has not kept the file as the run found it"
        return self._take_file(each.path, base, ours, theirs, workspace, images)

    def _take_file(
        self, path: str, base: Entry | None, ours: Entry, theirs: Entry, workspace: Tree, images: Images
    ) -> str | None:
        wanted = ours
        for name in ("mode", "uid", "gid", "attributes"):
            mine, other, was = (getattr(one, name, None) for one in (ours, theirs, base))
            if mine != other and was == mine:
                changed: dict[str, Any] = {name: other}
                wanted = replace(wanted, **changed)
            elif mine != other and was != other:
                return f"both sides changed its {'mode' if name == 'mode' else 'owner or attributes'}"
        was_content = None if base is None else base.content
        if UNREADABLE in (ours.content, theirs.content, was_content):
            return "it cannot be read"
        if was_content == theirs.content != ours.content and wanted != ours:
            return "somebody else changed its content, and the run its mode or owner"
        if theirs.content in (ours.content, was_content):
            if wanted != ours:
                self._add(path, ours, theirs, wanted)
            return None
        if ours.content == was_content:
            self._add(path, ours, theirs, wanted)
            return None
        texts = self._texts(path, base, ours, theirs, workspace, images)
        if isinstance(texts, str):
            return texts
        self._plan.texts.append(texts)
        self._add(path, ours, theirs, wanted)
        return None

    def _add(self, path: str, ours: Entry, theirs: Entry, wanted: Entry) -> None:
        self._plan.entries.append(PathChange(path, ours, theirs))
        self._plan.modes[path] = wanted

    def _texts(
        self, path: str, base: Entry | None, ours: Entry, theirs: Entry, workspace: Tree, images: Images
    ) -> Texts | str:
        if max(ours.size, theirs.size, 0 if base is None else base.size) > MOST_BYTES:
            return f"it is larger than {MOST_BYTES:_} bytes"
        upper = os.path.relpath(os.path.join(self._held, "upper"), self._transactions.area.path)
        opened = (
            images.open(workspace, PathChange(path, base, theirs), "before", lambda: self._runs_of(path)),
            open_or_none(workspace, path),
            open_or_none(images.ours, f"{upper}/{path}"),
        )
        contents: list[bytes] = []
        for file, entry in zip(opened, (base, ours, theirs), strict=True):
            if file is None and entry is not None:
                return "haft has not kept the file as the run found it"
            if file is None:
                contents.append(b"")
                continue
            with file:
                contents.append(file.read())
        if any(b"\0" in content for content in contents):
            return "it is not text, and both sides changed it"
        return Texts(path, *contents)

    def _base(self, each: PathChange) -> tuple[Entry | None, bool]:
        """The state that the run found, and whether it is known."""
        if (known := self._bases.get(as_latin(each.path), "")) != "":
            return Entry.from_json(cast("list[Any] | None", known)), True
        if each.path not in self._found_in_conflict:
            return each.before, True
        # Somebody changed it while the run was in progress: the first who did so replaced the state that the run found.
        began, first = self._manifest.notes.get("first_began", self._manifest.notes.get("began", 0.0)), None
        for row in last_changes(self._transactions.ledger, self._transactions.workspace, [each.path], 0):
            if row.at < began:
                break
            other = Manifest.read(os.path.join(self._transactions.area.path, row.directory))
            first = next((one for one in other.entries if one.path == each.path), first) if other else first
        return (None, False) if first is None else (first.before, True)

    def _runs_of(self, path: str) -> list[str]:
        """The runs whose originals may hold an earlier content of a path."""
        ledger, workspace = self._transactions.ledger, self._transactions.workspace
        rows = ledger.touching(workspace, [*with_parents(path)], after=0, limit=_MOST_RUNS)
        return [row.run for row in rows if row.kept]
