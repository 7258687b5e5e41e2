"""Finds secrets in what a scenario would contain, and masks them: the values that haft knows to be secret, values that
stand beside a name such as `token`, and texts that have the form of a token or of a private key.

A value that was found in one place is masked in all places, so that a masked argument still equals the same text in the
output. Known values are also found as base64, as hexadecimal digits and in URLs. A secret of an unknown form without a
telling name is not found.
"""

from __future__ import annotations

import base64
import fnmatch
import html
import json
import math
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import quote, quote_plus

from haft.contracts import MARK, Secrets, says_secret
from haft.lazy import regex

PLACEHOLDER: Final = "secret-removed-by-haft"
"""What a recording has in place of a secret. Unlike haft's own mark, it is one word in command lines and URLs."""
SHORTEST: Final = 6
"""The shortest value that is masked."""
SECRET_FILES: Final = (
    *(".env", ".env.*", "*.env", "*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx", "*.gpg"),
    *("id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", ".netrc", "_netrc", ".pgpass", ".npmrc", ".pypirc"),
    *(".git-credentials", "credentials", "credentials.*", ".htpasswd", "secrets.*", "*.tfstate"),
)
"""Names of files that a recording leaves out as a whole."""

_TOKENS: Final = (
    regex(r"-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"),
    regex(
        r"\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|sk-[\w-]{16,}|xox[a-z]-[\w-]{10,}"
        r"|(?:AKIA|ASIA)[0-9A-Z]{16}|AIza[\w-]{30,}|ya29\.[\w.-]{16,}|npm_[A-Za-z0-9]{30,}|pypi-[\w-]{16,}"
        r"|hf_[A-Za-z0-9]{20,}|[srp]k_(?:live|test)_\w{10,}|SG\.[\w-]{16,}\.[\w-]{16,}"
        r"|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*)"
    ),
    regex(r"://[^/\s:@\"']*:([^/\s@\"']+)@"),
    regex(r"(?i)\b(?:bearer|basic)\s+([\w.~+/=-]{8,})"),
)
_PAIR: Final = regex(
    r"""(?P<name>[A-Za-z_][\w.-]*)["']?(?P<sign>\s*[:=]\s*)(?P<mark>["']?)(?P<value>[^\s"',;(){}\[\]<>|&$`]+)(?P<after>.?)"""
)
_OPTION: Final = regex(r"""(?<![\w-])--?(?P<name>[A-Za-z][\w-]*)(?:=|\s+)["']?(?P<value>[^\s"'$-][^\s"']*)""")
_LONG: Final = regex(r"(?<![\w+/=-])[A-Za-z0-9+/_-]{32,}={0,2}(?![\w+/=-])")
_ESCAPE: Final = regex(r"%[0-9A-F]{2}")
_VAGUE: Final = frozenset({"key", "keys", "pass", "pat"})
"""Names that suggest a secret, and that much harmless data has too."""


class SecretFinder:
    """Collects secrets, and masks them in texts. Remembers in which parts it masked something."""

    def __init__(self, known: Iterable[str] = ()) -> None:
        self._values = set(known)
        self._secrets: Secrets | None = None
        self.masked_in: dict[str, None] = {}

    def learn(self, value: Any, name: str = "") -> None:
        """Look for secrets in a value of JSON; `name` is the name that the value has."""
        if isinstance(value, Mapping):
            for key, each in value.items():
                self.learn(each, str(key))
        elif isinstance(value, list | tuple):
            for each in value:
                self.learn(each, name)
        elif isinstance(value, str):
            found = set(secrets_in(value))
            if is_secret_pair(name, value):
                found.add(value)
            if found - self._values:
                self._values |= found
                self._secrets = None

    @property
    def secrets(self) -> Secrets:
        """All secrets so far, also in encoded forms."""
        if self._secrets is None:
            plain = {each for each in self._values if len(each.strip()) >= SHORTEST and each not in PLACEHOLDER}
            forms = {form for value in plain for form in encoded_forms(value)}
            self._secrets = Secrets(plain | forms, SHORTEST)
        return self._secrets

    def masked(self, value: Any, part: str) -> Any:
        """The value with secrets masked; notes the part if there were any."""
        masked = _with_placeholders(self.secrets.masked(value))
        if masked != value:
            self.masked_in[part] = None
        return masked

    def holds(self, data: bytes) -> bool:
        """Whether the data contains a secret."""
        return self.secrets.are_in(data)


