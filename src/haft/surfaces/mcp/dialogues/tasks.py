"""The tasks extension of MCP (`io.modelcontextprotocol/tasks`): long calls that a client follows by polling.

A task is a run, and its id is the run's. Only clients that declare the extension get tasks. The server decides which
calls become tasks: those of a tool that declares it, those that take long, and those that wait for a person whom the
client cannot ask. A client reaches only its own runs.

| run | task |
|---|---|
| queued, in-progress | working; input_required while the tool asks something |
| blocked-on-user | input_required |
| done, error, rejected-by-user | completed; the result has `isError` |
| error without an answer of the tool: it died, or haft failed | failed |
| cancelled | cancelled |
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import MCP_NAME_HEADER, decode_header_value
from pydantic import Field

from haft.contracts import HaftError, Outcome, Principal, RunId, iso_time, outcome_from
from haft.service import RunRecord
from haft.surfaces.mcp.dialogues.clients import TASKS, client_of
from haft.surfaces.mcp.dialogues.missing_capabilities import missing_tasks
from haft.surfaces.mcp.dialogues.waiting_calls import WaitingCalls, WaitingRun
from haft.surfaces.mcp.run_access import RunAccess, is_run_of

if TYPE_CHECKING:
    from mcp.server import Server
    from mcp.server.context import ServerRequestContext

    from haft.service import Run

POLL_MILLISECONDS: Final = 1000
KEPT_MILLISECONDS: Final = 3_600_000
"""How long a task can be read at least. haft keeps runs for much longer."""
HEADER_MISMATCH: Final = -32020
FAILURES: Final = frozenset({"internal-error", "storage-failed", "bad-approver", "interrupted"})
"""The codes of failures that are not the tool's."""


class TaskParameters(types.RequestParams):
    """The parameters of `tasks/get` and `tasks/cancel`."""

    task_id: str


class UpdateParameters(TaskParameters):
    """The parameters of `tasks/update`."""

    input_responses: dict[str, Any] = Field(default_factory=dict)


