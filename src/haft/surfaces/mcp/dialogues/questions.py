"""Asks one client what a run, or a batch, asks, on behalf of one request of the client that waits for it.

Since 2026-07-28, a question is a result `input_required`: the client repeats its request with the answers and with a
state that names the run. Before, a question is a request of the server (elicitation) while the call waits.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import mcp_types as types
from mcp.shared.message import ServerMessageMetadata

from haft.surfaces.mcp.calls import CallRequest
from haft.surfaces.mcp.dialogues.carried_state import CarriedState, carried_state
from haft.surfaces.mcp.dialogues.clients import Client
from haft.surfaces.mcp.dialogues.dialogue import Asked, AskedRequest, AskedTogether, key_of, keys_of

if TYPE_CHECKING:
    from haft.contracts import BatchId, RunId
    from haft.surfaces.mcp.dialogues.waiting_calls import WaitingCalls

TOGETHER_SECONDS: Final = 0.25
"""How long questions that are asked at once may take to arrive."""


class Questions:
    """What one request asks its client."""

    def __init__(self, calls: WaitingCalls, request: CallRequest, name: RunId | BatchId, client: Client) -> None:
        """`name` is the run or the batch that the request waits for."""
        self._calls = calls
        self._dialogue = calls.dialogue
        self._request = request
        self._name = name
        self._client = client
        self._left: set[str] = set()
        """The requests that this client left in the inbox."""
        self.asking: dict[str, asyncio.Task[None]] = {}
        """The questions that are asked as requests of the server."""
        self._offered: dict[str, Any] = {}
        """Answers that the client sent before it was asked, by their keys. They answer only questions of tools."""
        self._carried: dict[str, Any] = {}
        """Answers to questions of a run that is gone, by the digests of the questions."""

    # Answers of the client.

    def take_answers(self) -> None:
        """Take the answers that came with the request."""
        given = self._request.params.get("inputResponses")
        responses = dict(given) if isinstance(given, Mapping) else {}
        state = carried_state(self._request.params)
        if state is None:
            self._offered = responses
            return
        self._left = set(state.left)
        shows_person = time.time() - state.at >= self._calls.shortest_answer
        for key, name in state.asked.items():
            if key not in responses:
                continue
            if state.run != self._name:
                self._carried[state.seen[key]] = responses[key]
                continue
            asked = self._named(name)
            if asked is not None:
                self._take(asked, responses[key], shows_person=shows_person)

    def _named(self, name: str) -> Asked | None:
        """The open request, or the open ones of the requests that were asked together, with this name."""
        if " " not in name:
            return self._dialogue.find(self._name, name)
        found = [self._dialogue.find(self._name, each) for each in name.split()]
        fields = {f"call_{number}": asked for number, asked in enumerate(found, 1) if asked is not None}
        return AskedTogether(fields) if fields else None

    def _take(self, asked: Asked, response: Any, *, shows_person: bool) -> None:
        reading = asked.take(response, self._client, shows_person=shows_person)
        if reading.kind == "leave":
            self._left.update(asked.name.split())

    def _use_known_answers(self) -> None:
        """Answer the open questions whose answers came with the request."""
        if not self._offered and not self._carried:
            return
        for asked in self._askable():
            question = asked.request.question
            if question is not None and (key := key_of(question)) in self._offered:
                self._take(asked, self._offered.pop(key), shows_person=True)
            elif question is None and (digest := asked.digest()) in self._carried:
                self._take(asked, self._carried.pop(digest), shows_person=True)

    def _askable(self) -> list[AskedRequest]:
        found = self._dialogue.askable(self._name, self._client)
        return [asked for asked in found if asked.name not in self._left]

    # Questions to the client.

    async def ask(self) -> dict[str, Any] | None:
        """Ask what is open now. Returns the result that asks it; None if nothing is open, or requests of the server ask
        it."""
        self._use_known_answers()
        forms = self._forms(await self._all_together(self._askable()))
        if not self._client.is_modern:
            self._elicit(forms)
            return None
        return self._input_required(forms) if forms else None

    def _forms(self, askable: list[AskedRequest]) -> list[Asked]:
        """The requests as they are asked: the calls of a batch in one form. If they do not fit into one, they are asked
        one after the other."""
        batches = {asked.name: asked.request.batch[0] for asked in askable if asked.request.batch is not None}
        calls = [asked for asked in askable if batches.get(asked.name) == next(iter(batches.values()), "")]
        if len(calls) < 2:
            return [*askable]
        together = AskedTogether({f"call_{number}": asked for number, asked in enumerate(calls, 1)})
        first = together if together.form() is not None else calls[0]
        return [first, *(asked for asked in askable if asked not in calls)]

    def _input_required(self, askable: list[Asked]) -> dict[str, Any]:
        """The questions as a result of the request."""
        keyed = keys_of(askable)
        state = CarriedState(
            self._name,
            {key: asked.name for key, asked in keyed.items()},
            {key: asked.digest() for key, asked in keyed.items()},
            tuple(self._left),
            time.time(),
        )
        forms = {key: asked.form() for key, asked in keyed.items()}
        return {"resultType": "input_required", "inputRequests": forms, "requestState": state.to_text()}

    async def _all_together(self, askable: list[AskedRequest]) -> list[AskedRequest]:
        """The questions, after those that are asked together with them have arrived."""
        until = time.monotonic() + TOGETHER_SECONDS
        while askable and (left := until - time.monotonic()) > 0 and self._are_more_to_come():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._dialogue.news(self._name).wait(), left)
            self._use_known_answers()
            askable = self._askable()
        return askable

    def _are_more_to_come(self) -> bool:
        """Whether questions that a tool asks at once, or requests of calls of one batch, are not all there yet."""
        asked = [each.request for each in self._dialogue.open(self._name)]
        groups = [group for each in asked if (group := each.together or each.batch) is not None]
        return any(groups.count(group) < group[1] for group in groups)

    def _elicit(self, askable: list[Asked]) -> None:
        """Ask the questions as requests of the server, and withdraw those that were answered elsewhere."""
        wanted = {asked.name: asked for asked in askable}
        for name, task in list(self.asking.items()):
            if name not in wanted or task.done():
                task.cancel()
                del self.asking[name]
        for name, asked in wanted.items():
            if name not in self.asking:
                self.asking[name] = asyncio.create_task(self._ask(asked))

    async def _ask(self, asked: Asked) -> None:
        form, began = asked.form(), time.monotonic()
        assert form is not None
        try:
            response = await send_question(self._request, form)
        except asyncio.CancelledError:
            raise
        except Exception as error:  # The client refused the question, or answered with something else.
            question = asked.request.question if isinstance(asked, AskedRequest) else None
            if isinstance(asked, AskedTogether) or question is None or question.is_for_person:
                self._left.update(asked.name.split())
            else:
                asked.refuse(self._client, str(error))
            return
        self._take(asked, response, shows_person=time.monotonic() - began >= self._calls.shortest_answer)


async def send_question(request: CallRequest, form: Mapping[str, Any]) -> dict[str, Any]:
    """Ask the client with a request of the server, and return the result as MCP writes it."""
    kinds: dict[str, tuple[Any, Any]] = {
        "elicitation/create": (types.ElicitRequest, types.ElicitResult),
        "sampling/createMessage": (types.CreateMessageRequest, types.CreateMessageResult),
        "roots/list": (types.ListRootsRequest, types.ListRootsResult),
    }
    kind, result = kinds[form["method"]]
    context = request.context
    asked = kind.model_validate(dict(form), by_name=False)
    metadata = ServerMessageMetadata(related_request_id=context.request_id)
    given = await context.session.send_request(asked, result, metadata=metadata)
    answer: dict[str, Any] = given.model_dump(by_alias=True, mode="json", exclude_none=True)
    return answer