def _with_placeholders(value: Any) -> Any:
    """The value with the placeholder wherever haft's own mark is."""
    if isinstance(value, Mapping):
        return {_with_placeholders(key): _with_placeholders(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_with_placeholders(each) for each in value]
    return value.replace(MARK, PLACEHOLDER) if isinstance(value, str) else value


def is_secret_file(path: str) -> bool:
    """Whether the name of a file says that it holds secrets."""
    name = os.path.basename(path).lower()
    is_example = name.endswith((".example", ".sample", ".template", ".pub"))
    return not is_example and any(fnmatch.fnmatchcase(name, each) for each in SECRET_FILES)


def is_secret_pair(name: str, value: str) -> bool:
    """Whether the name of a value says that it is secret, and the value can be one."""
    if not name or not says_secret(name) or len(value) < SHORTEST or MARK in value or PLACEHOLDER in value:
        return False
    return name.lower() not in _VAGUE or _is_random(value)


def secrets_in(text: str) -> Iterator[str]:
    """The texts within a text that look like secrets."""
    for pattern in _TOKENS:
        for found in pattern.finditer(text):
            yield found[pattern.groups]
    for found in _PAIR.finditer(text):
        # Without quotes, a word is rather the name of a variable, unless it stands right after an equals sign, has
        # digits, or belongs to a header.
        is_word = found["value"].isidentifier() and not any(map(str.isdigit, found["value"]))
        is_text = found["mark"] or not is_word or found["sign"] == "=" or "-" in found["name"]
        if is_text and found["after"] != "(" and is_secret_pair(found["name"], found["value"]):
            yield found["value"]
    for found in _OPTION.finditer(text):
        if is_secret_pair(found["name"], found["value"]):
            yield found["value"]
    yield from (found[0] for found in _LONG.finditer(text) if _is_random(found[0]))


def _is_random(text: str) -> bool:
    """Whether a text looks as if it were drawn by chance: long, with letters of both cases and digits, and of high
    entropy."""
    if len(text) < 16 or not (
        any(map(str.isdigit, text)) and any(map(str.isupper, text)) and any(map(str.islower, text))
    ):
        return False
    if text.count("/") > 3 or text.count("_") + text.count("-") > len(text) // 6:
        return False
    counts = Counter(text)
    entropy = -sum(count / len(text) * math.log2(count / len(text)) for count in counts.values())
    return entropy >= min(4.2, math.log2(len(text)) * 0.85)


def encoded_forms(value: str) -> set[str]:
    """A value as it looks in base64, wherever it begins there, in hexadecimal digits, in a URL, in HTML, and as JSON
    within JSON."""
    data = value.encode("utf-8", "surrogateescape")
    in_urls = {
        quote(value, safe="", errors="replace"),
        quote(value, errors="replace"),
        quote_plus(value, errors="replace"),
    }
    found = {
        data.hex(),
        data.hex().upper(),
        *in_urls,
        *(_ESCAPE.sub(lambda each: each[0].lower(), url) for url in in_urls),
    }
    found |= {html.escape(value), html.escape(value, quote=False)}
    for is_ascii in (True, False):
        once = json.dumps(value, ensure_ascii=is_ascii)[1:-1]
        found |= {once, json.dumps(once, ensure_ascii=is_ascii)[1:-1]}
    found.discard(value)
    for offset, first in ((0, 0), (1, 2), (2, 3)):
        for alphabet in (base64.b64encode, base64.urlsafe_b64encode):
            last = (offset + len(data)) % 3
            text = alphabet(b"\0" * offset + data).decode().rstrip("=")
            found.add(text[first : len(text) - (1 if last else 0)])
    return {each for each in found if len(each) >= SHORTEST}
