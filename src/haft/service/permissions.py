"""The rules as the service offers them: which there are, and what others would have decided about past calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from haft.contracts import Action, Decision, ToolSpec
from haft.policy import Judge, Question
from haft.runs import RunRecord

ASKED_LAYERS = ("approval",)


@dataclass(frozen=True, slots=True)
class Flip:
    """A past call that would be decided otherwise."""

    run: str
    tool: str
    arguments: Mapping[str, Any]
    was: Action
    now: Decision

    def to_json(self) -> dict[str, Any]:
        return {
            "run": self.run,
            "tool": self.tool,
            "args": dict(self.arguments),
            "was": self.was,
            "now": self.now.action,
            "rule": self.now.rule,
            "source": self.now.source,
            "reason": self.now.reason,
        }


@dataclass(frozen=True, slots=True)
class Replayed:
    """Past calls, decided anew."""

    looked_at: int
    passed_over: int
    """Calls of tools that are not here any more."""
    flips: tuple[Flip, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "lookedAt": self.looked_at,
            "passedOver": self.passed_over,
            "flips": [flip.to_json() for flip in self.flips],
        }


def replay(
    runs: Iterable[RunRecord],
    specs: Mapping[str, ToolSpec],
    after: Judge,
    before: Judge | None,
    walled: Callable[[ToolSpec], bool],
) -> Replayed:
    """Decide past calls by other rules. Without `before`, against what was decided then."""
    flips: list[Flip] = []
    looked_at = passed_over = 0
    for run in runs:
        record = run.record
        if record["decision"] is None or record["tool"] in ("undo", "redo", "apply", "drop"):
            continue
        spec = specs.get(record["tool"])
        if spec is None:
            passed_over += 1
            continue
        looked_at += 1
        question = Question(spec, record["arguments"], cwd=record["cwd"], thread=record["thread"], walled=walled(spec))
        was = decided_then(record["decision"]) if before is None else before.decide(question).action
        now = after.decide(question)
        if now.action != was:
            flips.append(Flip(run.id, record["tool"], record["arguments"], was, now))
    return Replayed(looked_at, passed_over, tuple(flips))


def decided_then(decision: Mapping[str, Any]) -> Action:
    """What policy had said before anybody was asked."""
    if decision["layer"] in ASKED_LAYERS:
        return "ask"
    if decision["layer"] == "delegate":
        return "delegate"
    action: Action = decision["action"]
    return action


def shown_rules(rules: Sequence[Any]) -> list[dict[str, Any]]:
    """As `haft permissions list --json` prints them, in the order in which they count."""
    return [
        {
            "tool": rule.tool,
            "action": rule.action,
            "matches": dict(rule.matches),
            "context": rule.context,
            "to": rule.to,
            "message": rule.message,
            "grant": rule.grant.to_json(),
            "dangers": list(rule.dangers),
            "origin": rule.origin,
            "source": rule.source,
            "thread": rule.thread,
        }
        for rule in rules
    ]
