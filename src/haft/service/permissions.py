"""The rules as the service offers them: which there are, and what others would have decided about past calls."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from haft.config import Config, ConfigFile, SettingsCollector, read_config
from haft.contracts import Action, Call, Decision, ToolName, ToolSpec, new_run_id
from haft.pipeline import Decide
from haft.policy import Explanation, PolicyEngine, PolicyQuery, Step, is_for_other_workspace, missing_target
from haft.runs import Filter, RunRecord

if TYPE_CHECKING:
    from haft.policy import Rule
    from haft.service.service import ToolService


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
    after: PolicyEngine,
    before: PolicyEngine | None,
    confined: Callable[[ToolSpec], bool],
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
        query = query_of(record, spec, confined=confined(spec))
        was = decided_then(record["decision"]) if before is None else before.decide(query).action
        now = after.decide(query)
        if now.action != was:
            flips.append(Flip(run.id, record["tool"], record["arguments"], was, now))
    return Replayed(looked_at, passed_over, tuple(flips))


def query_of(record: Mapping[str, Any], spec: ToolSpec, *, confined: bool) -> PolicyQuery:
    """A recorded call, asked again."""
    return PolicyQuery(spec, record["arguments"], cwd=record["cwd"], thread=record["thread"], confined=confined)


def decided_then(decision: Mapping[str, Any]) -> Action:
    """What policy had said before anybody was asked."""
    if decision["layer"] == "approval":
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
            "exactly": None if rule.exactly is None else dict(rule.exactly),
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


def missing_from(service: ToolService) -> list[str]:
    """Of each rule that speaks of a tool or an argument that is not there: where it is written, and what is missing.
    The user's own rules for tools of other workspaces are not among them."""
    specs = [listing.spec for listing in service.tools(all=True)]
    return missing_of((rule for rule in service.config.rules if not is_for_other_workspace(rule, specs)), specs)


def missing_of(rules: Iterable[Rule], specs: Sequence[ToolSpec]) -> list[str]:
    """The same for any rules and tools, those of other workspaces included."""
    found = ((rule, missing_target(rule, specs)) for rule in rules)
    return [f"{rule.source}: {missing}" for rule, missing in found if missing is not None]


async def with_delegates(
    service: ToolService, explained: Explanation, name: str, arguments: Mapping[str, Any]
) -> Explanation:
    """The same decision once the programs were asked that rules leave it to."""
    given = await service.as_judged(name, arguments)
    call = Call(new_run_id(), ToolName(name), given, service.principal)
    # Nothing is tried here, so that no change set is needed.
    decide = Decide(service._host.policy_engine.decide, service._host.sandbox, None)  # type: ignore[arg-type]
    decision = await decide.ask_delegates(call, explained.decision)
    asked = [
        Step("delegate", each.to, f"{decision.action}: {decision.reason}", each.source)
        for each in explained.decision.delegates
    ]
    return Explanation(decision, (*explained.steps, *asked))


def rules_in(file: ConfigFile, workspace: str | None, env: Mapping[str, str]) -> tuple[Rule, ...]:
    """The rules of a file, read as the user's own. `BadConfig` where anything in the file is wrong, or a rule can never
    match."""
    collector = SettingsCollector(workspace, env)
    collector.add_file(file, "user")
    lists = {name: tuple(each) for name, each in collector.lists.items()}
    config = Config(collector.values, collector.sources, lists=lists, rule_sets=tuple(collector.rule_sets))
    _ = config.enablement  # what is wrong with it is said too
    return config.rules


def rules_at(path: str, workspace: str | None) -> tuple[Rule, ...]:
    """The rules of the file at a path, read as the user's own."""
    return rules_in(ConfigFile(os.path.abspath(path), read_config(path), path), workspace, os.environ)


async def replayed(service: ToolService, rules: Sequence[Rule] | None, limit: int) -> Replayed:
    """Past calls of a service's workspace: by `rules` instead of the user's own, against those of now; without them, by
    those of now against what was decided then."""
    namespaces = (await service._host.sandbox.ready()).namespaces
    before, after = None, service._host.policy_engine
    if rules is not None:
        others = [rule for rule in service.config.rules if rule.origin != "user"]
        before, after = service._host.policy_engine, service._host.policy_engine_with([*others, *rules])
    return replay(
        service._host.history().each(Filter(workspace=service._host.root.root, limit=limit)),
        {listing.spec.name: listing.spec for listing in service.tools(all=True)},
        after,
        before,
        lambda spec: spec.has_processes and namespaces,
    )
