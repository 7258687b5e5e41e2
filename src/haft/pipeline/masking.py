"""Secrets out of what is said of a call: its outcome, and the question about it.

Output is masked on its way (`shown`), and notes by the run. What is decided, approved and run are the real arguments;
what is shown of them is masked, so an answer that repeats what was shown means the real ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from haft.contracts import (
    MARK,
    Call,
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
    """Everything that an outcome says, but for the names of changed files."""
    if not secrets:
        return outcome
    return evolve(
        outcome,
        output=secrets.masked_text(outcome.output),
        stderr=secrets.masked_text(outcome.stderr),
        result=secrets.masked(outcome.result),
        error=None if outcome.error is None else _failure(outcome.error, secrets),
        decision=None if outcome.decision is None else _decision(outcome.decision, secrets),
        ended_children=tuple(
            replace(child, command=secrets.masked_text(child.command)) for child in outcome.ended_children
        ),
        notes=tuple(map(secrets.masked_text, outcome.notes)),
    )


def _failure(error: Failure, secrets: Secrets) -> Failure:
    return replace(error, message=secrets.masked_text(error.message), hint=secrets.masked(error.hint))


def _decision(decision: Decision, secrets: Secrets) -> Decision:
    parts = tuple(
        replace(part, command=secrets.masked_text(part.command), reason=secrets.masked_text(part.reason))
        for part in decision.parts
    )
    said = {name: secrets.masked(getattr(decision, name)) for name in ("rule", "reason", "message")}
    return replace(decision, parts=parts, **said)


def as_shown(call: Call, decision: Decision) -> tuple[Any, Decision]:
    """The arguments of a call and its decision as a person sees them: copies, masked."""
    return call.secrets.masked(own_copy(call.arguments)), _decision(decision, call.secrets)


def as_meant(call: Call, answered: Mapping[str, Any]) -> Any:
    """The arguments that an answer means: real values where it repeats what was shown. `InvalidArguments` where a mark
    is left, which stands for no value any more."""
    real = own_copy(call.arguments)
    meant = _restored(own_copy(answered), call.secrets.masked(real), real)
    given = set(texts_in(real))
    if call.secrets and any(MARK in text and text not in given for text in texts_in(meant)):
        raise InvalidArguments(
            call.name,
            [f"an argument holds `{MARK}`, which stands for a value that was not shown"],
            hint="leave that argument as it was shown, or write it anew",
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
