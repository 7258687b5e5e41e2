"""The one way in which this house loads late: a room's face names what it offers, and each name is fetched when it is
first used. Whoever only lists tools must not pay for what a call needs.

A face lists its names twice: for the type checker under `TYPE_CHECKING`, and for Python in the table given here. A test
holds the two against each other.
"""

from collections.abc import Callable, Mapping
from typing import Any


def face(room: str, offered: Mapping[str, str]) -> Callable[[str], Any]:
    """A module's `__getattr__`. `offered` has the modules of the room and, of each, the names that it gives."""
    homes = {name: module for module, names in offered.items() for name in names.split()}

    def fetch(name: str) -> Any:
        home = homes.get(name)
        if home is None:
            raise AttributeError(f"module {room!r} has no attribute {name!r}")
        import sys
        from importlib import import_module

        found = getattr(import_module(home if home.startswith("haft.") else f"{room}.{home}"), name)
        setattr(sys.modules[room], name, found)
        return found

    return fetch
