"""Removes secrets from the audit log and the table of runs: known values, wherever they appear.

haft removes more values from these documents than it masks in the output of a call: also shorter values, every variable
of the host whose name suggests a secret, and every value that the configuration filled in from the environment. haft
does not guess which texts look like a secret. `contracts.secrets` decides which names suggest a secret, and which mark
replaces a value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from haft.contracts import NO_SECRETS, Secrets, says_secret
from haft.storage import decode, encode

SHORTEST: Final = 6
"""The minimum length of a value that is masked: a shorter value would also appear in harmless text."""

OURS: Final = frozenset({"type", "at", "run", "parent", "host", "digest", "status", "states", "startedAt", "endedAt"})
"""Fields that are never masked: haft fills them itself, and needs them to find records."""
THEIRS: Final = frozenset({"arguments", "result"})
"""Fields with data of callers and tools: in them, names of fields and numbers are masked, too."""


def secret_values(env: Mapping[str, str]) -> set[str]:
    """The values of variables whose names suggest a secret."""
    return {value for name, value in env.items() if says_secret(name) and len(value) >= SHORTEST}


class Redactor:
    """Masks known values in documents about runs: in data from agents and tools, but not in haft's own fields."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._known = Secrets(values, SHORTEST)

    def learn(self, values: Iterable[str]) -> None:
        """Mask these values too from now on."""
        self._known |= Secrets(values, SHORTEST)

    def masked_text(self, text: str, more: Secrets = NO_SECRETS) -> str:
        """The text with the known values and the values of `more` masked."""
        return (self._known | more).masked_text(text)

    def __call__(self, text: bytes, more: Secrets = NO_SECRETS) -> bytes:
        """A copy of the document `text` in which the known values and the values of `more` are masked."""
        secrets = self._known | more if more.values else self._known
        if not secrets.values or not secrets.are_in(text):
            return text
        # A replacement in the text itself would break numbers, and fields with the same name as a secret.
        document = {name: value if name in OURS else _clean(value, secrets) for name, value in decode(text).items()}
        if "noted" in document:
            document["noted"] = [[*words, secrets.masked(facts)] for *words, facts in decode(text)["noted"]]
        for name in THEIRS & document.keys():
            document[name] = secrets.masked(document[name])
        return encode(document)


def _clean(value: Any, secrets: Secrets) -> Any:
    """`value` with the secrets masked in every text. The names of fields stay, because haft chose them."""
    if isinstance(value, str):
        return secrets.masked_text(value)
    if isinstance(value, dict):
        return {name: _clean(item, secrets) for name, item in value.items()}
    return [_clean(item, secrets) for item in value] if isinstance(value, list) else value
