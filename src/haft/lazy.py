"""Lazy loading: each public name of a package is imported when it is first used, and each regular expression is
compiled when it is first used. Some modules of Python's library are imported on first use as well. So a command that
only lists tools does not load the code for calls.

A package's `__init__.py`, its face, lists its names twice: for the type checker under `TYPE_CHECKING`, and for Python
in the table that it passes to `face`. A test compares the two.
"""

import re
from collections.abc import Callable, Mapping
from importlib import import_module
from sys import modules
from typing import TYPE_CHECKING, Any


def face(package: str, exports: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the function that a package uses as its `__getattr__`. `exports` maps each module of the package to its
    public names, separated by blanks."""
    homes = {
        name: module if module.startswith("haft.") else f"{package}.{module}"
        for module, names in exports.items()
        for name in names.split()
    }

    def fetch(name: str) -> Any:
        home = homes.get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            return getattr(modules[home], name)
        except (KeyError, AttributeError):
            return getattr(import_module(home), name)  # The module is not loaded yet, or another thread is loading it.

    return fetch


if TYPE_CHECKING:
    from re import compile as regex
else:

    class regex:  # noqa: N801  stands for a function
        """A regular expression that is compiled on first use: compiling takes longer than loading its module."""

        def __init__(self, pattern: Any, flags: int = 0) -> None:
            self.pattern = pattern
            self._flags = flags

        def __getattr__(self, name: str) -> Any:
            found = getattr(re.compile(self.pattern, self._flags), name)
            setattr(self, name, found)
            return found


class late_module:  # noqa: N801  stands for a function
    """A module of Python's library that is imported on first use. Only for modules that take long to import."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        found = getattr(import_module(self._name), name)
        setattr(self, name, found)
        return found


__all__ = ["face", "late_module", "regex"]
