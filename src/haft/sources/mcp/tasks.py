"""Tasks: calls that a server answers at once with a task, whose result haft asks for later.

The protocol of 2026 has tasks as the extension `io.modelcontextprotocol/tasks`; the server decides. In the protocol of
2025, the client asks for a task, and some tools can be called in no other way.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, Literal

import mcp_types as types
from mcp import MCPError
from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim
from mcp.client.session import ClientSession
from mcp.shared.dispatcher import CallOptions

from haft.sources.mcp import texts

EXTENSION: Final = "io.modelcontextprotocol/tasks"
CANCEL_SECONDS: Final = 1.0
SHORTEST_PAUSE: Final = 0.05
LONGEST_PAUSE: Final = 10.0
TTL_MS: Final = 24 * 3600 * 1000
"""How long a server of 2025 is asked to keep a result."""

Answers = Callable[[Mapping[str, types.InputRequest]], Awaitable[types.InputResponses]]
Report = Callable[[str], None]


class TaskResult(types.Result):
    """A call that became a task."""

    result_type: Literal["task"] = "task"
    task_id: str
    status: str = "working"
    poll_interval_ms: int | None = None


class TaskState(types.Result):
    """The answer to `tasks/get`, of either protocol."""

    status: str
    status_message: str | None = None
    poll_interval_ms: int | None = None
    poll_interval: int | None = None
    result: dict[str, Any] | None = None
    error: types.ErrorData | None = None
    input_requests: types.InputRequests | None = None


class TaskParams(types.RequestParams):
    task_id: str


class UpdateParams(TaskParams):
    input_responses: types.InputResponses


class GetTask(types.Request[TaskParams, Literal["tasks/get"]]):
    name_param = "taskId"
    method: Literal["tasks/get"] = "tasks/get"
    params: TaskParams


class UpdateTask(types.Request[UpdateParams, Literal["tasks/update"]]):
    name_param = "taskId"
    method: Literal["tasks/update"] = "tasks/update"
    params: UpdateParams


class CancelTask(types.Request[TaskParams, Literal["tasks/cancel"]]):
    name_param = "taskId"
    method: Literal["tasks/cancel"] = "tasks/cancel"
    params: TaskParams


class TaskPayload(types.Request[TaskParams, Literal["tasks/result"]]):
    method: Literal["tasks/result"] = "tasks/result"
    params: TaskParams


class TasksExtension(ClientExtension):
    """Declares to servers that haft follows tasks. haft itself calls `follow`."""

    identifier = EXTENSION

    def claims(self) -> Sequence[ResultClaim[Any]]:
        return [ResultClaim(result_type="task", model=TaskResult, resolve=_unused)]


async def _unused(_task: TaskResult, _context: ClaimContext) -> types.CallToolResult:
    raise MCPError(types.INTERNAL_ERROR, "the task was not followed")


def needs_task(tool: Mapping[str, Any]) -> bool:
    """Whether a tool of a server of 2025 can be called only as a task."""
    execution = tool.get("execution")
    return isinstance(execution, dict) and execution.get("taskSupport") == "required"


async def begin_task(session: ClientSession, name: str, arguments: dict[str, Any]) -> types.Task | types.CallToolResult:
    """Call a tool of a server of 2025 as a task. Returns the task, or the result if the server made no task."""
    wanted = types.CallToolRequestParams(name=name, arguments=arguments, task=types.TaskMetadata(ttl=TTL_MS))
    request = types.CallToolRequest(params=wanted).model_dump(by_alias=True, mode="json", exclude_none=True)
    options: CallOptions = {}
    # The package refuses the answer `task` to a call, so haft sends the request below the layer that checks answers.
    session._stamp(request, options)
    raw = await session._dispatcher.send_raw_request(request["method"], request["params"], options)
    if "task" not in raw:
        return types.CallToolResult.model_validate(raw)
    return types.CreateTaskResult.model_validate(raw).task


async def result_of_task(session: ClientSession, task: types.Task, report: Report) -> types.CallToolResult:
    """Wait for the result of a task of a server of 2025."""
    try:
        state = TaskState(status=task.status, poll_interval=task.poll_interval)
        while state.status == "working":
            await _pause(state, task.poll_interval)
            state = await session.send_request(GetTask(params=TaskParams(task_id=task.task_id)), TaskState)
            _report(state, report)
        # In the state `input_required` too, the server asks for input while it is asked for the result.
        if state.status == "cancelled":
            raise MCPError(types.INTERNAL_ERROR, "the task was cancelled by the server")
        return await session.send_request(TaskPayload(params=TaskParams(task_id=task.task_id)), types.CallToolResult)
    except asyncio.CancelledError:
        await _cancel(session, task.task_id)
        raise


async def follow(session: ClientSession, task: TaskResult, answers: Answers, report: Report) -> types.CallToolResult:
    """Wait for the result of a task of a server of 2026. `answers` answers requests for input."""
    params = TaskParams(task_id=task.task_id)
    answered: set[str] = set()
    try:
        while True:
            state = await session.send_request(GetTask(params=params), TaskState)
            _report(state, report)
            if state.status == "completed":
                return types.CallToolResult.model_validate(state.result)
            if state.status == "failed":
                raise MCPError.from_error_data(
                    state.error or types.ErrorData(code=types.INTERNAL_ERROR, message="the task failed")
                )
            if state.status == "cancelled":
                raise MCPError(types.INTERNAL_ERROR, "the task was cancelled by the server")
            new = {key: each for key, each in (state.input_requests or {}).items() if key not in answered}
            if new:
                answered |= new.keys()
                given = UpdateParams(task_id=task.task_id, input_responses=await answers(new))
                await session.send_request(UpdateTask(params=given), types.EmptyResult)
            await _pause(state, task.poll_interval_ms)
    except asyncio.CancelledError:
        await _cancel(session, task.task_id)
        raise


async def _pause(state: TaskState, default_ms: int | None) -> None:
    wanted = state.poll_interval_ms or state.poll_interval or default_ms or 500
    await asyncio.sleep(min(max(wanted / 1000, SHORTEST_PAUSE), LONGEST_PAUSE))


def _report(state: TaskState, report: Report) -> None:
    if state.status_message and state.status in ("working", "input_required"):
        report(texts.line(state.status_message))


async def _cancel(session: ClientSession, task_id: str) -> None:
    """Tell the server that nobody wants the result."""
    with contextlib.suppress(TimeoutError, MCPError, ValueError):
        async with asyncio.timeout(CANCEL_SECONDS):
            await session.send_request(CancelTask(params=TaskParams(task_id=task_id)), types.EmptyResult)
