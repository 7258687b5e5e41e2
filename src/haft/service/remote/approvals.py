"""The inbox of a server, and an approver of this program that answers what the calls of its service ask."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, Final

from haft.contracts import (
    NO_GRANTS,
    ApprovalAnswer,
    Approver,
    BadApprover,
    BadUsage,
    Conflict,
    Grants,
    HaftError,
    RunId,
    Scope,
    UnknownRequest,
    grants_from,
    is_batch_id,
)
from haft.lazy import regex
from haft.service.inbox import Reply
from haft.service.remote.connection import ServerConnection, part
from haft.service.remote.shapes import reply_from, request_from, waiting_from

if TYPE_CHECKING:
    from haft.policy import Waiting
    from haft.service.remote.feed import Feed

_WHOLE_NAME: Final = regex(r"[ar]_[0-9a-f]{24}")
_SHORTEST_NAME: Final = 8
_log: Final = logging.getLogger("haft.remote")
_log.addHandler(logging.NullHandler())


class RemoteApprovals:
    """The requests of a workspace of a server that wait for a person."""

    def __init__(self, connection: ServerConnection, path: str) -> None:
        self._connection = connection
        self._path = path
        self._replies: set[asyncio.Task[Reply]] = set()

    async def inbox(self, *, all: bool = False) -> list[Waiting]:  # noqa: A002  the word of the command line
        """The requests that wait for a person: those of this workspace, or with `all` of every workspace of the server
        that the token may enter."""
        answer = await self._connection.ask("GET", "/inbox" if all else f"{self._path}/inbox")
        return [waiting_from(each) for each in answer["requests"]]

    waiting = inbox

    async def find(self, name: str) -> list[Waiting]:
        """The request whose id, or whose run's id, begins with `name`; or all that wait in the batch with this id."""
        if is_batch_id(name):
            found = [each for each in await self.inbox() if each.shown["batch"] == name]
            if not found:
                raise UnknownRequest(name)
            return found
        if not _WHOLE_NAME.fullmatch(name):
            waiting = await self.inbox() if len(name) >= _SHORTEST_NAME else []
            found = [each for each in waiting if each.id.startswith(name) or each.run.startswith(name)]
            if len(found) > 1:
                named = ", ".join(each.id for each in found[:5])
                raise BadUsage(f"more than one request begins with `{name}`: {named}", hint="give more characters")
            if not found:
                raise UnknownRequest(name)
            return found
        return [waiting_from(await self._connection.ask("GET", f"{self._path}/inbox/{part(name)}"))]

    async def asked_below(self, run: RunId) -> Waiting | None:
        """What a run, or a run below it, asks a person now."""
        return next((each for each in await self.inbox() if is_below(each, {run})), None)

    def approve(
        self,
        name: str,
        *,
        scope: Scope = "once",
        allow: int = 0,
        arguments: Mapping[str, Any] | None = None,
        grants: Grants | Mapping[str, Any] | None = None,
        message: str | None = None,
        passphrase: str | None = None,
        **more: Any,
    ) -> asyncio.Task[Reply]:
        """Approve a call that waits: see `ToolService.approve`."""
        body = {"scope": scope, "allow": allow, "args": arguments, "message": message, "passphrase": passphrase}
        body["grants"] = _grants_json(grants)
        return self._replied(name, "approve", {**body, **_more(more)})

    def reject(
        self, name: str, *, message: str | None = None, passphrase: str | None = None, **more: Any
    ) -> asyncio.Task[Reply]:
        """Reject a call that waits: see `ToolService.reject`."""
        return self._replied(name, "reject", {"message": message, "passphrase": passphrase, **_more(more)})

    def _replied(self, name: str, verb: str, body: Mapping[str, Any]) -> asyncio.Task[Reply]:
        task = asyncio.get_running_loop().create_task(self._reply(name, verb, body))
        self._replies.add(task)
        task.add_done_callback(self._replies.discard)
        return task

    async def _reply(self, name: str, verb: str, body: Mapping[str, Any]) -> Reply:
        found = await self.find(name)
        if len(found) == 1:
            return await self.answer(found[0], verb, body)
        answer = await self._send(name, verb, body)
        by_id = {each.id: each for each in found}
        others = tuple(reply_from(each, by_id[each["id"]]) for each in answer["others"] if each["id"] in by_id)
        return reply_from(answer, by_id.get(answer["id"], found[0]), others)

    async def answer(self, waiting: Waiting, verb: str, body: Mapping[str, Any]) -> Reply:
        """Answer a request as it was shown. Raises `Conflict` if it shows something else now."""
        return reply_from(await self._send(waiting.id, verb, {"digest": waiting.digest or None, **body}), waiting)

    async def _send(self, name: str, verb: str, body: Mapping[str, Any]) -> Any:
        told = {key: value for key, value in body.items() if value is not None}
        return await self._connection.ask("POST", f"{self._path}/inbox/{part(name)}/{verb}", body=told)

    async def give(self, waiting: Waiting, answer: ApprovalAnswer) -> bool:
        """Give an answer as an approver returns it. Returns False if somebody answered before, or if the request needs
        no answer any more. Raises `Conflict` if it shows something else now."""
        body: dict[str, Any] = {"message": answer.message}
        if answer.approved:
            body |= {"scope": answer.scope, "allow": answer.allow, "args": answer.arguments}
            body["grants"] = _grants_json(answer.grants)
        try:
            await self.answer(waiting, "approve" if answer.approved else "reject", body)
        except (BadUsage, UnknownRequest, Conflict):
            if any(each.id == waiting.id for each in await self.inbox()):
                raise
            return False
        return True


