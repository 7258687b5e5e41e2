"""The ways in which haft loads late: a package's face names what it offers, and each name is fetched when it is
first used; a pattern is compiled when it is first used. Whoever only lists tools must not pay for what a call needs.

A face lists its names twice: for the type checker under `TYPE_CHECKING`, and for Python in the table given here. A test
holds the two against each other.
"""

import re
from collections.abc import Callable, Mapping
from importlib import import_module
from sys import modules
from typing import TYPE_CHECKING, Any


def face(room: str, offered: Mapping[str, str]) -> Callable[[str], Any]:
    """A module's `__getattr__`. `offered` has the modules of the package and, of each, the names that it gives."""
    homes = {
        name: module if module.startswith("haft.") else f"{room}.{module}"
        for module, names in offered.items()
        for name in names.split()
    }

    def fetch(name: str) -> Any:
        home = homes.get(name)
        if home is None:
            raise AttributeError(f"module {room!r} has no attribute {name!r}")
        try:
            return getattr(modules[home], name)
        except (KeyError, AttributeError):
            return getattr(import_module(home), name)  # It is not loaded, or another thread is still loading it.

    return fetch


if TYPE_CHECKING:
    from re import compile as regex
else:

    class regex:  # noqa: N801  stands for a function
        """A pattern that is compiled when it is first used: compiling costs more than loading the module around it."""

        def __init__(self, pattern: Any, flags: int = 0) -> None:
            self.pattern = pattern
            self._flags = flags

        def __getattr__(self, name: str) -> Any:
            found = getattr(re.compile(self.pattern, self._flags), name)
            setattr(self, name, found)
            return found


__all__ = ["face", "regex"]
