"""Storage: the only room with a database, and the files that only grow.

`runs` and `audit` stand on it. It knows tables and bytes, not what they mean. Names are fetched when they are first
used: whoever only asks where the state home lies must not pay for a database.
"""

from typing import TYPE_CHECKING

from haft.lazy import face

if TYPE_CHECKING:
    from haft.storage.appended import AppendedFile as AppendedFile
    from haft.storage.database import Database as Database
    from haft.storage.definitions import KeptDefinitions as KeptDefinitions
    from haft.storage.encoding import decode as decode
    from haft.storage.encoding import encode as encode
    from haft.storage.encoding import fragment as fragment
    from haft.storage.home import StateHome as StateHome
    from haft.storage.home import default_home as default_home

__getattr__ = face(
    __name__,
    {
        "AppendedFile": "appended",
        "Database": "database",
        "KeptDefinitions": "definitions",
        "StateHome": "home",
        "decode": "encoding",
        "default_home": "home",
        "encode": "encoding",
        "fragment": "encoding",
    },
)
