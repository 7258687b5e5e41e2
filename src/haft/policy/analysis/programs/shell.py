"""Programs that only print their words or compute with them. `command/builtin.py` classifies the shell's own
commands."""

from __future__ import annotations

from typing import Final

from haft.lazy import regex
from haft.policy.analysis.program import Invocation, Program
from haft.policy.analysis.programs.shared_checks import UNKNOWN, known_words

_MAX_SLEEP_SECONDS: Final = 60.0
_SLEEP: Final = regex(r"([0-9]{1,9}(?:\.[0-9]{0,9})?|\.[0-9]{1,9})([sm]?)")
_DIRECTIVE: Final = regex(r"%(?:%|[-+ #'0-9.*$]*[hjlLqtz]*([A-Za-z]?))")
_FACTORED: Final = regex(r"[0-9]{1,18}")
_NUMBER: Final = regex(r"[+-]?[0-9]{1,8}(?:\.[0-9]{1,8})?")


def _printf(invocation: Invocation) -> str | None:
    """Refuse `-v` and the format `%n`: they assign to a variable, and bash runs commands in a subscript of the
    variable's name. Only the first word can be an option. Returns the reason, or None."""
    if not invocation.operands:
        return None
    first = invocation.operands[0]
    if not first.literal and first.may_be_option:
        return f"`{first.text}` may become an option of `printf`"
    if first.literal and first.text.startswith("-v"):
        return "`printf -v` assigns to a variable"
    if len(invocation.operands) == 1 and not first.may_split:
        return None
    if not first.literal or first.paths is not None:
        return "the format of `printf` is known only when it runs, and `%n` assigns to a variable"
    stores = any(found[1] == "n" for found in _DIRECTIVE.finditer(first.text))
    return "`%n` of `printf` assigns to a variable" if stores else None


def _sleep(invocation: Invocation) -> str | None:
    words = known_words(invocation.operands)
    if words is None:
        return UNKNOWN
    whole = 0.0
    for word in words:
        found = _SLEEP.fullmatch(word)
        if found is None:
            return f"`sleep {word}` may wait endlessly"
        whole += float(found[1]) * (60 if found[2] == "m" else 1)
    return f"it sleeps for more than {_MAX_SLEEP_SECONDS:.0f} seconds" if whole > _MAX_SLEEP_SECONDS else None


def _seq(invocation: Invocation) -> str | None:
    words = known_words(invocation.operands)
    if words is None:
        return UNKNOWN
    words += [value or "" for name, value in invocation.options if name == "-number"]
    return next((f"`seq {word}` may count endlessly" for word in words if not _NUMBER.fullmatch(word)), None)


def _factor(invocation: Invocation) -> str | None:
    words = known_words(invocation.operands)
    if words is None:
        return UNKNOWN
    return next((f"`factor {word}` may compute endlessly" for word in words if not _FACTORED.fullmatch(word)), None)


_QUIET: Final = Program(operands="words", all_options_harmless=True)

SHELL: Final[dict[str, Program]] = {
    "echo": _QUIET,
    "printf": Program(operands="words", all_options_harmless=True, check=_printf),
    "expr": _QUIET,
    "type": Program(options="-a -f -p -P -t", operands="words", all_options_harmless=True),
    "which": Program(options="-a -s --all --help --version -v", operands="words"),
    "sleep": Program(options="--help --version", operands="words", check=_sleep),
    "seq": Program(
        options="-f=word --format=word -s=word --separator=word -w --equal-width --help --version",
        operands="words",
        number_option=True,
        check=_seq,
    ),
    "factor": Program(options="-h --exponents --help --version", operands="words", check=_factor),
    "numfmt": Program(
        options="""--debug -d=word --delimiter=word --field=word --format=word --from=word --from-unit=word --grouping
            --header[=word] --invalid=word --padding=word --round=word --suffix=word --to=word --to-unit=word
            -z --zero-terminated --help --version""",
        operands="words",
        all_options_harmless=True,
    ),
}
