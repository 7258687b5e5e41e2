"""Parses foreign Python source code. Nothing is imported, compiled or run.

An encoding comment makes Python read a file differently from what people see: in `utf-7` a comment can be code. So the
text must be UTF-8, and a file with another encoding comment is refused. Hidden characters are not checked here.
"""

from __future__ import annotations

import ast
import functools
import re
import warnings
from typing import Final

from haft.schema import shortened
from haft.sources.agent_studio.template import Problem

MOST_PARSED: Final = 200_000
LONGEST_LINE: Final = 20_000
"""The most bytes of a line. Python needs quadratic time for a line with many `{…}`."""
LONGEST_ANNOTATION: Final = 2_000
"""The most characters of a type that is written as text."""
_BOM: Final = b"\xef\xbb\xbf"
_LINE_END: Final = re.compile(rb"\r\n|\r|\n")
_COOKIE: Final = re.compile(rb"[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)", re.DOTALL)
_PLAIN: Final = re.compile(r"utf-?8|utf-8-.*|(us-)?ascii")
"""The encodings that are accepted. Python treats `utf-8-` with any suffix as UTF-8."""


def parse_source(source: bytes) -> ast.Module | Problem:
    """The parsed module, or why it cannot be parsed."""
    if len(source) > MOST_PARSED:
        return Problem("python-parse", f"it has more than {MOST_PARSED:_} bytes", "split it")
    if (refused := _refused(source)) is not None:
        return refused
    return _parsed(source)


def parse_expression(text: str) -> ast.expr | None:
    """The expression of a type that is written as text; None if the text is not an expression, or is too long."""
    if len(text) > LONGEST_ANNOTATION:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _refused(source: bytes) -> Problem | None:
    """Why source code is refused before it is parsed; None if it is not refused."""
    if b"\0" in source:
        at = 1 + len(_LINE_END.findall(source[: source.index(b"\0")]))
        return Problem("python-parse", "it has a NUL byte", "save it as text", at)
    lines = _LINE_END.split(source.removeprefix(_BOM))
    for number, line in enumerate(lines, 1):
        if len(line) > LONGEST_LINE:
            return Problem("python-parse", f"it has a line of more than {LONGEST_LINE:_} bytes", "break it", number)
    for number, line in enumerate(lines[:2], 1):
        cookie = _COOKIE.match(line)
        name = cookie[1].decode("ascii", "replace").lower().replace("_", "-") if cookie else "utf-8"
        if not _PLAIN.fullmatch(name) or (name.endswith("ascii") and not source.isascii()):
            what = f"its encoding comment says `{shortened(name, 40)}`, so Python may run other code than people read"
            return Problem("python-coding", what, "save it as UTF-8, and remove the encoding comment", number)
    return None


@functools.lru_cache(maxsize=4)
def _parsed(source: bytes) -> ast.Module | Problem:
    """Parse source code. The result is cached, because a template is often read twice: to list it and to check it."""
    try:
        text = source.decode("utf-8-sig")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except UnicodeDecodeError as error:
        line = 1 + len(_LINE_END.findall(source[: error.start]))
        return Problem("python-parse", "it is not UTF-8", "save it as UTF-8", line)
    except SyntaxError as error:
        reason = shortened(str(error.msg), 200)
        return Problem("python-parse", f"it is not valid Python: {reason}", None, error.lineno or None)
    except (ValueError, RecursionError, MemoryError) as error:
        why = shortened(str(error), 200) or "it is nested too deep"
        return Problem("python-parse", f"it cannot be parsed: {why}", "write it more simply")
