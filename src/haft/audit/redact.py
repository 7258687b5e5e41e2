"""Secrets out of the record: exact values, wherever they stand.

What counts as one: the values of environment variables whose names say so, and whatever the caller names. What is not
done: guessing what looks like a secret, and redacting outputs, which are kept as they came.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from haft.storage import decode, encode

SECRET_NAME = re.compile(
    r"PASSWORD|PASSWD|_PWD$|(^|_)(TOKEN|SECRET|PASSPHRASE|CREDENTIALS?|APIKEY|KEY|PAT|DSN)(_|$)", re.IGNORECASE
)
SHORTEST = 6
"""A shorter value would be found in innocent text."""
MARK = "[redacted]"

OURS: Final = frozenset({"type", "at", "run", "parent", "host", "digest", "status", "states", "startedAt", "endedAt"})
"""Fields that haft fills itself and finds its way by."""
THEIRS: Final = frozenset({"arguments", "result"})
"""Fields with a shape that callers and tools chose: names and numbers in them may be secret too."""


def secret_values(env: Mapping[str, str]) -> set[str]:
    """The values of variables whose names say that they are secret."""
    return {value for name, value in env.items() if SECRET_NAME.search(name) and len(value) >= SHORTEST}


class Redactor:
    """Replaces known values in documents about runs: in what callers and tools said, not in haft's own words."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._forms: list[bytes] = []
        self._known: list[str] = []
        self.learn(values)

    def learn(self, values: Iterable[str]) -> None:
        """Redact these too from now on."""
        for value in values:
            if len(value) >= SHORTEST and value not in self._known:
                self._known.append(value)
                # As it stands inside a JSON string, written either way.
                forms = {json.dumps(value, ensure_ascii=ascii_only)[1:-1] for ascii_only in (True, False)}
                self._forms.extend(form.encode("utf-8", "surrogatepass") for form in forms)
        self._known.sort(key=len, reverse=True)

    def __call__(self, text: bytes) -> bytes:
        if not any(form in text for form in self._forms):
            return text
        # Replacing in the text itself would break numbers, and fields that happen to be called like a secret.
        document = {name: value if name in OURS else self._clean(value) for name, value in decode(text).items()}
        if "noted" in document:
            document["noted"] = [[*words, self._clean(facts, keys=True)] for *words, facts in decode(text)["noted"]]
        for name in THEIRS & document.keys():
            document[name] = self._clean(document[name], keys=True)
        return encode(document)

    def _clean(self, value: Any, *, keys: bool = False) -> Any:
        """`value` with every secret replaced; also in the names of fields where they are not ours (`keys`)."""
        if isinstance(value, str):
            return self._clean_text(value)
        if isinstance(value, dict):
            return {
                self._clean_text(name) if keys else name: self._clean(item, keys=keys) for name, item in value.items()
            }
        if isinstance(value, list):
            return [self._clean(item, keys=keys) for item in value]
        if keys and not isinstance(value, bool | None):
            number = json.dumps(value)
            return MARK if self._clean_text(number) != number else value
        return value

    def _clean_text(self, text: str) -> str:
        for secret in self._known:
            text = text.replace(secret, MARK)
        return text
