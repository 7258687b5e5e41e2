"""The approver of a server's service: lets MCP clients answer the requests that also wait in the inbox.

`Dialogue` collects the open requests of each run. `waiting_calls` and `tasks` ask them through the MCP requests that
wait for these runs. If no client answers, `Dialogue` never answers either, and a person answers in the inbox. The first
answer counts: the approval broker withdraws a request as soon as it has an answer.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from haft.contracts import ApprovalAnswer, ApprovalRequest, BatchId, Question, RunId
from haft.lazy import regex
from haft.service import check_form
from haft.surfaces.mcp.dialogues.clients import Client
from haft.surfaces.mcp.dialogues.forms import (
    DECISION,
    LONGEST_NOTE,
    Reading,
    read_answer,
    request_form,
    response_part,
    shown_digest,
    together_form,
)

SHORTEST_ANSWER: Final = 1.0
"""A person takes at least this many seconds to read a question and to decline it. A client that declines faster shows
the question to nobody."""
APPROVAL: Final = "approval"
"""The key of a request for approval."""
_KEY: Final = regex(r"[A-Za-z0-9_.-]{1,64}")
MOST_TRIES: Final = 3
"""How often a client may answer a question with values that do not fit, before it is not asked any more."""


class AskedRequest:
    """A request that waits for an answer."""

    def __init__(self, name: str, request: ApprovalRequest, workspace: str) -> None:
        self.name = name
        """The request's id."""
        self.request = request
        self.answer: asyncio.Future[ApprovalAnswer] = asyncio.get_running_loop().create_future()
        self.problem = ""
        """What was wrong with the last answer."""
        self.tries = 0
        self.shown_at: float | None = None
        """For a task: when the client first saw the question, as a monotonic time."""
        self.workspace = workspace

    @property
    def is_open(self) -> bool:
        return not self.answer.done()

    def form(self) -> dict[str, Any] | None:
        """The question as MCP writes it; None if it does not fit into a dialogue."""
        return request_form(self.request, self.workspace, self.problem)

    def digest(self) -> str:
        """A digest of the question, the same for the same question of the same call."""
        form = request_form(self.request, self.workspace)
        return "" if form is None else shown_digest(form, self.request)

    def take(self, response: Any, client: Client, *, shows_person: bool = True) -> Reading:
        """Take a client's answer. Only a valid answer answers the request."""
        reading = self.read(response, client, shows_person)
        if reading.kind == "invalid":
            self.note_problem(reading.problem)
        elif reading.answer is not None and self.is_open:
            self.answer.set_result(reading.answer)
        return reading

    def read(self, response: Any, client: Client, shows_person: bool) -> Reading:
        """What a client's answer says, without taking it."""
        return read_answer(self.request, response, client.name, shows_person=shows_person, check_form=check_form)

    def note_problem(self, problem: str) -> None:
        """Note that an answer was not valid."""
        self.problem = problem
        self.tries += 1

    def refuse(self, client: Client, why: str) -> None:
        """Take it that the client cannot answer."""
        if self.is_open:
            self.answer.set_result(ApprovalAnswer(approved=False, message=why[:LONGEST_NOTE], via=client.name))


class AskedTogether:
    """The requests of several calls of a batch, in one form. Each call has its own answer there."""

    def __init__(self, fields: Mapping[str, AskedRequest]) -> None:
        """`fields` are the requests by their fields in the form."""
        self._fields = fields
        self.name = " ".join(asked.name for asked in fields.values())

    def form(self) -> dict[str, Any] | None:
        """The question as MCP writes it; None if it does not fit into a dialogue."""
        first = next(iter(self._fields.values()))
        requests = {field: asked.request for field, asked in self._fields.items()}
        return together_form(requests, first.workspace, first.problem)

    def digest(self) -> str:
        """Empty: the answers of a batch are for this batch, and for no later one."""
        return ""

    def take(self, response: Any, client: Client, *, shows_person: bool = True) -> Reading:
        """Take a client's answer. It answers all requests, or none if it is not valid."""
        parts = {field: response_part(response, field) for field in self._fields}
        readings = [asked.read(parts[field], client, shows_person) for field, asked in self._fields.items()]
        for field, reading in zip(self._fields, readings, strict=True):
            if reading.kind == "invalid":
                problem = reading.problem.replace(DECISION, field)
                for asked in self._fields.values():
                    asked.note_problem(problem)
                return reading
        for field, asked in self._fields.items():
            asked.take(parts[field], client, shows_person=shows_person)
        return readings[0]


