"""`ps`, which reads its words in a second way if the first way makes no sense: `-u me` may become `u` and the letters
`m` and `e`.

In the second way, the letter `e` does not mean "every process", but shows the environment variables of each process. So
if there is an `e` in any word, every word must certainly make sense in the first way.
"""

from __future__ import annotations

from typing import Final

from haft.lazy import regex
from haft.policy.analysis.program import Invocation, Program
from haft.policy.analysis.programs.shared_checks import UNKNOWN, known_words, word_set

_BSD: Final = regex(r"[aflrTxjsuvXZHmcnSwhAd]+|[0-9][0-9,]*")
_NUMBERS: Final = regex(r"[0-9]{1,7}(?:,[0-9]{1,7})*")
_FIELDS: Final = word_set("""
    pid ppid pgid sid tid lwp nlwp user uid ruser euser group gid comm ucmd args cmd command etime etimes time cputime
    start lstart start_time stat state s pcpu %cpu pmem %mem rss rsz vsz vsize sz tty tt tname ni nice pri wchan psr
    c cp f flags thcount
""")
_NAMES: Final = regex(r"[A-Za-z0-9_][A-Za-z0-9_.+,-]*")
_NUMBERED: Final = word_set("-p --pid --ppid -q --quick-pid -s --sid --cols --columns --width --rows --lines")
_LAYOUTS: Final = word_set("-f -F -j -l -M -O -o --format -y --context -c -P")
_SENSIBLE: Final = (frozenset[str](), frozenset(("-f",)), frozenset(("-F",)), frozenset(("-l",)), frozenset(("-o",)))


def _check(invocation: Invocation) -> str | None:
    words = known_words(invocation.operands)
    if words is None:
        return UNKNOWN
    values = [value for _, value in invocation.options if value is not None]
    if any("env" in value for value in values):
        return "`ps` would show the environment of processes"
    other = next((word for word in words if not _BSD.fullmatch(word)), None)
    if other is not None:
        return f"haft does not know `ps {other}` to be read-only"
    has_letter = invocation.has("-e") or any("e" in value for value in values)
    if has_letter and (words or not _makes_sense(invocation)):
        return "`ps` may read an `e` as the option that shows the environment of processes"
    return None


def _makes_sense(invocation: Invocation) -> bool:
    """Whether `ps` certainly reads the words as they are written, and not in its second way."""
    layouts = frozenset(name for name, _ in invocation.options) & _LAYOUTS
    return layouts in _SENSIBLE and all(_is_known(*option) for option in invocation.options)


def _is_known(name: str, value: str | None) -> bool:
    if value is None:
        return True
    if name in _NUMBERED:
        return _NUMBERS.fullmatch(value) is not None
    if name == "-C":
        return _NAMES.fullmatch(value) is not None
    if name == "-o":
        return all(field.removesuffix("=") in _FIELDS for field in value.split(","))
    return name == "--sort" and all(field.lstrip("+-") in _FIELDS for field in value.split(","))


PROCESSES: Final[dict[str, Program]] = {
    "ps": Program(
        options="""-A -e -a -d -N --deselect -C=word -G=word --Group=word -g=word --group=word -p=word --pid=word
            --ppid=word -q=word --quick-pid=word -s=word --sid=word -t=word --tty=word -u=word --user=word -U=word
            --User=word -F -f --forest -H -j -l -M -O=word -o=word --format=word -P -y --context --headers
            --no-headers --no-heading --cols=word --columns=word --width=word --rows=word --lines=word -L -m -T -c
            --sort=word --cumulative --info -V --version -w --help[=word]""",
        operands="words",
        shows_host_data=True,
        check=_check,
    ),
}
