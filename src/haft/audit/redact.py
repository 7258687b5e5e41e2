"""Secrets out of what is written down of runs, the audit log and the table of runs: exact values, wherever they stand.

More is kept out of these documents than is masked in what a caller sees: shorter values, every variable of the host
whose name says secret, and whatever configuration filled in from the environment. What is not done: guessing what looks
like a secret. `contracts.secrets` knows names and marks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from haft.contracts import NO_SECRETS, Secrets, says_secret
from haft.storage import decode, encode

SHORTEST: Final = 6
"""A shorter value would be found in innocent text."""

OURS: Final = frozenset({"type", "at", "run", "parent", "host", "digest", "status", "states", "startedAt", "endedAt"})
"""Fields that haft fills itself and finds its way by."""
THEIRS: Final = frozenset({"arguments", "result"})
"""Fields with a shape that callers and tools chose: names and numbers in them may be secret too."""


def secret_values(env: Mapping[str, str]) -> set[str]:
    """The values of variables whose names say that they are secret."""
    return {value for name, value in env.items() if says_secret(name) and len(value) >= SHORTEST}


class Redactor:
    """Masks known values in documents about runs: in what callers and tools said, not in haft's own words."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._known = Secrets(values, SHORTEST)

    def learn(self, values: Iterable[str]) -> None:
        """Mask these too from now on."""
        self._known |= Secrets(values, SHORTEST)

    def __call__(self, text: bytes, more: Secrets = NO_SECRETS) -> bytes:
        """A document without what is known, and without `more`."""
        secrets = self._known | more if more.values else self._known
        if not secrets.values or not secrets.are_in(text):
            return text
        # Replacing in the text itself would break numbers, and fields that happen to be called like a secret.
        document = {name: value if name in OURS else _clean(value, secrets) for name, value in decode(text).items()}
        if "noted" in document:
            document["noted"] = [[*words, secrets.masked(facts)] for *words, facts in decode(text)["noted"]]
        for name in THEIRS & document.keys():
            document[name] = secrets.masked(document[name])
        return encode(document)


def _clean(value: Any, secrets: Secrets) -> Any:
    """`value` with every text masked; names of fields are ours, and stay."""
    if isinstance(value, str):
        return secrets.masked_text(value)
    if isinstance(value, dict):
        return {name: _clean(item, secrets) for name, item in value.items()}
    return [_clean(item, secrets) for item in value] if isinstance(value, list) else value
