"""Run names as people read them: the shortest beginning that no other run has. Every command takes such a beginning.

Everything that is printed for a person passes through here, see `printing`. JSON has whole names, always.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection
from typing import Final

from haft.contracts import HaftError
from haft.lazy import regex

_RUN: Final = regex(r"\br_[0-9a-f]{24}\b")
_known: dict[str, str] = {}
"""What was looked up before, in this process."""


def shortened(text: str) -> str:
    """`text` with the names of runs as short as they can be told apart by. What names no run stays as it is."""
    if "r_" not in text:
        return text
    new = {name for name in _RUN.findall(text) if name not in _known}
    if new:
        _known.update(_looked_up(new))
    return _RUN.sub(lambda found: _known.get(found[0], found[0]), text)


def _looked_up(names: Collection[str]) -> dict[str, str]:
    from haft.service import open_history
    from haft.surfaces.cli.home import state_home

    try:
        history = open_history(state_home())
        if history is None:
            return {}
        with contextlib.closing(history):
            return history.shortest(names)
    except (HaftError, OSError):  # A whole name is no worse where the others cannot be read.
        return {}
