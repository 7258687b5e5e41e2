"""Short run names for people. A short name is the shortest beginning of a run's name that no other run has. Every
command accepts it.

`printing` shortens the names in everything that it prints for a person. JSON always has the full names.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection
from typing import Final

from haft.contracts import HaftError
from haft.lazy import regex

_RUN: Final = regex(r"\br_[0-9a-f]{24}\b")
_known: dict[str, str] = {}
"""The short names that this process has looked up."""


def shortened(text: str) -> str:
    """`text` with every run name replaced by its short name. Names of unknown runs are not changed."""
    if "r_" not in text:
        return text
    new = {name for name in _RUN.findall(text) if name not in _known}
    if new:
        _known.update(_look_up(new))
    return _RUN.sub(lambda found: _known.get(found[0], found[0]), text)


def _look_up(names: Collection[str]) -> dict[str, str]:
    from haft.service import open_history
    from haft.surfaces.text.home import state_home

    try:
        history = open_history(state_home())
        if history is None:
            return {}
        with contextlib.closing(history):
            return history.shortest(names)
    except (HaftError, OSError):  # If the history cannot be read, the full names are printed.
        return {}
