"""Secrets out of the record: exact values, wherever they stand.

What counts as one: the values of environment variables whose names say so, and whatever the caller names. What is not
done: guessing what looks like a secret, and redacting outputs, which are kept as they came.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping

SECRET_NAME = re.compile(
    r"(^|_)(TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?|APIKEY|KEY|PAT|DSN)(_|$)", re.IGNORECASE
)
SHORTEST = 6
"""A shorter value would be found in innocent text."""
MARK = "[redacted]"


def secret_values(env: Mapping[str, str]) -> set[str]:
    """The values of variables whose names say that they are secret."""
    return {value for name, value in env.items() if SECRET_NAME.search(name) and len(value) >= SHORTEST}


class Redactor:
    """Replaces known values in JSON text."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._forms: list[bytes] = []
        self._known: set[str] = set()
        self.learn(values)

    def learn(self, values: Iterable[str]) -> None:
        """Redact these too from now on."""
        for value in values:
            if len(value) >= SHORTEST and value not in self._known:
                self._known.add(value)
                # As it stands inside a JSON string, written either way.
                forms = {json.dumps(value, ensure_ascii=ascii_only)[1:-1] for ascii_only in (True, False)}
                self._forms.extend(form.encode("utf-8", "surrogatepass") for form in forms)
        self._forms.sort(key=len, reverse=True)

    def __call__(self, text: bytes) -> bytes:
        for form in self._forms:
            if form in text:
                text = text.replace(form, MARK.encode())
        return text
