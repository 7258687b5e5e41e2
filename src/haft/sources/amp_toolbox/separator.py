"""Which character a script splits its input lines at, where its text shows it.

Tools in the text form are given `key: value`. A public page once said `key=value`, and a dozen published scripts read
only that. A script that takes the lines it reads apart at `=`, and shows nowhere that it looks for a colon, is given
what it reads. Whoever is in doubt is given the protocol's own.
"""

from __future__ import annotations

import re
from typing import Final

COLON: Final = ": "
EQUALS: Final = "="

_LONGEST_LINE: Final = 500
_MOST_LINES: Final = 5_000
_QUOTE: Final = r"""["'`/]?"""

_AT_COLON: Final = re.compile(
    r"""IFS=\$?["']?:"""
    rf"""|-[dF]\s?{_QUOTE}:"""
    r"""|\bFS\s?=\s?["']:"""
    r"""|\$\{\w{1,40}(?:%%?|\#\#?)[^}]{0,40}:"""
    rf"""|(?:split|partition|indexOf|index|find|explode|startsWith|startswith|removeprefix)\s?\(\s?f?{_QUOTE}[^)]{{0,40}}:"""
    r"""|\[\^:"""
    r"""|\^[\w${}()"'.?*+-]{1,40}:"""
    r"""|["'`]?\w{1,40}:\s?["'`]?\*?["'`]?\)"""
    r"""|==?\s?["']?\w{1,40}:"""
    r"""|(?:grep|sed|awk|match|test)\b[^|]{0,60}\w:"""
)
_AT_EQUALS: Final = re.compile(
    r"""IFS=\$?["']?=["']?\s"""
    rf"""|-[dF]\s?{_QUOTE}="""
    r"""|\bFS\s?=\s?["']="""
    r"""|\$\{\w{1,40}%%?=\*\}"""
    r"""|\$\{\w{1,40}\#\*=\}"""
    rf"""|(?:split|partition|indexOf)\s?\(\s?{_QUOTE}={_QUOTE}"""
    r"""|\^[\w${}()\[\]^"'.?*+-]{1,40}="""
    r"""|(?:grep|sed)\b[^|]{0,20}\w="""
)
_READ: Final = re.compile(r"""\bread\b|\bstdin\b|\bline\b|\binput\b|\bSTDIN\b|\bpair\b|\bentry\b""")
"""What the lines that a script reads are called where it takes them apart."""
_ELSEWHERE: Final = re.compile(
    r"""<<<\s?["']?\$\{?(?!input|line)|\bprintenv\b|\benv\b\s*\||/proc/|\$@|"\$\{?[*1-9]|\bgetopts?\b|\bargv?\b|\bopt"""
)
"""What is split at `=` there is no line that was read: options, variables, files of the machine."""


def separator_of(text: str) -> str | None:
    """`=` or `: `, where a script shows that it reads that; None where it shows neither."""
    equals = False
    for line in text.splitlines()[:_MOST_LINES]:
        code = line.strip()
        if len(code) > _LONGEST_LINE or code.startswith(("#", "//")):
            continue
        if _is_said(code):
            continue
        if _AT_COLON.search(code):
            return COLON
        is_split = _AT_EQUALS.search(code) is not None
        equals = equals or (is_split and _READ.search(code) is not None and not _ELSEWHERE.search(code))
    if not equals:
        return None
    return None if re.search(r"\bjq\b|JSON\.parse|json\.loads?\b", text) else EQUALS


def _is_said(code: str) -> bool:
    """Whether a line only prints: the description's own lines have colons."""
    return (
        re.match(r"""(?:echo|printf|print|console\.log|puts|cat)\b|(?:name|description|\w{1,40}): """, code) is not None
    )
