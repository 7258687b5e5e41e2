"""The storage implementation that haft ships with: one SQLite database in the state home."""

from haft.storage.sqlite.stores import SqliteStores

__all__ = ["SqliteStores"]
