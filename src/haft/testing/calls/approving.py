"""Answers approval requests as a test says, in place of a person."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from haft.contracts import ApprovalAnswer, ApprovalRequest, BadUsage
from haft.testing.reading.parts import answers as read_answers
from haft.testing.scenarios.scenario import Answer

Answers = bool | Literal["all", "none"] | Sequence[bool | str | Mapping[str, Any] | Answer]
"""All requests are answered alike, or one after the other, as in a scenario; those after the last answer are
rejected."""


class ScriptedApprover:
    """An approver of a service. It keeps the requests."""

    def __init__(self, answers: Answers = "all") -> None:
        self.requests: list[ApprovalRequest] = []
        self.answer_with(answers)

    def answer_with(self, answers: Answers) -> None:
        """Answer the next requests like this. Raises `BadUsage` for what is no answer."""
        given: Literal["all", "none"] | tuple[Answer, ...] = read_answers(_Place("approve"), answers)
        self._same = given if isinstance(given, str) else None
        self._next = deque(() if isinstance(given, str) else given)

    @property
    def unused(self) -> int:
        """How many answers are left."""
        return len(self._next)

    def __call__(self, request: ApprovalRequest) -> ApprovalAnswer:
        self.requests.append(request)
        if self._same is not None:
            return ApprovalAnswer(approved=self._same == "all")
        if not self._next:
            return ApprovalAnswer(approved=False, message="the test has no answer for this request")
        answer = self._next.popleft()
        return ApprovalAnswer(
            approved=answer.approve,
            message=answer.message,
            arguments=answer.args,
            grants=answer.grant or {},
            scope=answer.scope,
        )


class _Place:
    """The place of an answer in Python, for messages."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __truediv__(self, key: object) -> _Place:
        return _Place(f"{self._path}.{key}")

    def wrong(self, message: str) -> BadUsage:
        hint = 'an answer is True, False, {"reject": MESSAGE}, {"args": …}, {"grant": …} or an `Answer`'
        return BadUsage(f"`{self._path}` {message}", hint=hint)
