"""The ledger: the list of all change sets. `storage` keeps it, and `storage/ports/change_sets.py` describes it."""

from haft.storage import Ledger, Row, Verb

__all__ = ["Ledger", "Row", "Verb"]
