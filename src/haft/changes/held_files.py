"""Holds files that were written elsewhere: a private copy of a directory was changed, and a person decides whether the
directory itself gets these changes."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Sequence

from haft.changes.commit.exact_copy import copy
from haft.changes.commit.manifest import Manifest, PathChange
from haft.changes.commit.read_entry import read_entry
from haft.changes.commit.tree import Tree
from haft.changes.transactions import Owner, TransactionResult, Transactions


def hold_files(
    transactions: Transactions, owner: Owner, source: str, paths: Sequence[str], reason: str
) -> TransactionResult:
    """Hold the difference between the workspace and the directory `source`, for these paths, which are relative to both
    and no directories. A path that is missing in `source` is a deletion. If the disk fails, the result has an error,
    and says whether the changes are held nevertheless."""
    with transactions.locked():
        upper = f"{transactions.live_in_area}/{owner.run}.layer/upper"
        os.makedirs(os.path.join(transactions.area.path, upper), mode=0o700)
        entries: dict[str, PathChange] = {}
        with (
            Tree(source, forced=True) as new,
            transactions.tree() as workspace,
            Tree(transactions.area.path, forced=True) as ours,
        ):
            for path in sorted(paths):
                if new.status(path) is None:
                    before = read_entry(workspace, path, forced=True)
                    if before is not None:
                        entries[path] = PathChange(path, before, None)
                    continue
                parts = path.split("/")
                for count in range(1, len(parts)):
                    above = "/".join(parts[:count])
                    where, name = ours.at(f"{upper}/{above}")
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(name, 0o700, dir_fd=where)
                    if workspace.status(above) is None and above not in entries:
                        entries[above] = PathChange(above, None, read_entry(ours, f"{upper}/{above}", forced=True))
                copy(new, path, ours, f"{upper}/{path}")
                after = read_entry(ours, f"{upper}/{path}", forced=True)
                entries[path] = PathChange(path, read_entry(workspace, path, forced=True), after)
        manifest = Manifest(
            owner.run,
            transactions.workspace,
            "declared",
            tuple(entries[path] for path in sorted(entries)),
            notes={"began": time.time(), "owner": owner.to_json(), "verb": "call", "accepted": False},
        )
        if not manifest.entries:
            return TransactionResult(manifest.changes("none"))
        return transactions.end_held(owner, manifest, upper, reason)
