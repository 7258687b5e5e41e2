"""Lists the rules, and replays past calls to see how other rules would decide about them."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from haft.config import Config, ConfigFile, SettingsCollector, read_config
from haft.contracts import Action, BadUsage, Call, Decision, ToolName, ToolSpec, new_run_id
from haft.pipeline import Decide
from haft.policy import (
    Explanation,
    PolicyEngine,
    PolicyQuery,
    Step,
    check_rules,
    is_for_other_workspace,
    missing_target,
    rule_from,
    shapes_of,
)
from haft.runs import Filter, RunRecord

if TYPE_CHECKING:
    from haft.policy import Rule
    from haft.service.service import ToolService


@dataclass(frozen=True, slots=True)
class Flip:
    """A past call about which the rules now decide differently: the earlier action, and the new decision."""

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
    """The result of replaying past calls."""

    looked_at: int
    passed_over: int
    """How many calls were left out because their tool no longer exists."""
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
    """Decide about past calls with the policy engine `after`, and compare the decisions with those of `before`; if
    `before` is None, with the recorded decisions."""
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
    """The policy query for a recorded call."""
    return PolicyQuery(spec, record["arguments"], cwd=record["cwd"], thread=record["thread"], confined=confined)


def decided_then(decision: Mapping[str, Any]) -> Action:
    """The action that the rules had decided, before a person answered."""
    if decision["layer"] == "approval":
        return "ask"
    if decision["layer"] == "delegate":
        return "delegate"
    action: Action = decision["action"]
    return action


def shown_rules(rules: Sequence[Any]) -> list[dict[str, Any]]:
    """The rules as `haft permissions list --json` prints them, in the order in which haft tries them."""
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
            "isolation": rule.isolation,
            "origin": rule.origin,
            "source": rule.source,
            "thread": rule.thread,
        }
        for rule in rules
    ]


def missing_from(service: ToolService) -> list[str]:
    """A text for each rule that names a tool or an argument that does not exist: where the rule is written, and what is
    missing. The user's rules for tools of other workspaces are left out."""
    specs = [listing.spec for listing in service.tools(all=True)]
    return missing_of((rule for rule in service.config.rules if not is_for_other_workspace(rule, specs)), specs)


def missing_of(rules: Iterable[Rule], specs: Sequence[ToolSpec]) -> list[str]:
    """A text for each of these rules that names a tool or an argument that `specs` does not have: where the rule is
    written, and what is missing."""
    found = ((rule, missing_target(rule, specs)) for rule in rules)
    return [f"{rule.source}: {missing}" for rule, missing in found if missing is not None]


async def with_delegates(
    service: ToolService, explained: Explanation, name: str, arguments: Mapping[str, Any]
) -> Explanation:
    """The explanation of a decision, continued with the answers of its delegates: the programs that rules let
    decide."""
    given = await service.policy_arguments(name, arguments)
    call = Call(new_run_id(), ToolName(name), given, service.principal)
    # This is never a trial run, so no engine selector is needed.
    host = service._host
    decide = Decide(host.policy_engine.decide, host.sandbox, None, "", host.person_behind)  # type: ignore[arg-type]
    decision = await decide.ask_delegates(call, explained.decision)
    asked = [
        Step("delegate", each.to, f"{decision.action}: {decision.reason}", each.source)
        for each in explained.decision.delegates
    ]
    return Explanation(decision, (*explained.steps, *asked))


def rules_in(file: ConfigFile, workspace: str | None, env: Mapping[str, str]) -> tuple[Rule, ...]:
    """The rules of a file, read as if it were the user's haft.toml. Raises `BadConfig` if anything in the file is
    wrong, or if a rule can never match."""
    collector = SettingsCollector(workspace, env)
    collector.add_file(file, "user")
    lists = {name: tuple(each) for name, each in collector.lists.items()}
    config = Config(collector.values, collector.sources, lists=lists, rule_sets=tuple(collector.rule_sets))
    _ = config.enablement  # Raises `BadConfig` if `enablement` is wrong.
    return config.rules


def rules_at(path: str, workspace: str | None) -> tuple[Rule, ...]:
    """The rules of the file at a path, read as if it were the user's haft.toml."""
    return rules_in(ConfigFile(os.path.abspath(path), read_config(path), path), workspace, os.environ)


async def replayed(service: ToolService, rules: Sequence[Rule] | None, limit: int) -> Replayed:
    """Replay past calls of a service's workspace. If `rules` are given, they replace the user's rules, and the result
    compares their decisions with those of the current rules. If not, it compares the decisions of the current rules
    with the recorded ones."""
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


async def replayed_change(
    service: ToolService, source: str | None, table: Mapping[str, Any] | None, limit: int
) -> Replayed:
    """Replay past calls with one rule changed, and compare with the decisions of the current rules. `source` is the
    rule that `table` replaces, or that goes if there is no `table`; without `source`, `table` is a new first rule."""
    rules = list(service.config.rules)
    place = next((number for number, rule in enumerate(rules) if rule.source == source), None)
    if source is not None and place is None:
        raise BadUsage(f"there is no rule at {source}", hint="`haft permissions list` shows where each rule is written")
    origin = "user" if place is None else rules[place].origin
    shown = source or "the new rule"
    new = [] if table is None else [rule_from(table, origin=origin, source=shown)]
    check_rules(new, shapes_of([listing.spec for listing in service.tools(all=True)]))
    at, after = (0, 0) if place is None else (place, place + 1)
    changed = service._host.policy_engine_with([*rules[:at], *new, *rules[after:]])
    namespaces = (await service._host.sandbox.ready()).namespaces
    return replay(
        service._host.history().each(Filter(workspace=service._host.root.root, limit=limit)),
        {listing.spec.name: listing.spec for listing in service.tools(all=True)},
        changed,
        service._host.policy_engine,
        lambda spec: spec.has_processes and namespaces,
    )


def decided_by(service: ToolService, limit: int) -> tuple[int, Counter[tuple[str, str, str]]]:
    """How many of the last `limit` calls there were, and how many of them each rule decided: by the file of the rule,
    its words, and the action. The line of the rule is left out, because it changes when other rules do."""
    counts: Counter[tuple[str, str, str]] = Counter()
    runs = 0
    for run in service._host.history().each(Filter(workspace=service._host.root.root, limit=limit)):
        decision = run.record["decision"]
        if decision is None or run.record["tool"] in ("undo", "redo", "apply", "drop"):
            continue
        runs += 1
        counts[
            decision["source"].rpartition(":")[0] or decision["source"], decision["rule"], decided_then(decision)
        ] += 1
    return runs, counts
