"""Masks secrets in the outcome of a call and in the request for its approval.

`output_buffer` masks the output, and the run masks its events. Policy and the tool use the real arguments; a person
sees masked arguments. So a masked argument in a person's answer stands for the real argument.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from haft.contracts import (
    MARK,
    Call,
    Connection,
    Decision,
    Failure,
    InvalidArguments,
    Outcome,
    Secrets,
    evolve,
    own_copy,
    texts_in,
)
from haft.values import replace


def masked_outcome(outcome: Outcome, secrets: Secrets) -> Outcome:
    """The outcome with secrets masked everywhere except in the names of changed files."""
    if not secrets:
        return outcome
    return evolve(
        outcome,
        output=secrets.masked_text(outcome.output),
        stderr=secrets.masked_text(outcome.stderr),
        result=secrets.masked(outcome.result),
        error=None if outcome.error is None else _masked_failure(outcome.error, secrets),
        decision=None if outcome.decision is None else _masked_decision(outcome.decision, secrets),
        ended_children=tuple(
            replace(child, command=secrets.masked_text(child.command)) for child in outcome.ended_children
        ),
        connections=tuple(_masked_connection(each, secrets) for each in outcome.connections),
        notes=tuple(map(secrets.masked_text, outcome.notes)),
        content=tuple(secrets.masked(dict(block)) for block in outcome.content),
    )


def _masked_failure(error: Failure, secrets: Secrets) -> Failure:
    return replace(error, message=secrets.masked_text(error.message), hint=secrets.masked(error.hint))


def _masked_connection(connection: Connection, secrets: Secrets) -> Connection:
    # A program can put anything into the name of a host.
    masked = {name: secrets.masked(getattr(connection, name)) for name in ("host", "grant", "reason")}
    return replace(connection, **masked)


def _masked_decision(decision: Decision, secrets: Secrets) -> Decision:
    parts = tuple(
        replace(part, command=secrets.masked_text(part.command), reason=secrets.masked_text(part.reason))
        for part in decision.parts
    )
    said = {name: secrets.masked(getattr(decision, name)) for name in ("rule", "reason", "message")}
    return replace(decision, parts=parts, **said)


def masked_for_person(call: Call, decision: Decision) -> tuple[Any, Decision]:
    """Masked copies of a call's arguments and its decision, for a person to see."""
    return call.secrets.masked(own_copy(call.arguments)), _masked_decision(decision, call.secrets)


def unmasked_arguments(call: Call, answered: Mapping[str, Any]) -> Any:
    """The arguments of an answer, with the real value wherever the answer repeats a masked value. Raises
    `InvalidArguments` if a mark is left that cannot be replaced, because the person moved it or changed the text around
    it."""
    real = own_copy(call.arguments)
    meant = _restored(own_copy(answered), call.secrets.masked(real), real)
    given = set(texts_in(real))
    if call.secrets and any(MARK in text and text not in given for text in texts_in(meant)):
        raise InvalidArguments(
            call.name,
            [f"an argument contains `{MARK}`, which stands for a hidden value"],
            hint="leave that argument as it was shown, or write the whole argument",
        )
    return meant


def _restored(value: Any, shown: Any, real: Any) -> Any:
    if value == shown:
        return real
    if isinstance(value, dict) and isinstance(shown, dict) and len(shown) == len(real):
        names = dict(zip(shown, real, strict=True))
        return {
            names.get(name, name): _restored(one, shown[name], real[names[name]]) if name in names else one
            for name, one in value.items()
        }
    if isinstance(value, list) and isinstance(shown, list) and len(value) == len(shown):
        return [_restored(*each) for each in zip(value, shown, real, strict=True)]
    return value
