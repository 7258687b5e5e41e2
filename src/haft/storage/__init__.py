"""Storage: the only room with a database, and the files that only grow.

`runs` and `audit` stand on it. It knows tables and bytes, not what they mean. Names are fetched when they are first
used: whoever only asks where the state home lies must not pay for a database.
"""

from typing import TYPE_CHECKING

from haft.lazy import face

if TYPE_CHECKING:
    from haft.storage.appended import AppendedFile
    from haft.storage.database import Database
    from haft.storage.definitions import KeptDefinitions
    from haft.storage.encoding import decode, encode, fragment
    from haft.storage.home import StateHome, default_home

__getattr__ = face(
    __name__,
    {
        "appended": "AppendedFile",
        "database": "Database",
        "definitions": "KeptDefinitions",
        "encoding": "decode encode fragment",
        "home": "StateHome default_home",
    },
)
