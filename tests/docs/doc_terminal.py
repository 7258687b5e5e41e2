"""A terminal for examples: bash on a pty, so that what is compared is what a person sees."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from doc_pages import Step

from warm import Warm

PATIENCE = 60.0
_MARK = "\x1e"
_REDRAWN = re.compile(r"[^\n]*\r\x1b\[2K")
_STEERING = re.compile(r"\x1b(?:\[[0-9;?!]*[a-zA-Z]|\][0-9;]*(?:\x07|\x1b\\)|[()][A-Z0-9]|[78=>\\])|[\x0f\x18]")
_QUESTION = re.compile(r"^(?P<question>.*\[y/N[^\]]*\] )(?P<typed>\S+)$", re.MULTILINE)


def play(steps: Sequence[Step], workspace: Path, env: Mapping[str, str], scratch: Path, warm: Warm) -> list[str]:
    """What appears after each command, all typed into one shell. Its calls of haft are forked from `warm`."""
    script = scratch / "script"
    # The mark must not change `$?`: examples show it.
    after = f"__code=$?; printf '{_MARK}'; (exit $__code)\n"
    script.write_text("".join(f"{step.command}\n{after}" for step in steps))
    answers = [match["typed"] for step in steps for match in _QUESTION.finditer(step.shown)]
    ours, theirs = pty.openpty()
    calls = scratch / "calls"
    shutil.rmtree(calls, ignore_errors=True)
    calls.mkdir()
    warm.shell(script, theirs, workspace, dict(env), calls)
    os.close(theirs)
    try:
        seen = _converse(ours, answers)
    finally:
        os.close(ours)
    return [_plain(part) for part in seen.split(_MARK)][: len(steps)]


def _converse(terminal: int, answers: list[str]) -> str:
    data = b""
    asked_at = 0
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if select.select([terminal], [], [], 0.2)[0]:
            try:
                part = os.read(terminal, 65536)
            except OSError:  # the shell has ended and closed its side
                return data.decode("utf-8", "replace")
            if not part:
                return data.decode("utf-8", "replace")
            data += part
        text = data.decode("utf-8", "replace")
        question = re.search(r"\[y/N[^\]]*\] $", text)
        if question and len(text) > asked_at and answers:
            asked_at = len(text)
            os.write(terminal, answers.pop(0).encode() + b"\n")
    raise AssertionError(f"the example did not end in time; it said:\n{data.decode('utf-8', 'replace')}")


def _plain(text: str) -> str:
    text = text.replace("\r\n", "\n")
    return _STEERING.sub("", _REDRAWN.sub("", text)).strip("\n")


def matches(expected: str, seen: str) -> bool:
    """Whether `seen` is what was expected, `…` standing for anything and spaces at line ends for nothing."""
    pattern = ".*?".join(re.escape(part) for part in _trimmed(expected).split("…"))
    return re.fullmatch(pattern, _trimmed(seen), re.DOTALL) is not None


def _trimmed(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip().splitlines())
