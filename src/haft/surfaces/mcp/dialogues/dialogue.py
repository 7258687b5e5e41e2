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

from haft.contracts import ApprovalAnswer, ApprovalRequest, Question, RunId
from haft.lazy import regex
from haft.service import check_form
from haft.surfaces.mcp.dialogues.clients import Client
from haft.surfaces.mcp.dialogues.forms import LONGEST_NOTE, Reading, read_answer, request_form, shown_digest

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
        self._workspace = workspace

    @property
    def is_open(self) -> bool:
        return not self.answer.done()

    def form(self) -> dict[str, Any] | None:
        """The question as MCP writes it; None if it does not fit into a dialogue."""
        return request_form(self.request, self._workspace, self.problem)

    def digest(self) -> str:
        """A digest of the question, the same for the same question of the same call."""
        form = request_form(self.request, self._workspace)
        return "" if form is None else shown_digest(form, self.request)

    def take(self, response: Any, client: Client, *, shows_person: bool = True) -> Reading:
        """Take a client's answer. Only a valid answer answers the request."""
        reading = read_answer(self.request, response, client.name, shows_person=shows_person, check_form=check_form)
        if reading.kind == "invalid":
            self.problem = reading.problem
            self.tries += 1
        elif reading.answer is not None and self.is_open:
            self.answer.set_result(reading.answer)
        return reading

    def refuse(self, client: Client, why: str) -> None:
        """Take it that the client cannot answer."""
        if self.is_open:
            self.answer.set_result(ApprovalAnswer(approved=False, message=why[:LONGEST_NOTE], via=client.name))


class Dialogue:
    """The open requests of all runs. An instance is the approver of the service."""

    def __init__(self, workspace: str = ".", *, trusted_clients: Collection[str] = ()) -> None:
        """`trusted_clients`: the clients through which a person may also approve what `client_may_approve` excludes."""
        self._workspace = workspace
        self._trusted = frozenset(trusted_clients)
        self._asked: dict[RunId, dict[str, AskedRequest]] = {}
        self._news: dict[RunId, asyncio.Event] = {}
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

    def open(self, run: RunId) -> list[AskedRequest]:
        """The requests of a run, and of the runs that it made, that nobody has answered."""
        return [asked for asked in self._asked.get(run, {}).values() if asked.is_open]

    def find(self, run: RunId, name: str) -> AskedRequest | None:
        """The open request with this id."""
        asked = self._asked.get(run, {}).get(name)
        return asked if asked is not None and asked.is_open else None

    def askable(self, run: RunId, client: Client) -> list[AskedRequest]:
        """The open requests that this client may be asked."""
        return [asked for asked in self.open(run) if self.may_ask(asked, client)]

    def may_ask(self, asked: AskedRequest, client: Client) -> bool:
        """Whether this client may be asked: it can answer, its answer would count, and the question fits."""
        request = asked.request
        counts = request.client_may_approve or client.name in self._trusted
        return counts and client.can_answer(request) and asked.tries < MOST_TRIES and asked.form() is not None

    def news(self, run: RunId) -> asyncio.Event:
        """An event that is set when the open requests of this run change. It is a new event after each change."""
        return self._news.setdefault(run, asyncio.Event())

    def _tell(self, run: RunId) -> None:
        event = self._news.pop(run, None)
        if event is not None:
            event.set()

    def forget(self, run: RunId) -> None:
        """Forget a run that has ended."""
        self._news.pop(run, None)


def key_of(question: Question) -> str:
    """The key of a question: the one that its tool gave it, unless that looks like an approval or is no plain word."""
    return question.key if _KEY.fullmatch(question.key) and not question.key.startswith(APPROVAL) else "question"


def keys_of(asked: Collection[AskedRequest]) -> Mapping[str, AskedRequest]:
    """The questions by the keys under which a client sees them: the keys that the tool gave them, if it did."""
    keyed: dict[str, AskedRequest] = {}
    for each in asked:
        question = each.request.question
        key = APPROVAL if question is None else key_of(question)
        number = 1
        name = key
        while name in keyed:
            number += 1
            name = f"{key}-{number}"
        keyed[name] = each
    return keyed
