"""Everything that can be found, in one table: each thing has a code that stays, a level and an explanation.

`haft tools check --explain` and the reference page print it. What a check finds carries one of these codes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from haft.contracts import BadUsage, near_miss
from haft.sources.checks.codes.definitions import DEFINITIONS
from haft.sources.checks.codes.describe import ASKING
from haft.sources.checks.codes.files import FILES
from haft.sources.checks.codes.formats import FORMATS
from haft.sources.checks.codes.model import Code, Level

CODES: Final[dict[str, Code]] = {each.code: each for each in (*FILES, *ASKING, *DEFINITIONS, *FORMATS)}


def code_of(word: str, others: Iterable[Code] = ()) -> Code:
    """The code of that name, in the table or among the `others` that formats have; `BadUsage` with the near miss where
    there is none."""
    known = CODES | {each.code: each for each in others}
    if word in known:
        return known[word]
    near = near_miss(word, known)
    hint = f"did you mean `{near}`?" if near else f"the codes are {', '.join(known)}"
    raise BadUsage(f"there is no code `{word}`", hint=hint)


__all__ = ["CODES", "Code", "Level", "code_of"]
