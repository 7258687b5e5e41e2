"""What became of a part of a run's changes, in words for a person. Used by the commands that show runs and changes. It
reads no change sets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from haft.service import ChangesPart

WORDS: Final = {"committed": "applied", "discarded": "dropped"}
"""The words for states of changes that a person decided about; all other states are words already."""


def became_of(part: ChangesPart, run: str) -> str:
    """What became of a part of the changes of `run`, such as `applied by RUN`."""
    word = WORDS.get(part.state, part.state)
    if part.run == run:
        return word
    return f"applied by {part.run}" + ("" if part.state == "committed" else f", {word}")
