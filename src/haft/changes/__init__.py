"""What a call altered: transactions, change sets, diff, undo and redo.

`engine_selector` chooses the engine of a call; `overlay`, `snapshotting` and `declared` are the three; `transactions`
sees every change set to its end, by the steps that `plan` makes of it and `commit` takes. `reversing` is undo and
redo."""

from typing import TYPE_CHECKING

from haft.lazy import face

if TYPE_CHECKING:
    from haft.changes.between import listed
    from haft.changes.committing.area import Area, filesystem, mounts_inside, remove, workspace_key
    from haft.changes.committing.images import Side
    from haft.changes.committing.looking import Stopped
    from haft.changes.committing.manifest import Altered, Manifest
    from haft.changes.diff.difference import FileDifference, difference, differences
    from haft.changes.diff.diffstat import stat_lines
    from haft.changes.engine_selector import EngineSelector, Transaction
    from haft.changes.engines.scope import Scope
    from haft.changes.engines.session import SessionTransaction, WrittenBetween
    from haft.changes.guarding.guard import offences
    from haft.changes.joining import Lock, sharing
    from haft.changes.ledger import Ledger, Row
    from haft.changes.reading import ChangeSet, KeptChanges
    from haft.changes.recovering import recover, recover_left
    from haft.changes.reversing import Reversed, look_ahead, reverse
    from haft.changes.settling import apply, drop
    from haft.changes.store.blobs import Blobs
    from haft.changes.store.bounds import Bounds, is_due
    from haft.changes.store.keeping import Pruned, Store
    from haft.changes.store.measuring import Held, Usage, in_words
    from haft.changes.threads import to_the_end
    from haft.changes.tools import ChangesTool, Verb
    from haft.changes.transactions import Fate, Guard, Owner, Settled, Transactions
    from haft.changes.undoing import Direction

__getattr__ = face(
    __name__,
    {
        "between": "listed",
        "committing.area": "Area filesystem mounts_inside remove workspace_key",
        "committing.images": "Side",
        "committing.looking": "Stopped",
        "committing.manifest": "Altered Manifest",
        "engine_selector": "EngineSelector Transaction",
        "diff.difference": "FileDifference difference differences",
        "diff.diffstat": "stat_lines",
        "engines.scope": "Scope",
        "engines.session": "SessionTransaction WrittenBetween",
        "guarding.guard": "offences",
        "joining": "Lock sharing",
        "ledger": "Ledger Row",
        "reading": "ChangeSet KeptChanges",
        "recovering": "recover recover_left",
        "reversing": "Reversed look_ahead reverse",
        "settling": "apply drop",
        "store.blobs": "Blobs",
        "store.bounds": "Bounds is_due",
        "store.keeping": "Pruned Store",
        "store.measuring": "Held Usage in_words",
        "threads": "to_the_end",
        "tools": "ChangesTool Verb",
        "transactions": "Fate Guard Owner Settled Transactions",
        "undoing": "Direction",
    },
)
