"""All codes that checks can report, in one table. A code never changes; it has a level and an explanation.

`haft tools check --explain` and the reference page print this table. Every finding has one of these codes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from haft.contracts import BadUsage, near_miss
from haft.sources.checks.codes.agents import AGENTS
from haft.sources.checks.codes.calls import CALLS
from haft.sources.checks.codes.definitions import DEFINITIONS
from haft.sources.checks.codes.describe import DESCRIBE
from haft.sources.checks.codes.files import FILES
from haft.sources.checks.codes.formats import FORMATS
from haft.sources.checks.codes.model import Code, Level

_ALL: Final = (*FILES, *DESCRIBE, *DEFINITIONS, *FORMATS, *CALLS, *AGENTS)
CODES: Final[dict[str, Code]] = {each.code: each for each in _ALL}


def code_of(word: str, others: Iterable[Code] = ()) -> Code:
    """The code with that name, from the table or from `others`, the codes of single formats. If there is no such code,
    raises `BadUsage` with the most similar name."""
    known = CODES | {each.code: each for each in others}
    if word in known:
        return known[word]
    near = near_miss(word, known)
    hint = f"did you mean `{near}`?" if near else f"the codes are {', '.join(known)}"
    raise BadUsage(f"there is no code `{word}`", hint=hint)


__all__ = ["CODES", "Code", "Level", "code_of"]
