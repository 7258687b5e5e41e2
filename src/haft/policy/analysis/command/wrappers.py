"""Wrappers: programs such as `nice` and `env` that start the command in their arguments. That command is classified as
if it stood alone.

To decide whether a line is safe, haft resolves only the simplest forms of wrappers. To find dangers, it resolves every
form as well as it can, because a danger that is reported wrongly does no harm.
"""

from __future__ import annotations

import itertools
import re
from typing import Final

from haft.lazy import regex
from haft.policy.analysis.program import Argument
from haft.policy.analysis.scope import is_harmless_before

_DURATION: Final = regex(r"[0-9]+(?:\.[0-9]+)?[smhd]?")
_NUMBER: Final = regex(r"-?[0-9]+")
_LESS: Final = regex(r"-[0-9]+")
_SIGNAL: Final = regex(r"[A-Z]{2,8}[0-9]?|[0-9]{1,2}")
_TIMEOUT: Final = {"--preserve-status": None, "--foreground": None, "-k": _DURATION, "-s": _SIGNAL}
_ASSIGNMENT: Final = regex(r"[A-Za-z_][A-Za-z0-9_]*\+?=")

_WITH_VALUE: Final = {
    "sudo": "-u -g -h -p -C -D -R -T -U --user --group --host --prompt --chdir --chroot",
    "doas": "-u -C",
    "pkexec": "--user",
    "env": "-u -C -S --unset --chdir",
    "nice": "-n --adjustment",
    "ionice": "-c -n -p",
    "chrt": "",
    "timeout": "-k -s --kill-after --signal",
    "xargs": "-a -d -E -I -L -n -P -s --arg-file --delimiter --max-args --max-procs --max-chars",
    "nohup": "",
    "time": "-f -o --format --output",
    "command": "",
    "builtin": "",
    "exec": "-a",
    "setsid": "",
    "stdbuf": "-i -o -e",
    "chroot": "",
    "unshare": "",
    "nsenter": "-t",
    "watch": "-n --interval",
    "strace": "-e -o -p -s",
    "busybox": "",
    "caffeinate": "-t",
    "flock": "-w",
    "parallel": "-j",
    "npx": "-p --package -c --call",
    "bunx": "",
    "pnpx": "",
    "uvx": "--from --with",
    "systemd-run": "-p -u --property --unit",
    "taskset": "",
    "ltrace": "-e -o -p -s",
    "fakeroot": "",
}
_OPERANDS: Final = {"timeout": 1, "chroot": 1, "flock": 1, "taskset": 1, "chrt": 1}
_RUNNERS: Final = {
    "npm": ("exec", "x"),
    "pnpm": ("dlx", "exec"),
    "yarn": ("dlx", "exec"),
    "bun": ("x",),
    "uv": ("run",),
    "poetry": ("run",),
    "pipenv": ("run",),
    "bundle": ("exec",),
}
"""Programs that start the command after one of these words; their options are read like those of `npx`."""
SHELLS: Final = frozenset(("sh", "bash", "dash", "zsh", "ksh", "ash", "fish", "csh", "tcsh"))
INTERPRETERS: Final = regex(r"(?:python|perl|ruby|node|nodejs|php|lua|deno|bun|osascript|tclsh|Rscript)[0-9.]*")


def unwrap_simple(name: str, arguments: list[Argument]) -> list[Argument] | str | None:
    """The command after a wrapper in one of its simplest forms; the reason, as a text, if haft does not analyse this
    form; None if `name` is not a wrapper."""
    if name not in ("timeout", "time", "nice", "command", "env"):
        return None
    texts = [each.text if each.literal else "" for each in arguments]
    if name == "command" and texts[:1] in (["-v"], ["-V"]):
        return None
    if name == "env" and not texts:
        return "`env` shows the environment, which may contain secrets"
    at = _command_at(name, texts)
    is_known = at is not None and all(each.literal and not each.may_split for each in arguments[:at])
    if at is None or not is_known or at >= len(arguments) or texts[at].startswith("-"):
        return f"haft does not know that `{name}` starts only read-only commands"
    return arguments[at:]


