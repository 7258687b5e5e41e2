"""Storage: the only room with a database, and the files that only grow.

`runs` and `audit` stand on it. It knows tables and bytes, not what they mean. Names are fetched when they are first
used: whoever only asks where the state home lies must not pay for a database.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from haft.storage.appended import AppendedFile
    from haft.storage.database import Database
    from haft.storage.definitions import KeptDefinitions
    from haft.storage.encoding import decode, encode, fragment
    from haft.storage.home import StateHome, default_home

_HOMES = {
    "AppendedFile": "appended",
    "Database": "database",
    "KeptDefinitions": "definitions",
    "StateHome": "home",
    "decode": "encoding",
    "default_home": "home",
    "encode": "encoding",
    "fragment": "encoding",
}

__all__ = ["AppendedFile", "Database", "KeptDefinitions", "StateHome", "decode", "default_home", "encode", "fragment"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    found = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = found
    return found
