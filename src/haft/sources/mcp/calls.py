"""One request to an MCP server on behalf of a call: its progress, the questions that the server asks meanwhile, and its
result."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

import mcp_types as types
from mcp import MCPError
from pydantic import ValidationError

from haft.contracts import FORM, Answer, HaftError, Question, QuestionAnswer, ToolContext, ToolFailed
from haft.schema import why_too_large
from haft.sources.mcp import texts
from haft.sources.mcp.answers import answer_of
from haft.sources.mcp.connection import Connection
from haft.sources.mcp.tasks import TaskResult, begin_task, follow, needs_task, result_of_task

MOST_ROUNDS: Final = 20
"""How often a server may ask for input within one call."""
MOST_QUESTIONS: Final = 40
"""How many questions a server may ask within one call. A person reads each of them."""
PROGRESS_SECONDS: Final = 0.05
"""The shortest time between two progress messages of a call that haft passes on."""
STATE_PAUSE: Final = 0.1
LONGEST_URL: Final = 2_000

ResultT = TypeVar("ResultT")
Retry = Callable[[types.InputResponses | None, str | None], Awaitable[ResultT | types.InputRequiredResult]]


class ServerCall:
    """One call, as the server sees it."""

    def __init__(self, server: str, connection: Connection, context: ToolContext) -> None:
        self._server = server
        self._connection = connection
        self._session = connection.client.session
        self.context = context
        self._last_progress = 0.0
        self._last_fraction: float | None = None
        self._questions = 0
        """How many questions the server asked so far."""
        self.has_begun = False
        """Whether the server answered a request of this call, so that the call must not be sent again."""

    async def tool(self, name: str, arguments: dict[str, Any], output_schema: Mapping[str, Any] | None) -> Answer:
        """Call a tool."""
        if not self._connection.is_modern and needs_task(self._connection.tools.get(name, {})):
            done = await begin_task(self._session, name, arguments)
            self.has_begun = True
            if isinstance(done, types.Task):
                done = await result_of_task(self._session, done, self._report)
            return answer_of(self._server, name, done, output_schema)

        async def send(responses: types.InputResponses | None, state: str | None) -> Any:
            return await self._session.call_tool(
                name,
                arguments,
                progress_callback=self._progress,
                input_responses=responses,
                request_state=state,
                allow_input_required=True,
                allow_claimed=True,
            )

        result: Any = await self._with_input(send)
        if isinstance(result, TaskResult):
            result = await follow(self._session, result, self._answer_requests, self._report)
        return answer_of(self._server, name, result, output_schema)

    async def resource(self, uri: str) -> types.ReadResourceResult:
        """Read a resource."""
        return await self._with_input(
            lambda responses, state: self._session.read_resource(
                uri, input_responses=responses, request_state=state, allow_input_required=True
            )
        )

    async def prompt(self, name: str, arguments: dict[str, str]) -> types.GetPromptResult:
        """Get a prompt."""
        return await self._with_input(
            lambda responses, state: self._session.get_prompt(
                name, arguments, input_responses=responses, request_state=state, allow_input_required=True
            )
        )

    async def _with_input(self, send: Retry[ResultT]) -> ResultT:
        """Send a request. If the server needs input, ask for it, and send the request again with the answers."""
        responses: types.InputResponses | None = None
        state: str | None = None
        for _ in range(MOST_ROUNDS):
            try:
                result = await send(responses, state)
            except MCPError as error:
                # The server did nothing yet: it wants a person to visit a page first.
                if error.error.code != types.URL_ELICITATION_REQUIRED:
                    raise
                await self._visit(error)
                continue
            self.has_begun = True
            if not isinstance(result, types.InputRequiredResult):
                return result
            if result.input_requests:
                responses = await self._answer_requests(result.input_requests)
            else:
                responses = None
                await asyncio.sleep(STATE_PAUSE)
            state = result.request_state
        raise ToolFailed(f"the MCP server `{self._server}` asked for input {MOST_ROUNDS} times, so its call was ended")

    async def _answer_requests(self, requests: Mapping[str, types.InputRequest]) -> types.InputResponses:
        """Ask a person everything that the server wants to know."""
        questions: dict[str, Question] = {}
        for key, request in requests.items():
            if not isinstance(request, types.ElicitRequest):
                raise ToolFailed(
                    f"the MCP server `{self._server}` asked for {_PLAIN.get(request.method, 'something else')}, which"
                    " haft does not offer to servers"
                )
            questions[key] = self.question(request.params)
        answers = await self._asked(list(questions.values()))
        return {key: result_of(answer) for key, answer in zip(questions, answers, strict=True)}

    async def _asked(self, questions: Sequence[Question]) -> list[QuestionAnswer]:
        """The answers of a person. Raises `ToolFailed` if the server asks too much."""
        self._questions += len(questions)
        if self._questions > MOST_QUESTIONS:
            raise ToolFailed(
                f"the MCP server `{self._server}` asked more than {MOST_QUESTIONS} questions within one call, so haft"
                " asks nobody any more"
            )
        found: list[QuestionAnswer] = await self.context.ask(*questions)
        return found

    async def _visit(self, error: MCPError) -> None:
        data = error.error.data
        pages = data.get("elicitations") if isinstance(data, dict) else None
        try:
            wanted = [types.ElicitRequestURLParams.model_validate(each) for each in pages or ()]
        except (ValidationError, TypeError):
            wanted = []
        if not wanted:
            raise error
        answers = await self._asked([self.question(each) for each in wanted])
        if any(each.action != "accept" for each in answers):
            raise ToolFailed(f"the MCP server `{self._server}` needs a person to visit a page, and nobody agreed")

    def question(self, params: types.ElicitRequestParams) -> Question:
        """A request of the server for input, as a question for a person. Raises `ToolFailed` if it cannot be asked."""
        by = f"the MCP server `{self._server}`"
        shown: dict[str, Any] = {"mode": params.mode, "message": texts.visible(params.message, texts.LONGEST_MESSAGE)}
        if isinstance(params, types.ElicitRequestURLParams):
            if not _is_web_page(params.url):
                raise ToolFailed(f"{by} wants a person to visit an address that is no valid URL")
            return Question(FORM, {**shown, "url": params.url}, by)
        if (why := why_too_large(params.requested_schema)) is not None:
            raise ToolFailed(f"{by} asks for input with a form that is too complex: {why}")
        try:
            schema = texts.visible_schema(params.requested_schema)
        except ValueError as error:
            raise ToolFailed(f"{by} asks for input with a form that cannot be shown: {error}") from None
        return Question(FORM, {**shown, "requestedSchema": schema}, by)

    async def elicit(self, params: types.ElicitRequestParams) -> types.ElicitResult | types.ErrorData:
        """Answer a request for input that a server of 2025 sends while it works on this call."""
        try:
            answers = await self._asked([self.question(params)])
        except HaftError as error:
            return types.ErrorData(code=types.INVALID_REQUEST, message=error.message)
        return result_of(answers[0])

    async def _progress(self, progress: float, total: float | None, message: str | None) -> None:
        now = time.monotonic()
        is_known = total is not None and 0 < total < math.inf and math.isfinite(progress)
        fraction = min(max(progress / total, 0.0), 1.0) if total is not None and is_known else None
        # The end of the work is passed on in any case, but only once.
        is_end = fraction == 1.0 and self._last_fraction != 1.0
        if now - self._last_progress < PROGRESS_SECONDS and not is_end:
            return
        self._last_fraction = fraction
        self._last_progress = now
        shown = texts.line(message, 200) if message else _number(progress, total)
        self.context.progress(shown, fraction=fraction)

    def _report(self, message: str) -> None:
        self.context.progress(message)


def _is_web_page(url: str) -> bool:
    """Whether every program finds the same host in an address. Browsers take a backslash for a slash, and ignore
    surplus slashes, so that a person could be shown another host than the one that the browser visits."""
    if len(url) > LONGEST_URL or not url.isascii() or not url.isprintable() or set(url) & set(' "<>\\^`{|}'):
        return False
    try:
        parts = urlsplit(url)
        host, user, _port = parts.hostname, parts.username, parts.port
    except ValueError:
        return False
    return url.startswith(("https://", "http://")) and bool(host) and "%" not in (host or "") and user is None


_PLAIN: Final = {"sampling/createMessage": "an answer of a model", "roots/list": "a list of directories"}


def _number(progress: float, total: float | None) -> str:
    return f"{progress:g}" if total is None else f"{progress:g} of {total:g}"


def result_of(answer: QuestionAnswer) -> types.ElicitResult:
    """The answer of a person, as MCP writes it."""
    content = answer.content if isinstance(answer.content, dict) else None
    return types.ElicitResult(action=answer.action, content=content if answer.action == "accept" else None)
