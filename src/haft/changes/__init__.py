"""What a call altered: transactions, change sets, diff, undo and redo.

`coverage` chooses the engine of a call; `overlay`, `snapshotting` and `declared` are the three; `transactions` sees
every change set to its end, by the steps that `plan` makes of it and `commit` takes. `reversing` is undo and redo."""

from haft.changes.between import listed
from haft.changes.committing.looking import Stopped
from haft.changes.coverage import Coverage, Transaction
from haft.changes.threads import to_the_end
from haft.changes.tools import ChangesTool
from haft.changes.transactions import Fate, Owner, Settled, Transactions

__all__ = [
    "ChangesTool",
    "Coverage",
    "Fate",
    "Owner",
    "Settled",
    "Stopped",
    "Transaction",
    "Transactions",
    "listed",
    "to_the_end",
]
