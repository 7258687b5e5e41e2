"""A model on loopback that says what a test wrote down, so that clients and agents run without an account.

    with ScriptedModel() as model:
        prompt = model.task(call("shell", command="ls"), say("done: {{result}}"))

It speaks Anthropic Messages, OpenAI Responses, OpenAI Chat Completions and Gemini's API, with streams and without.
The prompt names the script. Each request carries the conversation so far: step N is answered when the conversation
holds N answers since the prompt. So one model serves many clients at once, and a client that was killed goes on where
its conversation ends. Importing this package imports neither pytest nor the service.
"""

from haft.testing.scripted_model.model import RefusedByProvider, ScriptedModel
from haft.testing.scripted_model.received import ReceivedRequest
from haft.testing.scripted_model.steps import (
    Attempts,
    Call,
    Fault,
    Step,
    Turn,
    Usage,
    attempts,
    broken_call,
    call,
    calls,
    context_overflow,
    invalid_request,
    overloaded,
    rate_limited,
    say,
    server_error,
    text_call,
    unauthorized,
    unknown_model,
)

__all__ = [
    "Attempts",
    "Call",
    "Fault",
    "ReceivedRequest",
    "RefusedByProvider",
    "ScriptedModel",
    "Step",
    "Turn",
    "Usage",
    "attempts",
    "broken_call",
    "call",
    "calls",
    "context_overflow",
    "invalid_request",
    "overloaded",
    "rate_limited",
    "say",
    "server_error",
    "text_call",
    "unauthorized",
    "unknown_model",
]
