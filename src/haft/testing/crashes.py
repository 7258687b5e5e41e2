"""Says whether a failed call was a crash: the tool ended by accident, and not because it refused the arguments.

A tool refuses arguments with an exit code and a message, or, if it is a Python function, by raising an exception of its
own. A crash is everything else that ends it: a signal, an exception that nobody caught, a program that is missing.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Mapping
from typing import Any, Final

_SIGNAL: Final = re.compile(r"was ended by signal (\d+)")
_PROCESS: Final = re.compile(
    r"(exited -?\d+|closed the connection|ended) before it answered|the worker process of .* (ended|exited)"
)
_TRACEBACK: Final = "Traceback (most recent call last):"
_FRAME: Final = re.compile(r'^ *File "([^"]*)", line (\d+)', re.MULTILINE)
_EXCEPTION: Final = re.compile(r"^([A-Za-z_][\w.]*)(?::|$)")
_LIBRARY: Final = re.compile(r"/site-packages/|/dist-packages/|/lib/python\d|^<")
_SIGNS: Final = tuple(
    re.compile(pattern, re.MULTILINE)
    for pattern in (
        r"^(?:Uncaught |Unhandled )?(?P<sign>\w*(?:Error|Exception)\b).*\n(?:.*\n){0,3}?\s+at ",  # node, bun, java
        r"(?P<sign>Unhandled|Uncaught)[ \w]*(?:Rejection|Exception|Error)",
        r"(?P<sign>unbound variable|syntax error|command not found|bad substitution|ambiguous redirect|division by 0)",
        r"line \d+: .*(?P<sign>: not found|parameter not set)$",
        r"^(?P<sign>panic: |fatal error: )|thread '.*' (?:\(\d+\) )?(?P<rust>panicked at)",
        r"(?P<sign>Exception in thread|Segmentation fault|core dumped|PHP Fatal error|stack overflow)",
        r"^\S+\.rb:\d+:in .*\((?P<sign>\w+(?:Error|Exception))\)",
        r"^(?P<sign>Can't locate |Can't use |Illegal division|Use of uninitialized).* at \S+ line \d+",
    )
)
_NOT_STARTED: Final = (126, 127)
_ASKED_TO_END: Final = (signal.SIGHUP, signal.SIGINT, signal.SIGPIPE, signal.SIGTERM)
"""Signals, or exit codes of shells that stand for them, with which programs end in an orderly way."""


def crash_of(outcome: Mapping[str, Any]) -> str | None:
    """What tells that the call of this outcome, given as JSON, ended by a crash, such as `KeyError in line 12`; None if
    it did not."""
    error = outcome.get("error")
    if not error or error["code"] not in ("tool-failed", "sandbox-denied", "internal-error", "worker-lost"):
        return None
    message, said = error["message"], outcome.get("stderr") or outcome.get("output") or ""
    if error["code"] == "internal-error":
        return "an error in haft itself"
    if found := _SIGNAL.search(message):
        return None if int(found[1]) in _ASKED_TO_END else f"signal {found[1]}"
    if _TRACEBACK in said:
        return _traceback(said, is_function=outcome.get("exitCode") is None)
    if found := _PROCESS.search(message):
        return "its process ended"
    if not outcome.get("exitCode"):
        return None
    for pattern in _SIGNS:
        if found := pattern.search(said):
            return next(each for each in found.groups() if each).strip(": ")
    return f"exit {outcome['exitCode']}" if outcome["exitCode"] in _NOT_STARTED else None


def _traceback(said: str, *, is_function: bool) -> str | None:
    """The crash that a Python traceback tells. An exception that a function's own code raises is none: functions refuse
    arguments that way."""
    last = said[said.rindex(_TRACEBACK) + len(_TRACEBACK) :]
    frames = list(_FRAME.finditer(last))
    after = last[frames[-1].end() :].splitlines() if frames else last.splitlines()
    name = next((found[1] for line in after if (found := _EXCEPTION.match(line))), "an exception")
    name = name.rpartition(".")[2]
    if not frames:
        return name
    is_raised = len(after) > 1 and after[1].strip().startswith("raise ")
    if is_function and is_raised and not _LIBRARY.search(frames[-1][1]):
        return None
    own = next((each for each in reversed(frames) if not _LIBRARY.search(each[1])), frames[-1])
    return f"{name} in line {own[2]}"
