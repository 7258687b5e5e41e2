"""Secrets: values that must not leave the tools they belong to. This module says which names mean that a value is
secret, and masks secrets.

Only this module knows what a secret is. `Secrets` is a set of values; it masks text, bytes and JSON values, and streams
of bytes that arrive in pieces of any size. It masks every byte of every occurrence, also of overlapping ones. It does
not mask encoded forms (base64, URL escapes), or values that a program changed, cut or reversed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, AnyStr, Final, Generic

from haft.lazy import regex

MARK: Final = "[secret removed by haft]"
"""The text that replaces a secret everywhere."""
MIN_SECRET_LENGTH: Final = 8
"""The shortest value that is masked. Shorter values also occur in harmless text."""
_CUT: Final = "…"
"""The mark that haft puts where it cuts a text. Part of a secret may be next to it."""

_SAYS_SECRET: Final = regex(
    r"PASSWORD|PASSWD|_PWD$"
    r"|(^|_)(TOKENS?|SECRETS?|PASSPHRASE|PASS|CREDENTIALS?|APIKEYS?|KEYS?|PAT|DSN|WEBHOOKS?|AUTHORIZATION|BEARER|COOKIE|JWT)(_|$)"
)
_CAMEL: Final = regex(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[^A-Za-z0-9]+")


def says_secret(name: str) -> bool:
    """Whether a name says that its value is secret, such as `API_KEY`, `smtpPassword` or `github-token`."""
    return any(_SAYS_SECRET.search(form.upper()) for form in (name, _CAMEL.sub("_", name)))


def texts_in(value: Any) -> Iterator[str]:
    """Every text in a JSON value, at any depth."""
    left = [value]
    while left:
        one = left.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, Mapping):
            left += one.values()
        elif isinstance(one, list | tuple):
            left += one


def named_secrets(values: Mapping[str, Any]) -> Iterator[str]:
    """The texts in a table, at any depth, whose field name says that the value is secret."""
    left = [values]
    while left:
        for name, value in left.pop().items():
            if says_secret(str(name)):
                yield from texts_in(value)
            elif isinstance(value, Mapping):
                left.append(value)
            elif isinstance(value, list | tuple):
                left += (one for one in value if isinstance(one, Mapping))


class Secrets:
    """A set of secret values of at least `shortest` characters each. Immutable; `|` joins two sets."""

    __slots__ = ("_bytes", "_texts", "values")

    def __init__(self, values: Iterable[str] = (), shortest: int = MIN_SECRET_LENGTH) -> None:
        # A program may print a value without the newline at its end.
        known = {form for value in values for form in (value, value.strip())}
        self.values: Final = frozenset(value for value in known if len(value) >= shortest and value not in MARK)
        self._texts: _Patterns[str] | None = None
        self._bytes: _Patterns[bytes] | None = None

    def __bool__(self) -> bool:
        return bool(self.values)

    def __or__(self, other: Secrets) -> Secrets:
        if other.values <= self.values:
            return self
        if self.values <= other.values:
            return other
        return Secrets(self.values | other.values, shortest=1)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secrets) and self.values == other.values

    def __hash__(self) -> int:
        return hash(self.values)

    def __repr__(self) -> str:
        return f"<{len(self.values)} secrets>"

    def masked(self, value: Any) -> Any:
        """The JSON value with every secret masked: in texts, field names and numbers."""
        if not self.values:
            return value
        if isinstance(value, str):
            return self.masked_text(value)
        if isinstance(value, Mapping):
            return {self.masked(name): self.masked(item) for name, item in value.items()}
        if isinstance(value, list):
            return [self.masked(item) for item in value]
        if isinstance(value, tuple):
            return tuple(self.masked(item) for item in value)
        if isinstance(value, int | float) and not isinstance(value, bool):
            number = repr(value)
            return value if self.masked_text(number) == number else MARK
        return value

    def masked_text(self, text: str) -> str:
        """The text with every secret masked, also secrets of which haft cut off a part."""
        if not self.values:
            return text
        patterns = self._of_text()
        return patterns.replaced(text, MARK, patterns.cut_short(text))

    def spans_in(self, text: str) -> list[tuple[int, int]]:
        """The start and end of every secret in a text, in order."""
        return self._of_text().spans(text) if self.values else []

    def are_in(self, data: bytes) -> bool:
        """Whether the data contains any of the secrets."""
        return bool(self.values) and self._of_bytes().is_in(data)

    def masked_bytes(self, data: bytes) -> bytes:
        """The bytes with every secret masked."""
        return self._of_bytes().replaced(data, MARK.encode()) if self.values else data

    def stream(self) -> MaskedStream:
        """A new masker for one stream of output that comes in pieces."""
        return MaskedStream(self._of_bytes() if self.values else None)

    def _of_text(self) -> _Patterns[str]:
        if self._texts is None:
            self._texts = _Patterns(sorted(self._forms()))
        return self._texts

    def _of_bytes(self) -> _Patterns[bytes]:
        if self._bytes is None:
            self._bytes = _Patterns(sorted({_as_bytes(form) for form in self._forms()}))
        return self._bytes

    def _forms(self) -> set[str]:
        """The values, plain and as they look inside a JSON string, with and without ASCII escapes."""
        import json

        return {
            form
            for value in self.values
            for form in (value, json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1])
        }


NO_SECRETS: Final = Secrets()


class MaskedStream:
    """Masks bytes that come in pieces. The result is the same as if they came as a whole: bytes that may be the start
    of a secret are kept back until the next piece, or the end of the stream, shows what they are."""

    __slots__ = ("_covered", "_held", "_patterns")

    def __init__(self, patterns: _Patterns[bytes] | None) -> None:
        self._patterns = patterns
        self._held = b""
        self._covered = 0
        """How many bytes at the start of `_held` belong to a secret whose mark is already in the output."""

    def feed(self, data: bytes) -> bytes:
        """Add data, and return the masked bytes that can be shown now."""
        return data if self._patterns is None else self._passed(self._patterns, data, is_last=False)

    def end(self) -> bytes:
        """End the stream, and return the remaining masked bytes."""
        return b"" if self._patterns is None else self._passed(self._patterns, b"", is_last=True)

    def _passed(self, patterns: _Patterns[bytes], data: bytes, *, is_last: bool) -> bytes:
        data = self._held + data
        keep = len(data) if is_last else len(data) - patterns.begun(data)
        shown, at = bytearray(), 0
        for start, end in patterns.spans(data, self._covered):
            if start > 0 or not self._covered:  # If not, its mark is already in the output.
                if start >= keep:
                    break
                shown += data[at:start] + MARK.encode()
            at = end
        shown += data[at:keep]
        self._held, self._covered = data[keep:], max(0, at - keep)
        return bytes(shown)


class _Patterns(Generic[AnyStr]):
    """Finds a few fixed patterns in a long text. The time is linear in the length of the text, whatever its content:
    this class uses Python's own text search, once for each pattern."""

    __slots__ = ("_failures", "_patterns")

    def __init__(self, patterns: Sequence[AnyStr]) -> None:
        self._patterns: Sequence[AnyStr] = patterns
        self._failures: dict[AnyStr, list[int]] = {}

    def replaced(self, text: AnyStr, mark: AnyStr, more: Iterable[tuple[int, int]] = ()) -> AnyStr:
        """The text with `mark` in place of every occurrence of a pattern, and of every span in `more`."""
        pieces: list[AnyStr] = []
        at = 0
        for start, end in self.spans(text, more=more):
            pieces.append(text[at:start] + mark)
            at = end
        nothing = text[:0]
        return nothing.join(pieces) + text[at:] if pieces else text

    def spans(self, text: AnyStr, covered: int = 0, more: Iterable[tuple[int, int]] = ()) -> list[tuple[int, int]]:
        """The spans of all occurrences, in order; overlapping ones are joined. The first `covered` characters of the
        text are a span, too, and `more` contains further spans."""
        found = [(0, covered)] if covered else []
        found += more
        for pattern in self._patterns:
            found += _occurrences(text, pattern)
        if len(found) < 2:
            return found
        found.sort()
        joined = [found[0]]
        for start, end in found[1:]:
            before, until = joined[-1]
            if start < until:
                joined[-1] = before, max(end, until)
            else:
                joined.append((start, end))
        return joined

    def is_in(self, text: AnyStr) -> bool:
        return any(pattern in text for pattern in self._patterns)

    def begun(self, text: AnyStr) -> int:
        """The length of the longest suffix of `text` that is the beginning of a pattern. The rest of this pattern may
        come with the next text."""
        return max((self._overlap(text, pattern) for pattern in self._patterns), default=0)

    def cut_short(self: _Patterns[str], text: str) -> Iterator[tuple[int, int]]:
        """Yield the spans of cut patterns. Where haft cut the text, the characters just before the cut may be the start
        of a pattern, and the characters just after the cut may be the end of a pattern."""
        for cut in (place.start() for place in re.finditer(_CUT, text)):
            before, after = text[max(0, cut - MIN_SECRET_LENGTH) : cut], text[cut + 1 : cut + 1 + MIN_SECRET_LENGTH]
            for pattern in self._patterns:
                if len(before) == MIN_SECRET_LENGTH and before in pattern:
                    length = self._overlap(text[max(0, cut - len(pattern)) : cut], pattern)
                    if length >= MIN_SECRET_LENGTH:
                        yield cut - length, cut
                at = pattern.find(after, 1) if len(after) == MIN_SECRET_LENGTH else -1
                if at > 0 and text.startswith(pattern[at:], cut + 1):
                    yield cut + 1, cut + 1 + len(pattern) - at

    def _overlap(self, text: AnyStr, pattern: AnyStr) -> int:
        """The length of the longest suffix of `text` that is a beginning of `pattern`, but not the whole pattern."""
        first = text.find(pattern[:1], max(0, len(text) - len(pattern) + 1))
        if first < 0:
            return 0
        if pattern not in self._failures:
            self._failures[pattern] = _failure(pattern)
        failure, length = self._failures[pattern], 0
        for one in text[first:]:
            while length and pattern[length] != one:
                length = failure[length - 1]
            length += pattern[length] == one
        return length


def _occurrences(text: AnyStr, pattern: AnyStr) -> Iterator[tuple[int, int]]:
    """Spans that together cover every occurrence. Searches for the last overlapping occurrence first, so that a
    repetitive text takes no more steps than any other text."""
    size = len(pattern)
    at = text.find(pattern)
    while at >= 0:
        start = at
        while (later := text.rfind(pattern, at + 1, at + 2 * size - 1)) >= 0:
            at = later
        yield start, at + size
        at = text.find(pattern, at + size)


def _failure(pattern: AnyStr) -> list[int]:
    """The failure table of Knuth, Morris and Pratt: for each prefix of the pattern, the length of the longest shorter
    prefix that is also a suffix of this prefix."""
    table, length = [0], 0
    for position in range(1, len(pattern)):
        while length and pattern[position] != pattern[length]:
            length = table[length - 1]
        length += pattern[position] == pattern[length]
        table.append(length)
    return table


def _as_bytes(text: str) -> bytes:
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")
