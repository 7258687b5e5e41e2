"""The list of change sets, as `storage` keeps it: `storage/ports/change_sets.py` says what it can do."""

from haft.storage import Ledger, Row, Verb

__all__ = ["Ledger", "Row", "Verb"]
