"""Chooses the storage implementation of a state home; no other module does."""

from __future__ import annotations

from haft.storage.home import StateHome
from haft.storage.ports.stores import Stores
from haft.storage.sqlite import SqliteStores


def open_stores(home: StateHome) -> Stores:
    """The storage of a state home: SQLite, unless the state home names another."""
    if home.opener is not None:
        return home.opener(home)

    return SqliteStores(home)
