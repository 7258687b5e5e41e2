"""The prompt about a batch: shows all its calls that need approval, and takes one answer for all, some or none."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from haft.contracts import ApprovalAnswer, ApprovalRequest
from haft.surfaces.cli.person.line_input import NO, YES, not_understood, read_line
from haft.surfaces.cli.screen.printing import say
from haft.surfaces.text.requests import call_lines

APPROVED: Final = "the person at the terminal approved it, with other calls of its batch"
REJECTED: Final = "the person at the terminal rejected it, with other calls of its batch"
QUESTION: Final = "Approve these {count} calls? [y/N, numbers, e(ach), ?] "
HELP: Final = (
    "y, yes: approve all these calls, once",
    "2 3: approve only the calls with these numbers, and reject the others",
    "e, each: ask about each call, with all its choices",
    "n, no, Enter: reject all these calls",
)


async def ask_about_batch(
    requests: Sequence[ApprovalRequest], workspace: str, ask: Callable[[ApprovalRequest], Awaitable[ApprovalAnswer]]
) -> list[ApprovalAnswer]:
    """The answers of the person, in the order of the requests. `ask` asks about a single request."""
    count = len(requests)
    sys.stderr.write(f"{count} calls of a batch need approval\n")
    for number, request in enumerate(requests, 1):
        sys.stderr.write(f"\ncall {number} of {count}:\n")
        for line in call_lines(request, request.arguments, workspace):
            sys.stderr.write(f"{line}\n")
    sys.stderr.write("\n")
    while True:
        line = await read_line(QUESTION.format(count=count))
        if not line:
            raise EOFError  # The terminal was closed: no person rejected the calls.
        answer = line.strip().lower()
        if answer in YES:
            return [_answered(is_approved=True)] * count
        if answer in ("", *NO):
            return [_answered(is_approved=False)] * count
        if answer in ("e", "each"):
            return [await ask(request) for request in requests]
        if answer in ("?", "h", "help"):
            for text in HELP:
                sys.stderr.write(f"  {text}\n")
        elif (chosen := _numbers(answer, count)) is not None:
            return [_answered(is_approved=number in chosen) for number in range(1, count + 1)]
        else:
            say(not_understood(answer, f"y, n, numbers from 1 to {count}, or e; `?` explains them"))


def _numbers(answer: str, count: int) -> set[int] | None:
    """The numbers in an answer such as `1 3` or `1,3`; None if it is something else."""
    words = answer.replace(",", " ").split()
    if not all(word.isascii() and word.isdigit() and len(word) < 6 for word in words):
        return None
    numbers = set(map(int, words))
    return numbers if numbers and all(1 <= number <= count for number in numbers) else None


def _answered(*, is_approved: bool) -> ApprovalAnswer:
    return ApprovalAnswer(approved=is_approved, message=APPROVED if is_approved else REJECTED)
