"""Storage: the only room with a database, and the files that only grow.

`runs` and `audit` stand on it. It knows tables and bytes, not what they mean.
"""

from haft.storage.appended import AppendedFile
from haft.storage.database import Database
from haft.storage.encoding import decode, encode, fragment
from haft.storage.home import StateHome, default_home

__all__ = ["AppendedFile", "Database", "StateHome", "decode", "default_home", "encode", "fragment"]
