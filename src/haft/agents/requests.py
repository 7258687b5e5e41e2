"""Requests to the model of a sub-agent, and the one policy by which failed requests are sent again.

pydantic-ai speaks with the provider. Its clients do not retry: every attempt is made here, is told to those who watch,
and counts in the budget.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import warnings
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

from pydantic_ai import exceptions as failures
from pydantic_ai.direct import model_request_stream
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
)
from pydantic_ai.models import Model, ModelRequestParameters, infer_model
from pydantic_ai.providers import Provider, infer_provider, infer_provider_class
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import RequestUsage

from haft.agents.budget import Budget
from haft.agents.conversation import encodable
from haft.agents.progress import TaskProgress
from haft.contracts import BadConfig, ToolFailed
from haft.lazy import regex

MAX_ATTEMPTS: Final = 6
FIRST_WAIT: Final = 1.0
MAX_WAIT: Final = 60.0
REQUEST_SECONDS: Final = 300.0
"""The longest that one request may take."""
MAX_ANSWER: Final = 4_000_000
"""How many characters one answer may have."""
MAX_PARTS: Final = 1_000
"""How many parts: texts and calls."""
CHARACTERS_IN_TOKEN: Final = 4
"""How many characters a token has, where the provider does not say how many tokens it used."""
_MISSING_KEY: Final = regex(r"Set the `([A-Z0-9_]+)` environment variable")
"""How pydantic-ai says that there is no key."""
_ENDED_BY_SERVER: Final = (408, 409, 425, 429)
"""The HTTP status codes below 500 after which the same request may succeed."""
_FOR_GOOD: Final = (
    failures.ModelQuotaExceededError,
    failures.ModelRequestRejectedError,
    failures.ContentFilterError,
    failures.UserError,
)


class ContextFull(Exception):
    """The conversation is longer than the model can read."""


class OutOfTime(Exception):
    """The time of the sub-agent was over before the model had answered."""


@contextlib.asynccontextmanager
async def open_model(name: str, base_url: str) -> AsyncIterator[Model]:
    """The model of this name. With `base_url`, the requests go there. Raises `BadConfig` if there is no such model."""

    def provider(kind: str) -> Provider[Any]:
        if not base_url:
            return infer_provider(kind)
        made: Any = infer_provider_class(kind)
        # A model on this machine often needs no key, but this client demands one.
        key = {"api_key": "none"} if kind == "anthropic" and "ANTHROPIC_API_KEY" not in os.environ else {}
        try:
            addressed: Provider[Any] = made(base_url=base_url, **key)
        except TypeError:
            raise BadConfig(
                f"`subagents.base_url` is set, but models of `{kind}` take no address",
                hint="name the model as `openai-chat:NAME`",
            ) from None
        return addressed

    if not name:
        raise BadConfig(
            "there is no model for sub-agents", hint="set `subagents.model`, such as `openai-chat:NAME`, in haft.toml"
        )
    try:
        # In a thread, because it loads the certificates of the machine.
        model = await asyncio.to_thread(infer_model, name, provider)
    except (failures.UserError, ImportError, ValueError) as error:
        text = " ".join(str(error).split())
        if key := _MISSING_KEY.search(text):
            why, hint = f"the variable `{key[1]}` is not set", f"set `{key[1]}` to your key"
        else:
            why, hint = text, "write `PROVIDER:NAME` in `subagents.model`, such as `openai-chat:NAME`"
        raise BadConfig(f"`{name}` cannot be used as a model: {why}", hint=hint) from None
    async with model:
        yield model


def check_price(model: Model, budget: Budget) -> None:
    """Raise `BadConfig` if the budget limits the cost, but it is not known what the model costs."""
    if budget.cost_left is None:
        return
    try:
        _cost(model, RequestUsage(input_tokens=1, output_tokens=1))
    except (LookupError, ValueError):
        raise BadConfig(
            f"the cost of sub-agents is limited, but the price of `{model.model_name}` is not known",
            hint="set `subagents.cost` to 0, and limit `subagents.tokens`",
        ) from None


def _cost(model: Model, usage: RequestUsage) -> float:
    priced = ModelResponse(
        parts=[], usage=usage, model_name=model.model_name, provider_name=model.system, provider_url=model.base_url
    )
    return float(priced.cost().total_price)


class Requests:
    """The requests of one task to its model."""

    def __init__(self, model: Model, budget: Budget, progress: TaskProgress) -> None:
        self._model = model
        self._budget = budget
        self._progress = progress

    @property
    def window(self) -> int | None:
        """How many tokens the model can read, if that is known."""
        return self._model.profile.get("context_window")

    async def send(
        self,
        messages: Sequence[ModelMessage],
        parameters: ModelRequestParameters,
        settings: ModelSettings,
        *,
        seconds: float | None = None,
    ) -> ModelResponse:
        """The answer of the model. `seconds` is how long that may take; without it, as long as the budget lasts. Raises
        `ToolFailed` if the model fails for good."""
        ends = None if seconds is None else asyncio.get_running_loop().time() + seconds
        for attempt in range(1, MAX_ATTEMPTS + 1):
            left = self._budget.seconds_left if ends is None else ends - asyncio.get_running_loop().time()
            if left <= 0:
                raise OutOfTime
            try:
                async with asyncio.timeout(min(left, REQUEST_SECONDS)):
                    return await self._attempt(messages, parameters, settings)
            except TimeoutError as error:
                if left <= REQUEST_SECONDS:
                    raise OutOfTime from None
                failure: Exception = error
            except failures.ModelContextWindowExceededError:
                raise ContextFull from None
            except _TooLong:
                raise ToolFailed(
                    f"the model `{self._model.model_name}` gave an answer of more than {MAX_ANSWER:_} characters, or "
                    f"of more than {MAX_PARTS:_} parts"
                ) from None
            except (failures.AgentRunError, failures.UserError, OSError) as error:
                failure = error
            wait = _wait_before_retry(failure, attempt)
            if wait is None or attempt == MAX_ATTEMPTS:
                raise self._failed(failure) from failure
            left = self._budget.seconds_left if ends is None else ends - asyncio.get_running_loop().time()
            if wait >= left:
                raise OutOfTime
            again = f"trying again in {wait:g} s ({attempt} of {MAX_ATTEMPTS - 1})"
            self._progress.status("waiting", f"{_words(failure)}; {again}")
            await asyncio.sleep(wait)
        raise AssertionError

    async def _attempt(
        self, messages: Sequence[ModelMessage], parameters: ModelRequestParameters, settings: ModelSettings
    ) -> ModelResponse:
        settings = {**settings, "max_retries": 0}
        usage, size, parts = RequestUsage(), 0, 0
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                stream = model_request_stream(
                    self._model, list(messages), model_settings=settings, model_request_parameters=parameters
                )
                async with stream as events:
                    try:
                        async for event in events:
                            self._progress.text(_new_text(event))
                            size += _size_of(event)
                            parts += isinstance(event, PartStartEvent)
                            if size > MAX_ANSWER or parts > MAX_PARTS:
                                raise _TooLong
                    finally:
                        usage = events.usage
                    response = events.get()
            self._progress.end_text()
        finally:
            tokens = usage.total_tokens
            if tokens <= 0:  # Some servers do not say how many tokens they used.
                read = len(ModelMessagesTypeAdapter.dump_json(list(messages))) if size else 0
                tokens = (read + size) // CHARACTERS_IN_TOKEN
            self._budget.spend(tokens, max(0.0, self._price_of(usage)))
        for part in response.parts:
            _make_encodable(part)
        if not response.parts:
            raise failures.UnexpectedModelBehavior("the answer is empty")
        return response

    def _price_of(self, usage: RequestUsage) -> float:
        if self._budget.cost_left is None:
            return 0.0
        try:
            return _cost(self._model, usage)
        except (LookupError, ValueError):
            return 0.0

    def _failed(self, failure: Exception) -> ToolFailed:
        return ToolFailed(
            f"the model `{self._model.model_name}` failed: {_words(failure)}",
            hint="when the model works again, `haft agent resume TASK` goes on with the task",
        )


class _TooLong(Exception):
    """An answer does not end."""


def _size_of(event: Any) -> int:
    """How many characters a piece of an answer has."""
    if not isinstance(event, PartStartEvent | PartDeltaEvent):
        return 0
    piece = event.part if isinstance(event, PartStartEvent) else event.delta
    names = ("content", "content_delta", "args", "args_delta", "tool_name", "tool_name_delta")
    return sum(len(str(value)) for name in names if (value := getattr(piece, name, None)))


def _make_encodable(part: Any) -> None:
    """Replace what cannot be stored, or sent again, in the texts of one part of an answer."""
    for name in ("content", "args", "tool_name", "tool_call_id"):
        value = getattr(part, name, None)
        if isinstance(value, str):
            setattr(part, name, encodable(value))


def _new_text(event: Any) -> str:
    if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart):
        return event.part.content
    if isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta):
        return event.delta.content_delta
    return ""


def _wait_before_retry(failure: Exception, attempt: int) -> float | None:
    """How many seconds to wait before the request is sent again; None if it would fail again."""
    if isinstance(failure, _FOR_GOOD):
        return None
    status = getattr(failure, "status_code", None)
    if status is not None and status < 500 and status not in _ENDED_BY_SERVER:
        return None
    asked = getattr(failure, "retry_after", None)
    return min(float(asked) if asked is not None else FIRST_WAIT * 2 ** (attempt - 1), MAX_WAIT)


def _words(failure: Exception) -> str:
    """What went wrong, on one line."""
    status = getattr(failure, "status_code", None)
    if isinstance(failure, TimeoutError):
        return f"it did not answer within {REQUEST_SECONDS:g} s"
    text = " ".join(str(failure).split())
    if status is not None:
        body = getattr(failure, "body", None)
        said = body.get("message") if isinstance(body, dict) else None
        if said is None and isinstance(body, dict) and isinstance(body.get("error"), dict):
            said = body["error"].get("message")
        return f"it answered {status}" + (f" ({str(said)[:200]})" if said else "")
    return text[:300] or type(failure).__name__
