"""Checks that a `sed` script only prints: a strict parser for the commands that neither read, write nor run anything.

It refuses everything that it does not know, and every text that two versions of `sed` would parse differently.
"""

from __future__ import annotations

import re
from typing import Final

from haft.lazy import regex
from haft.policy.analysis.programs.delimited import end_of_regex, end_of_replacement

_SIGNS: Final = "/|,#@!:%_~+=\"'<>"
_BARE: Final = "=dDgGhHnNpPxzF"
_FLAGS: Final = regex(r"[gpiImM0-9]*")
_BLANKS: Final = regex(r"[ \t]*")
_BETWEEN: Final = regex(r"[ \t\n;]*")
_DIGITS: Final = regex(r"[0-9]*")
_NUMBER: Final = regex(r"\$|[0-9]+(?:~[0-9]+)?")
_SECOND: Final = regex(r"\$|[+~]?[0-9]+")
_LABEL: Final = regex(r"[ \t]*([A-Za-z0-9_]*)")
_NEW_LABEL: Final = regex(r":[ \t]*[A-Za-z0-9_]+")
_TEXT: Final = regex(r"[ \t]*[^\s\\;{}][^\n\\;{}]*|[ \t]*")
_COMMENT: Final = regex(r"#[^\n\\;{}]*")
_MAX_DEPTH: Final = 50

_HARM: Final = {
    "w": "writes a file",
    "W": "writes a file",
    "e": "runs a program",
    "r": "reads a file that its script names",
    "R": "reads a file that its script names",
}


class _Refused(Exception):
    """The script is not known to only print; the exception's argument is the reason."""


def why_not(script: str) -> str | None:
    """Why the script is not known to only print; None if it only prints."""
    try:
        _commands(script)
    except _Refused as refused:
        return str(refused)
    return None


def _commands(script: str) -> None:
    at = _skip(_BETWEEN, script, 0)
    depth = 0
    while at < len(script):
        at = _address(script, at)
        letter = script[at : at + 1]
        if letter == "{":
            depth += 1
            at += 1
        else:
            depth -= letter == "}"
            at = _end(script, _command(script, at))
        if not 0 <= depth <= _MAX_DEPTH:
            raise _Refused("the braces of the `sed` script do not match")
        at = _skip(_BETWEEN, script, at)
    if depth:
        raise _Refused("the braces of the `sed` script do not match")


def _skip(form: re.Pattern[str], script: str, at: int) -> int:
    found = form.match(script, at)
    return found.end() if found else at


def _address(script: str, at: int) -> int:
    first = _one_address(script, at, _NUMBER)
    if first > at:
        at = _skip(_BLANKS, script, first)
        if script[at : at + 1] == ",":
            begin = _skip(_BLANKS, script, at + 1)
            at = _one_address(script, begin, _SECOND)
            if at == begin:
                raise _Refused("haft cannot parse an address of the `sed` script")
    at = _skip(_BLANKS, script, at)
    while script[at : at + 1] == "!":
        at = _skip(_BLANKS, script, at + 1)
    return at


def _one_address(script: str, at: int, number: re.Pattern[str]) -> int:
    letter = script[at : at + 1]
    if letter == "/":
        begin, sign = at + 1, "/"
    elif letter == "\\" and script[at + 1 : at + 2] and script[at + 1] in _SIGNS:
        begin, sign = at + 2, script[at + 1]
    else:
        return _skip(number, script, at)
    after = end_of_regex(script, begin, sign)
    if after is None:
        raise _Refused("haft cannot parse an address of the `sed` script")
    while script[after : after + 1] in ("I", "M"):
        after += 1
    return after


def _command(script: str, at: int) -> int:
    """The position after the `sed` command that begins at `at`."""
    letter = script[at : at + 1]
    if letter and letter in _BARE + "}":
        return at + 1
    if letter and letter in "qQl":
        return _skip(_DIGITS, script, _skip(_BLANKS, script, at + 1))
    if letter and letter in "btT":
        return _skip(_LABEL, script, at + 1)
    if letter in ("s", "y"):
        return _substitution(script, at)
    forms = {":": _NEW_LABEL, "#": _COMMENT}
    if letter in forms and (found := forms[letter].match(script, at)):
        return found.end()
    if letter and letter in "aic" and (found := _TEXT.match(script, at + 1)) and found.group().strip():
        return found.end()
    if letter in _HARM:
        raise _Refused(f"the command `{letter}` of a `sed` script {_HARM[letter]}")
    raise _Refused("haft cannot parse the `sed` script")


def _substitution(script: str, at: int) -> int:
    sign = script[at + 1 : at + 2]
    if not sign or sign not in _SIGNS:
        raise _Refused("haft cannot parse the `sed` script")
    middle = (end_of_regex if script[at] == "s" else end_of_replacement)(script, at + 2, sign)
    after = None if middle is None else end_of_replacement(script, middle, sign)
    if after is None or _may_end_elsewhere(script, at + 2, sign, after):
        raise _Refused("haft cannot parse the `sed` script")
    if script[at] == "y":
        return after
    after = _skip(_FLAGS, script, after)
    if script[after : after + 1] in ("e", "w"):
        raise _Refused(f"the flag `{script[after]}` of a `sed` script {_HARM[script[after]]}")
    return after


def _may_end_elsewhere(script: str, at: int, sign: str, after: int) -> bool:
    """Whether a `sed` that gives brackets no special meaning would accept the command, but end it in another place."""
    middle = end_of_replacement(script, at, sign)
    end = None if middle is None else end_of_replacement(script, middle, sign)
    if end is None or end == after:
        return False
    return script[end : end + 1] == "" or script[end] in "gpiImM0123456789weE;}# \t\n"


def _end(script: str, at: int) -> int:
    at = _skip(_BLANKS, script, at)
    if at < len(script) and script[at] not in ";\n}#":
        raise _Refused("haft cannot parse the `sed` script")
    return at
