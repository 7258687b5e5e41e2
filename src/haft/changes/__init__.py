"""Change tracking: which files a call changed, and how the changes are committed, held, shown, undone and redone.

`engine_selector` chooses the engine that finds out what a call changed; the engines are `overlay`, `snapshot` and
`declared`. `transactions` commits, holds or discards each change set: `objections` says what speaks against a commit,
`commit.plan` lists its steps, and `commit.journal` takes them. `published` keeps commits apart from the views of
running calls. `reversal` is undo and redo. A session process is a process that a tool keeps running between its calls.

Docstrings in this package use these words:

- area: the directory with the layers, held files and replaced files of one workspace; `commit.area` shows its content
- place: a path relative to the area, unless it begins with `INSIDE` of `commit.steps`
- original: a file that a commit replaced or deleted; haft moves it to the area, and undo moves it back
- entry: the state of one path (kind, mode, content and so on) at one moment
- manifest: the list of paths that a run changed, with the entry of each path before and after
- journal: the manifest of a run, written to disk before the first step of its commit
- blob store: the store of file contents, by digest
- nested call: a call that a running call makes through haft
- guard: the check that objects to changes of protected paths: files that could run code later on this machine
- widen a mode: add permission bits for the owner for a moment, so that haft can read or write
"""

from typing import TYPE_CHECKING

from haft.lazy import face

if TYPE_CHECKING:
    from haft.changes.between_calls import describe_paths
    from haft.changes.commit.area import Area, filesystem, find_area, known_areas, mounts_inside, remove, workspace_key
    from haft.changes.commit.images import Side
    from haft.changes.commit.manifest import Manifest, PathChange
    from haft.changes.commit.read_entry import CallStopped
    from haft.changes.diff.blame import BlamedLine, Origin, blame
    from haft.changes.diff.difference import FileDifference, difference, differences
    from haft.changes.diff.diffstat import stat_lines
    from haft.changes.diff.file_history import FileEdit, file_history
    from haft.changes.diff.person_diff import diff_text
    from haft.changes.engine_selector import EngineSelector, Transaction
    from haft.changes.engines.observed import ObservedFiles
    from haft.changes.engines.scope import Scope
    from haft.changes.engines.session import SessionTransaction, WritesBetweenCalls
    from haft.changes.guard.guard import offences
    from haft.changes.held_changes import apply, chosen_paths, drop
    from haft.changes.held_files import hold_files
    from haft.changes.kept_changes import ChangeSet, KeptChanges
    from haft.changes.ledger import Ledger, Row
    from haft.changes.live_changes import LiveChanges, open_live_changes
    from haft.changes.merging import MergedText, MergePlan, Texts, apply_merge, plan_merge, show_merge
    from haft.changes.nested_calls import Lock, has_workspace_alone, share_lock
    from haft.changes.objections import Guard
    from haft.changes.published.person_mark import PersonMark
    from haft.changes.published.register import Register
    from haft.changes.published.views import View, Views, exempt
    from haft.changes.recovery import recover, recover_left_commits, take_back_published
    from haft.changes.reversal import ReversalResult, preview_reversal, reverse
    from haft.changes.reversal_plan import Direction
    from haft.changes.store.blobs import Blobs, DamagedBlob
    from haft.changes.store.bounds import Bounds, is_due
    from haft.changes.store.promises import broken_promises
    from haft.changes.store.store import PruneResult, Store, no_pruning
    from haft.changes.store.usage import HeldChangeSet, Usage, format_bytes
    from haft.changes.tools import ChangesTool, Merge, OwnChanges, Verb
    from haft.changes.transactions import EndAction, Owner, TransactionResult, Transactions
    from haft.changes.uncancellable import run_uncancellable
else:
    __getattr__ = face(
        __name__,
        {
            "between_calls": "describe_paths",
            "commit.area": "Area filesystem find_area known_areas mounts_inside remove workspace_key",
            "commit.images": "Side",
            "commit.read_entry": "CallStopped",
            "commit.manifest": "PathChange Manifest",
            "engine_selector": "EngineSelector Transaction",
            "diff.blame": "BlamedLine Origin blame",
            "diff.difference": "FileDifference difference differences",
            "diff.diffstat": "stat_lines",
            "diff.file_history": "FileEdit file_history",
            "diff.person_diff": "diff_text",
            "engines.observed": "ObservedFiles",
            "engines.scope": "Scope",
            "engines.session": "SessionTransaction WritesBetweenCalls",
            "guard.guard": "offences",
            "merging": "MergePlan MergedText Texts apply_merge plan_merge show_merge",
            "nested_calls": "Lock has_workspace_alone share_lock",
            "held_files": "hold_files",
            "ledger": "Ledger Row",
            "live_changes": "LiveChanges open_live_changes",
            "kept_changes": "ChangeSet KeptChanges",
            "published.person_mark": "PersonMark",
            "published.register": "Register",
            "published.views": "View Views exempt",
            "recovery": "recover recover_left_commits take_back_published",
            "reversal": "ReversalResult preview_reversal reverse",
            "held_changes": "apply chosen_paths drop",
            "store.blobs": "Blobs DamagedBlob",
            "store.bounds": "Bounds is_due",
            "store.promises": "broken_promises",
            "store.store": "PruneResult Store no_pruning",
            "store.usage": "HeldChangeSet Usage format_bytes",
            "uncancellable": "run_uncancellable",
            "tools": "ChangesTool Merge OwnChanges Verb",
            "objections": "Guard",
            "transactions": "EndAction Owner TransactionResult Transactions",
            "reversal_plan": "Direction",
        },
    )