Asked = AskedRequest | AskedTogether


class Dialogue:
    """The open requests of all runs. An instance is the approver of the service."""

    def __init__(self, workspace: str = ".", *, trusted_clients: Collection[str] = ()) -> None:
        """`trusted_clients`: the clients through which a person may also approve what `client_may_approve` excludes."""
        self._workspace = workspace
        self._trusted = frozenset(trusted_clients)
        self._asked: dict[RunId, dict[str, AskedRequest]] = {}
        self._news: dict[RunId | BatchId, asyncio.Event] = {}
        self._batches: dict[RunId | BatchId, tuple[RunId, ...]] = {}
        self._batch_of: dict[RunId, BatchId] = {}
        self._numbers = itertools.count(1)
        self.answerable_of: Callable[[RunId], Collection[str]] = lambda _run: ()
        """The kinds of questions that the client which waits for a run answers; `waiting_calls` sets it."""

    def configure(self, workspace: str, trusted_clients: Collection[str]) -> None:
        """Set values that are known only after the service is open."""
        self._workspace = workspace
        self._trusted = frozenset(trusted_clients)

    async def __call__(self, request: ApprovalRequest) -> ApprovalAnswer:
        """Wait until a client answers. Cancelling withdraws the request."""
        root = RunId(request.chain[0]) if request.chain else request.run
        asked = AskedRequest(request.id or f"request-{next(self._numbers)}", request, self._workspace)
        self._asked.setdefault(root, {})[asked.name] = asked
        self._tell(root)
        try:
            return await asked.answer
        finally:
            asked.answer.cancel()
            self._asked[root].pop(asked.name, None)
            if not self._asked[root]:
                del self._asked[root]
            self._tell(root)

    def answerable(self, run: RunId) -> Collection[str]:
        """The kinds of questions that can be asked while this run is in progress."""
        return self.answerable_of(run)

    def add_batch(self, batch: BatchId, runs: Collection[RunId]) -> None:
        """From now on, the requests of these runs are also those of the batch."""
        self._batches[batch] = tuple(runs)
        self._batch_of.update(dict.fromkeys(runs, batch))

    def open(self, run: RunId | BatchId) -> list[AskedRequest]:
        """The requests of a run or of a batch, and of the runs that it made, that nobody has answered."""
        runs = self._batches.get(run, (run,))
        return [asked for each in runs for asked in self._asked.get(RunId(each), {}).values() if asked.is_open]

    def find(self, run: RunId | BatchId, name: str) -> AskedRequest | None:
        """The open request with this id."""
        return next((asked for asked in self.open(run) if asked.name == name), None)

    def askable(self, run: RunId | BatchId, client: Client) -> list[AskedRequest]:
        """The open requests that this client may be asked."""
        return [asked for asked in self.open(run) if self.may_ask(asked, client)]

    def may_ask(self, asked: AskedRequest, client: Client) -> bool:
        """Whether this client may be asked: it can answer, its answer would count, and the question fits."""
        request = asked.request
        counts = request.client_may_approve or client.name in self._trusted
        return counts and client.can_answer(request) and asked.tries < MOST_TRIES and asked.form() is not None

    def news(self, run: RunId | BatchId) -> asyncio.Event:
        """An event that is set when the open requests of this run or batch change. It is a new event after each
        change."""
        return self._news.setdefault(run, asyncio.Event())

    def _tell(self, run: RunId) -> None:
        for name in (run, self._batch_of.get(run)):
            event = None if name is None else self._news.pop(name, None)
            if event is not None:
                event.set()

    def forget(self, run: RunId | BatchId) -> None:
        """Forget a run or a batch that has ended."""
        self._news.pop(run, None)
        for each in self._batches.pop(run, ()):
            self._batch_of.pop(each, None)


def key_of(question: Question) -> str:
    """The key of a question: the one that its tool gave it, unless that looks like an approval or is no plain word."""
    return question.key if _KEY.fullmatch(question.key) and not question.key.startswith(APPROVAL) else "question"


def keys_of(asked: Collection[Asked]) -> Mapping[str, Asked]:
    """The questions by the keys under which a client sees them: the keys that the tool gave them, if it did."""
    keyed: dict[str, Asked] = {}
    for each in asked:
        question = each.request.question if isinstance(each, AskedRequest) else None
        key = APPROVAL if question is None else key_of(question)
        number = 1
        name = key
        while name in keyed:
            number += 1
            name = f"{key}-{number}"
        keyed[name] = each
    return keyed