class RemoteApprover:
    """Lets an approver answer what the calls of one service ask."""

    def __init__(
        self,
        approver: Approver,
        approvals: RemoteApprovals,
        feed: Feed,
        is_asked_here: Callable[[Waiting], bool],
        *,
        approves_connections: bool,
        answers_questions: bool,
        answerable: Callable[[RunId], Collection[str]] | None,
    ) -> None:
        self._approver = approver
        self._approvals = approvals
        self._feed = feed
        self._is_asked_here = is_asked_here
        self._connections = approves_connections
        self._questions = answers_questions
        self._answerable = answerable
        self._asking: dict[str, asyncio.Task[None]] = {}
        self._refused: dict[str, str] = {}
        """The requests that this approver could not answer, each with the digest of what was shown."""
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._watch())

    async def close(self) -> None:
        tasks = [*self._asking.values(), *([] if self._task is None else [self._task])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _watch(self) -> None:
        async for _ in self._feed.changes("inbox"):
            try:
                waiting = {each.id: each for each in await self._approvals.inbox()}
            except HaftError as error:
                _log.warning("the inbox of the server cannot be read: %s", error)
                await asyncio.sleep(1)
                continue
            for name in [name for name in self._asking if name not in waiting]:
                self._asking.pop(name).cancel()  # Somebody else answered, or the call needs no answer any more.
            for each in waiting.values():
                if each.id not in self._asking and self._refused.get(each.id) != each.digest and self._is_for(each):
                    self._asking[each.id] = asyncio.get_running_loop().create_task(self._ask(each))

    def _is_for(self, waiting: Waiting) -> bool:
        if not self._is_asked_here(waiting):
            return False
        if waiting.shown["connection"] is not None:
            return self._connections
        if (question := waiting.shown["question"]) is not None:
            kinds = None if self._answerable is None else self._answerable(waiting.run)
            return self._questions and (kinds is None or question["method"] in kinds)
        return True

    async def _ask(self, waiting: Waiting) -> None:
        while True:
            try:
                await self._approvals.give(waiting, await self._answer(waiting))
                return
            except Conflict:  # It shows something else now: the approver has to see that.
                waiting = (await self._approvals.find(waiting.id))[0]
            except HaftError as error:
                _log.warning("the answer to %s did not count: %s", waiting.id, error)
                self._refused[waiting.id] = waiting.digest
                self._asking.pop(waiting.id, None)
                return

    async def _answer(self, waiting: Waiting) -> ApprovalAnswer:
        try:
            given: Any = self._approver(request_from(waiting))
            if inspect.isawaitable(given):
                given = await given
        except Exception as error:
            _log.warning("the approver failed", exc_info=error)
            return ApprovalAnswer(approved=False, message=f"the approver failed: {type(error).__name__}")
        if isinstance(given, bool):
            return ApprovalAnswer(approved=given)
        if isinstance(given, ApprovalAnswer) and isinstance(given.approved, bool):
            return given
        return ApprovalAnswer(approved=False, message=str(BadApprover(given)))


def is_below(waiting: Waiting, runs: Collection[RunId]) -> bool:
    """Whether one of these runs, or a run below one of them, asks this."""
    return waiting.run in runs or any(run in runs for run in waiting.shown["chain"] or ())


def _grants_json(grants: Grants | Mapping[str, Any] | None) -> dict[str, Any] | None:
    if grants is None or grants == NO_GRANTS:
        return None
    if not isinstance(grants, Grants):
        try:
            grants_from(grants)
        except ValueError as error:
            raise BadUsage(f"grants: {error}") from error
        return dict(grants)
    return {name: value for name, value in grants.to_json().items() if value}


def _more(more: Mapping[str, Any]) -> dict[str, Any]:
    """Further parts of an answer: `paths` and `digest`."""
    for name in more:
        if name not in ("paths", "digest"):
            raise TypeError(f"an answer has no {name!r}")
    return {name: list(value) if name == "paths" and value is not None else value for name, value in more.items()}
