"""Answers approval requests as a test says, in place of a person."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Literal

from haft.contracts import ApprovalAnswer, ApprovalRequest
from haft.testing.scenarios.scenario import Answer

Answers = Literal["all", "none"] | Sequence[bool | Answer]
"""All requests are answered alike, or one after the other; those after the last answer are rejected."""


class ScriptedApprover:
    """An approver of a service. It keeps the requests."""

    def __init__(self, answers: Answers = "all") -> None:
        self.requests: list[ApprovalRequest] = []
        self.answer_with(answers)

    def answer_with(self, answers: Answers) -> None:
        """Answer the next requests like this."""
        self._same = answers if isinstance(answers, str) else None
        self._next = deque(() if isinstance(answers, str) else answers)

    def __call__(self, request: ApprovalRequest) -> ApprovalAnswer:
        self.requests.append(request)
        if self._same is not None:
            return ApprovalAnswer(approved=self._same == "all")
        if not self._next:
            return ApprovalAnswer(approved=False, message="the test has no answer for this request")
        answer = self._next.popleft()
        if isinstance(answer, bool):
            return ApprovalAnswer(approved=answer)
        return ApprovalAnswer(
            approved=answer.approve,
            message=answer.message,
            arguments=answer.args,
            grants=answer.grant or {},
            scope=answer.scope,
        )
