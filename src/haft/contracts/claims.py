"""A claim: the sentence in which the caller of a tool, mostly a model, says why it makes the call.

Nothing checks a claim, and no decision depends on it. haft shows it to the person who approves the call, always as the
words of the agent. `service` reads the claims of calls, and `surfaces` show them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from haft.contracts.errors import BadUsage

LONGEST_CLAIM: Final = 300
_LONGEST_READ: Final = 100_000


def read_claim(given: Any, masked: Callable[[str], str] = str) -> str | None:
    """A claim as haft keeps it: one line of at most `LONGEST_CLAIM` characters, with every control character and every
    invisible one as an escape; None if it says nothing. `masked` masks the secrets in a text. Raises `BadUsage` if the
    claim is no text."""
    if given is None:
        return None
    if not isinstance(given, str):
        raise BadUsage(f"`claim` must be a text, not {type(given).__name__}")
    # Before anything is cut or escaped: a changed secret would not be found any more.
    text = masked(given if len(given) <= _LONGEST_READ else f"{given[:_LONGEST_READ]}…")
    text = " ".join(text[: 10 * LONGEST_CLAIM].split())
    text = "".join(each if each.isprintable() else _escaped(each) for each in text)
    return (text if len(text) <= LONGEST_CLAIM else f"{text[: LONGEST_CLAIM - 1]}…") or None


def _escaped(character: str) -> str:
    return character.encode("unicode_escape", "backslashreplace").decode("ascii")