class Tasks:
    """The tasks of one server."""

    def __init__(
        self,
        waiting: WaitingCalls,
        caller_of: Callable[[ServerRequestContext[Any, Any]], Principal],
        result_of: Callable[[Outcome, Mapping[str, Any]], dict[str, Any]],
    ) -> None:
        """`result_of` makes the result of a call from the outcome of its run, and from its arguments."""
        self._waiting = waiting
        self._runs = RunAccess(waiting.service)
        self._caller_of = caller_of
        self._result_of = result_of
        waiting.new_task = self.created

    def add_to(self, server: Server[Any]) -> None:
        """Declare the extension, and handle its methods."""
        server.extensions[TASKS] = {}
        server.add_request_handler("tasks/get", TaskParameters, self._get)
        server.add_request_handler("tasks/update", UpdateParameters, self._update)
        server.add_request_handler("tasks/cancel", TaskParameters, self._cancel)

    def created(self, waiting: WaitingRun) -> dict[str, Any]:
        """The result of a call that becomes a task."""
        waiting.is_task = True
        status, _ = self._state(waiting.run)
        facts = self._facts(waiting.run.id, status, waiting.created_at, waiting.created_at)
        return {**facts, "resultType": "task"}

    async def _get(self, context: ServerRequestContext[Any, Any], params: TaskParameters) -> dict[str, Any]:
        caller = self._check(context, params)
        run = self._waiting.service.runs.live(params.task_id)
        known = self._waiting.runs.get(RunId(params.task_id))
        run = run if run is not None else None if known is None else known.run
        if run is None:
            return await self._recorded(params.task_id, caller)
        if not is_run_of(run, caller):
            raise unknown_task(params.task_id)
        status, detail = self._state(run)
        return {**self._facts(run.id, status, run.started_at, run.states[-1][1]), **detail}

    async def _recorded(self, task: str, caller: Principal) -> dict[str, Any]:
        """A task whose run has ended, and maybe its server with it."""
        try:
            record = await self._waiting.service.runs.get(task)
        except HaftError:
            raise unknown_task(task) from None
        if not isinstance(record, RunRecord) or record.id != task or not self._runs.is_of(record, caller):
            raise unknown_task(task)
        updated = record.ended_at or record.started_at
        if record.is_open:  # Another server of this client has it.
            return self._facts(record.id, "working", record.started_at, updated)
        status, detail = self._end(outcome_from(record.outcome), record.record["arguments"])
        return {**self._facts(record.id, status, record.started_at, updated), **detail}

    async def _update(self, context: ServerRequestContext[Any, Any], params: UpdateParameters) -> dict[str, Any]:
        """Take answers. Unknown keys are ignored, and a question whose answer does not fit stays open."""
        caller = self._check(context, params)
        run = await self._own(params.task_id, caller)
        waiting = None if run is None else self._waiting.runs.get(run.id)
        client = client_of(context, caller.who, has_token=False)
        if waiting is None:  # It has ended.
            return {"resultType": "complete"}
        for name, response in params.input_responses.items():
            asked = self._waiting.dialogue.find(waiting.run.id, name)
            if asked is None or name in waiting.left or not self._waiting.dialogue.may_ask(asked, client):
                continue
            took = time.monotonic() - (asked.shown_at or time.monotonic())
            reading = asked.take(response, client, shows_person=took >= self._waiting.shortest_answer)
            if reading.kind == "leave":
                waiting.left.add(name)
        return {"resultType": "complete"}

    async def _cancel(self, context: ServerRequestContext[Any, Any], params: TaskParameters) -> dict[str, Any]:
        """Cancel the run. For a run that has ended, this does nothing."""
        caller = self._check(context, params)
        run = await self._own(params.task_id, caller)
        if run is not None:
            run.cancel(caller)
        return {"resultType": "complete"}

    async def _own(self, task: str, caller: Principal) -> Run | None:
        """The live run of this client; None if it has ended. Raises an error if the client has no such task."""
        run = self._waiting.service.runs.live(task)
        if run is None:
            await self._recorded(task, caller)
            return None
        if not is_run_of(run, caller):
            raise unknown_task(task)
        return run

    def _check(self, context: ServerRequestContext[Any, Any], params: TaskParameters) -> Principal:
        """Who makes this request. Raises an error if the client did not declare the extension, or if the header of the
        request names another task."""
        caller = self._caller_of(context)
        if not client_of(context, caller.who, has_token=False).has_tasks:
            raise missing_tasks("this method belongs to tasks")
        check_header(context.request, params.task_id)
        return caller

    def _state(self, run: Run) -> tuple[str, dict[str, Any]]:
        """The status of a live task, and the fields that go with it."""
        if run.outcome is not None:
            return self._end(run.outcome, run.call.arguments)
        dialogue = self._waiting.dialogue
        waiting = self._waiting.runs.get(run.id)
        asked = [] if waiting is None else dialogue.askable(run.id, waiting.client)
        asked = [each for each in asked if waiting is not None and each.name not in waiting.left]
        for each in asked:
            each.shown_at = each.shown_at or time.monotonic()
        forms = {each.name: each.form() for each in asked}
        problems = [each.problem for each in asked if each.problem]
        if forms:
            message = {"statusMessage": f"an answer was not valid: {problems[0]}"} if problems else {}
            return "input_required", {"inputRequests": forms, **message}
        if dialogue.open(run.id) or run.status == "blocked-on-user":
            return "input_required", {"inputRequests": {}, "statusMessage": "it waits for a person in haft's inbox"}
        return "working", {}

    def _end(self, outcome: Outcome, arguments: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        if outcome.status == "cancelled":
            return "cancelled", {}
        error = outcome.error
        if error is not None and (error.code in FAILURES or self._died(outcome)):
            return "failed", {"error": {"code": types.INTERNAL_ERROR, "message": f"{error.code}: {error.message}"}}
        try:
            return "completed", {"result": {**self._result_of(outcome, arguments), "resultType": "complete"}}
        except MCPError as protocol_error:
            return "failed", {"error": {"code": protocol_error.error.code, "message": protocol_error.error.message}}

    def _died(self, outcome: Outcome) -> bool:
        """Whether the process of a Python tool ended without an answer. Only then has such a call an exit code."""
        listing = self._waiting.service.catalogue.listing(outcome.tool)
        return listing is not None and listing.spec.kind == "python" and outcome.exit_code is not None

    @staticmethod
    def _facts(run: str, status: str, created: float, updated: float) -> dict[str, Any]:
        return {
            "resultType": "complete",
            "taskId": run,
            "status": status,
            "createdAt": iso_time(created),
            "lastUpdatedAt": iso_time(updated),
            "ttlMs": KEPT_MILLISECONDS,
            "pollIntervalMs": POLL_MILLISECONDS,
        }


def check_header(request: Any, task: str) -> None:
    """Raise an error if the header of an HTTP request names another task than its body."""
    if request is not None and decode_header_value(request.headers.get(MCP_NAME_HEADER)) != task:
        message = f"the header {MCP_NAME_HEADER} does not name the task in the body"
        raise MCPError(code=HEADER_MISMATCH, message=message)


def unknown_task(task: str) -> MCPError:
    """The error for a task that this client does not have."""
    return MCPError(code=types.INVALID_PARAMS, message=f"there is no task `{task}`")
