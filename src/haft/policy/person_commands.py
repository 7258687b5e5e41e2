"""Finds commands of haft that count as a person's in a command line, such as `haft approve`.

The hook of an agent denies such a line before it runs: an agent must not approve itself. The line is read as bash reads
it: quotes, wrappers such as `env` and `setsid`, and lines within lines (`sh -c '…'`). A line that composes the words
while it runs, or starts haft under another name, is not found here. Such a line meets the sandbox, which hides the
state home, and `refuse_clients`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Final

from haft.lazy import regex
from haft.policy.analysis import AnalysisContext, Part, analyse
from haft.policy.analysis.command.wrappers import INTERPRETERS, SHELLS, unwrap_any
from haft.policy.analysis.program import Argument

_ANY: Final = frozenset[str]()
_GRANTS: Final = frozenset(("--network", "--scratch", "--read", "--write", "--env"))
_COMMANDS: Final = {
    "approve": _ANY,
    "reject": _ANY,
    "trust": _ANY,
    "connect": _ANY,
    "permissions add": _ANY,
    "permissions edit": _ANY,
    "permissions remove": _ANY,
    "providers add": _ANY,
    "providers trust": _ANY,
    "providers login": _ANY,
    "changes apply": _ANY,
    "tokens add": _ANY,
    "tokens link": _ANY,
    "approval secret": _ANY,
    "inbox": frozenset(("--watch",)),
    "templates build": frozenset(("--allow-builds",)),
    "tools use": frozenset(("--approve", *_GRANTS)),
    "use": frozenset(("--approve", *_GRANTS)),
    "run": _ANY,
}
"""The commands that count as a person's. Those with options count only with one of these options."""
_HARMLESS: Final = {
    "trust": frozenset(("--revoke",)),
    "providers trust": frozenset(("--revoke",)),
    "connect": frozenset(("--print",)),
}
"""With one of these options, the command needs no person."""
_FIRST_WORDS: Final = frozenset(name.partition(" ")[0] for name in _COMMANDS)
_GROUPS: Final = frozenset(name.partition(" ")[0] for name in _COMMANDS if " " in name)
_WITH_VALUE: Final = frozenset(("-w", "--workspace"))
_DEEPEST: Final = 4
_COMPOSED: Final = regex(r"[$`*?\[{]")
_ASSIGNMENT: Final = regex(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
_CODE: Final = regex(r"-[A-Za-z]*c|--command|--eval|-e")
_MODULE: Final = regex(r"-[A-Za-z]*m")
_TAKES_TEXT: Final = frozenset((
    "at", "batch", "crontab", "eval", "expect", "parallel", "screen", "script", "ssh", "su", "runuser", "systemd-run",
    "tmux", "xargs", "xterm", "gnome-terminal", "konsole", "source", ".",
))  # fmt: skip
"""Programs that run text of theirs, or of their input, as a command line."""
_STATEMENT: Final = regex(r"[^\n;|&]+")
_WORD: Final = regex(r"[^\s,;|&()\[\]<>]+")
_MOST_WORDS: Final = 100
_COMMON: Final = frozenset(("run", "connect"))
"""Commands whose names are in many texts that do not mean haft."""


def person_command(command: str, context: AnalysisContext) -> str | None:
    """The command of haft in a command line that counts as a person's, such as `haft approve`; None if haft finds
    none. Accepts any text and never raises."""
    return _in_line(command, context, 0)


def _in_line(command: str, context: AnalysisContext, depth: int) -> str | None:
    plain = _unquoted(command)
    if "haft" not in plain and not any(word in plain for word in _FIRST_WORDS):
        return None
    if depth > _DEEPEST:
        return _mentioned(command)
    analysis = analyse(command, context)
    if not analysis.understood:
        return _mentioned(command)
    found = (_in_words(_words(part), context, depth) for part in analysis.parts if part.kind == "command")
    certain = next((one for one in found if one is not None), None)
    if certain is None and any(_runs_text(part) for part in analysis.parts):
        # A program from a variable may have been named in another statement.
        is_composed = any(_COMPOSED.search("".join(_words(part)[:1])) for part in analysis.parts)
        return _named_after_haft(_unquoted(command)) if is_composed else _mentioned(command)
    return certain


def _words(part: Part) -> list[str]:
    """The program of a part, and its arguments."""
    words = list(part.words)
    while words and _ASSIGNMENT.match(words[0]):
        words.pop(0)
    return words


def _in_words(words: Sequence[str], context: AnalysisContext, depth: int) -> str | None:
    if not words or depth > _DEEPEST:
        return None
    name, rest = os.path.basename(words[0]), list(words[1:])
    if _is_haft(words[0], context):
        return _person_words(rest)
    if INTERPRETERS.fullmatch(name):
        at = next((at for at, word in enumerate(rest) if _MODULE.fullmatch(word)), None)
        if at is not None and rest[at + 1 : at + 2] in (["haft"], ["haft.surfaces.cli.main"]):
            return _person_words(rest[at + 2 :])
        script = next((at for at, word in enumerate(rest) if not word.startswith("-")), None)
        if script is not None and _is_haft(rest[script], context):
            return _person_words(rest[script + 1 :])
    for text in _inner_lines(name, rest):
        found = _in_line(text, context, depth + 1)
        if found is not None:
            return found
    for started in _started(name, rest):
        found = _in_words(started, context, depth + 1)
        if found is not None:
            return found
    return None


def _started(name: str, rest: Sequence[str]) -> Iterator[list[str]]:
    """The commands that a wrapper or `find` starts."""
    following = unwrap_any(name, [Argument(word) for word in rest])
    if following:
        yield [argument.text for argument in following]
    if name == "find":
        for at, word in enumerate(rest):
            if word in ("-exec", "-execdir", "-ok", "-okdir"):
                yield list(rest[at + 1 :])
    if name in ("pipx", "hatch", "rye", "pdm") and rest[:1] == ["run"]:
        yield list(rest[1:])


def _inner_lines(name: str, rest: Sequence[str]) -> Iterator[str]:
    """The lines within a command: the text of `sh -c`, of `eval`, of `script -c`."""
    if name == "eval":
        yield " ".join(rest)
    if name in SHELLS or name in ("script", "su", "runuser", "xterm"):
        for at, word in enumerate(rest[:-1]):
            if _CODE.fullmatch(word):
                yield rest[at + 1]
        yield from (word.partition("=")[2] for word in rest if word.startswith("--command="))
    if name == "env":
        for at, word in enumerate(rest):
            if word in ("-S", "--split-string"):
                yield " ".join(rest[at + 1 :])
            elif word.startswith(("-S", "--split-string=")):
                yield " ".join([word.removeprefix("-S").removeprefix("--split-string="), *rest[at + 1 :]])
    if name == "watch":
        yield " ".join(word for word in rest if not word.startswith("-"))


def _is_haft(program: str, context: AnalysisContext) -> bool:
    """Whether a program is haft: by its name, or because its path is a link to haft."""
    if os.path.basename(program) == "haft":
        return True
    if "/" not in program or _COMPOSED.search(program):
        return False
    try:
        place = os.path.join(context.workspace, context.cwd, os.path.expanduser(program))
        return os.path.basename(os.path.realpath(place)) == "haft"
    except (OSError, ValueError):
        return False


def _person_words(rest: Sequence[str]) -> str | None:
    """The command of a person in the arguments of haft. A command whose name is composed while the line runs counts as
    one."""
    name = ""
    options: list[str] = []
    operands = 0
    at = 0
    while at < len(rest):
        word = rest[at]
        if word == "--":
            break
        if word.startswith("-"):
            options.append(word.partition("=")[0])
            at += 2 if word in _WITH_VALUE else 1
            continue
        if not name or (name in _GROUPS and " " not in name):
            if _COMPOSED.search(word):
                return f"haft {f'{name} ' if name else ''}{word}"
            name = f"{name} {word}".strip()
            if name not in _COMMANDS and name not in _GROUPS:
                return None
        else:
            operands += 1
        at += 1
    if name not in _COMMANDS:
        return None
    counts, harmless = _COMMANDS[name], _HARMLESS.get(name, _ANY)
    if any(option in harmless for option in options) or "--help" in options or "-h" in options:
        return None
    if name in ("connect", "run") and not operands and "--" not in rest:
        return None
    if not counts:
        return f"haft {name}"
    option = next((each for each in options if each in counts or _COMPOSED.search(each)), None)
    return None if option is None else f"haft {name} {option}"


def _runs_text(part: Part) -> bool:
    """Whether a part runs text that haft does not read word by word: the input of a shell, code, composed words."""
    if part.kind != "command":
        return part.kind == "syntax"
    words = _words(part)
    name = os.path.basename(words[0]) if words else ""
    if name in SHELLS or INTERPRETERS.fullmatch(name):
        is_code = any(_CODE.fullmatch(word) or word == "-s" for word in words[1:])
        return is_code or all(word.startswith("-") for word in words[1:])
    return part.program is None or name in _TAKES_TEXT or bool(words and _COMPOSED.search(words[0]))


def _mentioned(command: str) -> str | None:
    """The command of a person that a text contains, whatever runs the text. Quotes, commas and brackets are passed
    over, as in `["haft", "approve"]`."""
    for statement in _STATEMENT.finditer(_unquoted(command)):
        words = [found[0] for found in _WORD.finditer(statement[0])]
        for at, word in enumerate(words):
            if os.path.basename(word) == "haft" and (found := _person_words(words[at + 1 : at + _MOST_WORDS])):
                return found
    return None


def _named_after_haft(text: str) -> str | None:
    """The command of a person whose words all come somewhere after the word `haft`."""
    words = [found[0].rpartition("=")[2] for found in _WORD.finditer(text)]
    if "haft" not in words:
        return None
    given = set(words[words.index("haft") + 1 :])
    for name, options in _COMMANDS.items():
        if name not in _COMMON and given.issuperset(name.split()) and (not options or not options.isdisjoint(given)):
            return f"haft {name}"
    return None


def _unquoted(command: str) -> str:
    return command.replace("'", "").replace('"', "").replace("\\", "")
