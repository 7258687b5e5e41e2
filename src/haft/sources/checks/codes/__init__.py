"""Everything that can be found, in one table: each thing has a code that stays, a level and an explanation.

`haft tools check --explain` and the reference page print it. What a check finds carries one of these codes.
"""

from __future__ import annotations

from typing import Final

from haft.contracts import BadUsage, near_miss
from haft.sources.checks.codes.asking import ASKING
from haft.sources.checks.codes.definitions import DEFINITIONS
from haft.sources.checks.codes.files import FILES
from haft.sources.checks.codes.formats import FORMATS
from haft.sources.checks.codes.model import Code, Level

CODES: Final[dict[str, Code]] = {each.code: each for each in (*FILES, *ASKING, *DEFINITIONS, *FORMATS)}


def code_of(word: str) -> Code:
    """The code of that name; `BadUsage` with the near miss where there is none."""
    if word in CODES:
        return CODES[word]
    near = near_miss(word, CODES)
    hint = f"did you mean `{near}`?" if near else f"the codes are {', '.join(CODES)}"
    raise BadUsage(f"there is no code `{word}`", hint=hint)


__all__ = ["CODES", "Code", "Level", "code_of"]
