"""Lets a tool in progress ask: a person, or the program that made the call.

The questions go through the approval broker, like requests for approval: the approver of the host or the inbox answers,
and the first answer counts. Meanwhile the call is in progress, and its deadline stands still. A question without an
answer ends as `cancel`; the tool decides what that means.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from typing import Any, Final

from haft import policy
from haft.contracts import (
    FORM,
    NO_CONFINEMENT,
    ApprovalRequest,
    BadUsage,
    HaftError,
    Question,
    QuestionAnswer,
    RunId,
)
from haft.pipeline import nesting
from haft.pipeline.approval_broker import ApprovalBroker, approval_request
from haft.pipeline.deadline import deadlines_paused
from haft.pipeline.run import Run
from haft.schema import validator_for
from haft.values import replace

MAX_QUESTIONS: Final = 50
"""How many questions one run may ask. Each takes a person's time, and stops the deadline."""
MAX_AT_ONCE: Final = 10
APPROVER_SECONDS: Final = 600.0
"""How long a question waits for the approver if nobody reads the inbox."""

Answerable = Callable[[RunId], Collection[str]]
"""Returns the kinds of questions that the program which made this run's call can answer."""


class Questions:
    """Asks the questions of a host's runs."""

    def __init__(self, broker: ApprovalBroker, answerable: Answerable | None, seconds: float) -> None:
        """`answerable` is None if only people answer. `seconds` is how long a question waits for an answer in the
        inbox; 0 if nobody reads the inbox."""
        self._broker = broker
        self._answerable = answerable
        self._seconds = seconds if seconds > 0 else APPROVER_SECONDS

    def can_ask(self, run: Run, method: str) -> bool:
        """Whether anybody may answer this kind of question. A person in the inbox may answer any form."""
        if method == FORM and self._broker.has_inbox:
            return True
        return self._broker.answers_questions and (self._answerable is None or method in self._answerable(run.id))

    async def ask(self, run: Run, questions: tuple[Question, ...]) -> list[QuestionAnswer]:
        """Ask questions at once, and wait for all answers."""
        if len(questions) > MAX_AT_ONCE or run.questions + len(questions) > MAX_QUESTIONS:
            raise BadUsage(f"a call may ask {MAX_QUESTIONS} questions, and {MAX_AT_ONCE} at once")
        run.questions += len(questions)
        together = (policy.new_request_id(), len(questions))
        # Code of the approver is not part of the tool that asked.
        within = nesting.CURRENT.set(None)
        try:
            with deadlines_paused(each.deadline for each in (run, *nesting.callers(run))):
                return await asyncio.gather(*(self._ask(run, each, together) for each in questions))
        finally:
            nesting.CURRENT.reset(within)

    async def _ask(self, run: Run, question: Question, together: tuple[str, int]) -> QuestionAnswer:
        if not self.can_ask(run, question.method):
            run.unanswerable.add(question.method)
            return QuestionAnswer("cancel")
        if run.cancel_requested:
            return QuestionAnswer("cancel")
        request = self._request(run, question, together)
        by = question.by or f"`{run.call.name}`"
        facts = {"question": question.to_json(), "request": request.id}
        run.emit("progress", {"message": f"a question of {by}: {question.message}", "fraction": None, **facts})
        try:
            given = await self._broker.ask_while_running(run, request, self._seconds)
        except HaftError as error:
            run.add_note(f"a question of the call was not answered: {error.message}")
            return QuestionAnswer("cancel")
        answer = given.answer
        if answer.approved is not True:
            return QuestionAnswer("cancel" if given.by in ("nobody", "expiry") else "decline")
        if question.url is not None:
            return QuestionAnswer("accept")
        content = dict(answer.arguments or {})
        if question.is_for_person and (problems := _problems(question, content)):
            run.add_note(f"the answer to a question of the call does not fit the form: {problems[0]}")
            return QuestionAnswer("cancel")
        return QuestionAnswer("accept", content)

    def _request(self, run: Run, question: Question, together: tuple[str, int]) -> ApprovalRequest:
        confinement = run.call.confinement or NO_CONFINEMENT
        who = question.by or "the tool"
        what = f"wants you to visit {question.url}" if question.url is not None else "asks for input"
        request = approval_request(run, confinement, f"{who} {what}")
        masked = run.call.secrets.masked
        return replace(
            request,
            parts=(),
            to_allow=(),
            definition_diff=None,
            question=replace(question, params=masked(dict(question.params))),
            together=together,
            expires_at=self._broker.now() + self._seconds,
        )


def _problems(question: Question, content: dict[str, Any]) -> list[str]:
    """What is wrong with the values of a form. A schema that cannot be used has no valid answer."""
    try:
        validator = validator_for(question.schema)
    except HaftError as error:
        return [error.message]
    return [] if validator.is_valid(content) else list(validator.problems(content))