def _command_at(name: str, texts: list[str]) -> int | None:
    """The position in `texts` of the command that a wrapper starts; None if haft cannot tell."""
    if name == "timeout":
        at = 0
        while at < len(texts) and texts[at] in _TIMEOUT:
            form = _TIMEOUT[texts[at]]
            if form is not None and not form.fullmatch("".join(texts[at + 1 : at + 2])):
                return None
            at += 1 if form is None else 2
        return at + 1 if at < len(texts) and _DURATION.fullmatch(texts[at]) else None
    if name == "nice":
        if texts[:1] == ["-n"]:
            return 2 if len(texts) > 1 and _NUMBER.fullmatch(texts[1]) else None
        return 1 if texts and _LESS.fullmatch(texts[0]) else 0
    if name == "env":
        at = 0
        while at < len(texts) and _ASSIGNMENT.match(texts[at]):
            variable, _, value = texts[at].partition("=")
            if not is_harmless_before(variable, value):
                return None
            at += 1
        return at
    return 1 if name == "time" and texts[:1] == ["-p"] else 0


def unwrap_any(name: str, arguments: list[Argument]) -> list[Argument] | None:
    """The command that a wrapper starts, for every form of a wrapper that haft knows; None if haft finds no such
    command."""
    if name in _RUNNERS:
        operand = next((at for at, each in enumerate(arguments) if not each.text.startswith("-")), None)
        if operand is None or arguments[operand].text not in _RUNNERS[name]:
            return None
        return unwrap_any("npx", arguments[operand + 1 :])
    options = _WITH_VALUE.get(name)
    if options is None:
        return None
    with_value = options.split()
    at = 0
    operands = _OPERANDS.get(name, 0)
    while at < len(arguments):
        text = arguments[at].text
        if text == "--":
            at += 1
        elif text.startswith("-") and len(text) > 1:
            at += 2 if text in with_value else 1
        elif _ASSIGNMENT.match(text) and name in ("env", "sudo", "doas"):
            at += 1
        elif operands:
            operands -= 1
            at += 1
        else:
            return arguments[at:]
    return None


def starts_commands(name: str) -> bool:
    """Whether a program starts the command in its arguments."""
    return name in _WITH_VALUE


def is_interpreter(name: str) -> bool:
    """Whether a program runs text from its arguments."""
    return name in SHELLS or INTERPRETERS.fullmatch(name) is not None


def prints_only_files(arguments: list[Argument]) -> bool:
    """Whether a `find` prints only names of plain files below relative directories, each ended by a NUL."""
    texts = [each.text if each.literal else "" for each in arguments]
    if texts[:1] != ["find"] or texts[-1:] != ["-print0"]:
        return False
    roots = list(itertools.takewhile(lambda each: not each.startswith("-"), texts[1:]))
    tests = texts[1 + len(roots) : -1]
    if not roots or any(not re.fullmatch(r"[A-Za-z0-9_.][A-Za-z0-9_./-]*", each) for each in roots):
        return False
    if len(tests) % 2 or ("-type", "f") not in zip(tests[::2], tests[1::2], strict=True):
        return False
    return all(test in _FIND_TESTS for test in tests[::2])


def split_simple_exec(arguments: list[Argument]) -> tuple[list[Argument], list[Argument]] | None:
    """A `find` without its `-exec`, and the command that `-exec` starts; None if there is not exactly one simple
    `-exec`."""
    texts = [each.text if each.literal else "" for each in arguments]
    if texts.count("-exec") != 1:
        return None
    start = texts.index("-exec")
    end = next((at for at in range(start, len(texts)) if texts[at] in (";", "+")), None)
    if end is None or end != len(texts) - 1 or texts[start + 1 : end].count("{}") != 1:
        return None
    rest = [*arguments[:start], Argument("-print0")]
    started = [_FOUND_FILE if each.text == "{}" else each for each in arguments[start + 1 : end]]
    is_plain = all(each is _FOUND_FILE or (each.literal and "{}" not in each.text) for each in started)
    return (rest, started) if started and is_plain and prints_only_files(rest) else None


_FOUND_FILE: Final = Argument("{}", literal=False, paths=("./x",), may_split=True, is_program_output=True)
"""Stands for the names that `find` inserts for `{}`."""

_FIND_TESTS: Final = frozenset((
    "-type", "-name", "-iname", "-path", "-ipath", "-wholename", "-size", "-mtime", "-mmin", "-newer", "-maxdepth",
    "-mindepth", "-regex",
))  # fmt: skip
