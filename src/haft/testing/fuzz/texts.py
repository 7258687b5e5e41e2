"""Strategies for texts and numbers: ordinary ones, and those that programs often handle badly."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

ODD_TEXTS: Final = (
    *("", " ", "\n", "\t", "0", "-1", "1e309", "null", "true", "[]", "{}", "-", "--", "-x", "--help", ".", "..", "/"),
    *("*", "?", "%s", "%n", "$HOME", "$(id)", "`id`", "; id", "| id", "' OR 1=1", '"', "'", "\\", "a\nb", "a\x00b"),
    *("é", "e\u0301", "名前", "😀", "\ufeff", "\u202e", "ﬁ", "ß", "\x1b[31m", "a" * 1_000, "no-such-file", "../x"),
)
ODD_NUMBERS: Final = (0, -1, 1, 2**31 - 1, 2**31, -(2**31) - 1, 2**53 + 1, 2**63 - 1, -(2**63), 100, 1000)
LEAST: Final = -(2**63)
_LARGEST: Final = 1e308
_MOST_STEPS: Final = 1e15
MOST: Final = 2**63 - 1
"""Larger integers are not ones that every JSON library can read."""
_ALPHABET: Final = st.characters(codec="utf-8")
_MOST_DRAWN: Final = 500
"""How many different characters a long text has at most; then they repeat."""
_LONGEST: Final = 100_000
"""Texts that must be longer are not made."""


def _joined(*parts: SearchStrategy[Any], by: str) -> SearchStrategy[str]:
    return st.tuples(*parts).map(lambda found: by.join(str(each) for each in found))


_NAME: Final = st.from_regex(r"[a-z][a-z0-9]{0,9}", fullmatch=True)
_HOST: Final = _joined(_NAME, st.sampled_from(("example", "com", "org")), by=".")
_FORMATS: Final[Mapping[str, Callable[[], SearchStrategy[str]]]] = {
    "date": lambda: st.dates().map(lambda each: each.isoformat()),
    "time": lambda: st.times().map(lambda each: each.isoformat() + "Z"),
    "date-time": lambda: st.datetimes().map(lambda each: each.isoformat() + "Z"),
    "duration": lambda: st.integers(0, 10_000).map(lambda each: f"P{each}D"),
    "email": lambda: _joined(_NAME, _HOST, by="@"),
    "idn-email": lambda: _joined(_NAME, _HOST, by="@"),
    "hostname": lambda: _HOST,
    "idn-hostname": lambda: _HOST,
    "ipv4": lambda: st.ip_addresses(v=4).map(str),
    "ipv6": lambda: st.ip_addresses(v=6).map(str),
    "uri": lambda: _joined(st.just("https:/"), _HOST, _NAME, by="/"),
    "iri": lambda: _joined(st.just("https:/"), _HOST, _NAME, by="/"),
    "uri-reference": lambda: _joined(st.just(""), _NAME, by="/"),
    "iri-reference": lambda: _joined(st.just(""), _NAME, by="/"),
    "uri-template": lambda: _joined(st.just("https://example.com"), st.just("{id}"), by="/"),
    "uuid": lambda: st.uuids().map(str),
    "json-pointer": lambda: _joined(st.just(""), _NAME, _NAME, by="/"),
    "relative-json-pointer": lambda: _joined(st.integers(0, 9), _NAME, by="/"),
    "regex": lambda: st.sampled_from(("", "a+", "^x$", "[0-9]{2}", "(a|b)*")),
    "path": lambda: _joined(_NAME, _NAME, by="/"),
    "file-path": lambda: _joined(_NAME, _NAME, by="/"),
    "directory-path": lambda: _NAME,
    "binary": lambda: st.text(_ALPHABET),
    "password": lambda: st.text(_ALPHABET, min_size=1),
}
FORMATS: Final = frozenset(_FORMATS)


def texts(schema: Mapping[str, Any], names: Sequence[str], missed: Callable[[str], None]) -> SearchStrategy[str]:
    """Texts for a schema. `names` are paths that exist. `missed` is told which keyword cannot be followed."""
    least, most = _size(schema, "minLength", 0), _size(schema, "maxLength", None)
    pattern = schema.get("pattern")
    if isinstance(pattern, str):
        try:
            found = st.from_regex(re.compile(_as_python(pattern), re.ASCII), alphabet=_ALPHABET)
        except (re.error, ValueError, OverflowError):
            missed(f"pattern {pattern!r}")
        else:
            return found.filter(lambda text: len(text) >= least and (most is None or len(text) <= most))
    if least > _LONGEST:
        missed(f"minLength {least}")
        return st.nothing()
    drawn = min(least, _MOST_DRAWN)
    plain = st.text(_ALPHABET, min_size=drawn, max_size=max(drawn, 40 if most is None else min(most, _MOST_DRAWN)))
    if least > drawn:  # hypothesis cannot make texts as long as this.
        plain = plain.map(lambda text: (text * (least // len(text) + 1))[:least])
    fitting = ([each for each in some if least <= len(each) <= (most or len(each))] for some in (names, ODD_TEXTS))
    options = [plain, *(st.sampled_from(some) for some in fitting if some)]
    form = schema.get("format")
    if isinstance(form, str) and form in _FORMATS:
        return st.one_of(_FORMATS[form](), *options)
    if isinstance(form, str):
        missed(f"format {form!r}")
    return st.one_of(*options)


def _as_python(pattern: str) -> str:
    """A pattern of JSON Schema as Python writes it."""
    pattern = re.sub(r"\\p\{L[ulto]?\}", "[A-Za-z]", pattern)
    pattern = re.sub(r"\\p\{N[dlo]?\}", "[0-9]", pattern)
    pattern = re.sub(r"\(\?<(?![=!])", "(?P<", pattern)
    return re.sub(r"(?<!\\)\$$", r"\\Z", pattern)


def integers(schema: Mapping[str, Any]) -> SearchStrategy[int]:
    """Integers for a schema."""
    least, most = _bounds(schema)
    low = LEAST if least is None else max(math.ceil(least), LEAST)
    high = MOST if most is None else min(math.floor(most), MOST)
    step = schema.get("multipleOf")
    if isinstance(step, int | float) and step > 0 and float(step).is_integer():
        times = int(step)
        low, high = -(-low // times), high // times
        return st.integers(low, high).map(lambda each: each * times) if low <= high else st.nothing()
    if low > high:
        return st.nothing()
    small = st.integers(max(low, -20), min(high, 200)) if max(low, -20) <= min(high, 200) else st.nothing()
    return st.one_of(
        small,
        st.sampled_from([each for each in (low, high, *ODD_NUMBERS) if low <= each <= high]),
        st.integers(low, high),
    )


def numbers(schema: Mapping[str, Any]) -> SearchStrategy[float]:
    """Numbers that need not be integers."""
    least, most = _bounds(schema)
    step = schema.get("multipleOf")
    if isinstance(step, int | float) and step > 0:
        low = -1_000_000 if least is None else math.ceil(_within(least / step, _MOST_STEPS))
        high = 1_000_000 if most is None else math.floor(_within(most / step, _MOST_STEPS))
        return st.integers(low, high).map(lambda each: each * step) if low <= high else st.nothing()
    if least is not None and most is not None and least > most:
        return st.nothing()
    return st.floats(
        None if least is None else float(least),
        None if most is None else float(most),
        allow_nan=False,
        allow_infinity=False,
    )


def _bounds(schema: Mapping[str, Any]) -> tuple[float | None, float | None]:
    """The smallest and the largest number; exclusive bounds count as inclusive, because generated values are checked.
    Only for integers, the next one is taken."""
    found: list[float | None] = []
    for key, exclusive, by, choose in (
        ("minimum", "exclusiveMinimum", 1, max),
        ("maximum", "exclusiveMaximum", -1, min),
    ):
        values = [_number(schema.get(key))]
        values.append(_number(schema.get(exclusive)))  # A number since draft 6; true in draft 4.
        outside = values[1] if values[1] is not None else values[0] if schema.get(exclusive) is True else None
        if outside is not None and float(outside).is_integer() and schema.get("type") == "integer":
            values.append(outside + by)
        known = [each for each in values if each is not None]
        found.append(choose(known) if known else None)
    return found[0], found[1]


def _number(value: Any) -> float | None:
    return _within(value, _LARGEST) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _within(value: float, largest: float) -> float:
    return max(-largest, min(largest, value))


def _size(schema: Mapping[str, Any], key: str, otherwise: Any) -> Any:
    value = schema.get(key)
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0 else otherwise
