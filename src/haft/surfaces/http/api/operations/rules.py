"""The rules of a workspace: which decides what, and changes of them."""

from __future__ import annotations

import asyncio
import os
import tomllib
from typing import TYPE_CHECKING, Any, cast

from haft.contracts import BadConfig, BadUsage
from haft.service import (
    ConfigFile,
    RuleChanges,
    decided_by,
    listed_rules,
    load_config,
    replayed,
    replayed_change,
    rules_in,
)
from haft.surfaces.http.api.operations.tools import find_tool

if TYPE_CHECKING:
    from haft.service import RuleChange as ChangedRule
    from haft.surfaces.http.api.ask import Ask
    from haft.surfaces.http.api.types.given import Nothing
    from haft.surfaces.http.api.types.rules import (
        AddRuleGiven,
        Decision,
        DecisionCounts,
        DecisionsGiven,
        RemoveRuleGiven,
        Replay,
        ReplayChangeGiven,
        ReplayGiven,
        RuleChange,
        RuleNamed,
        Rules,
        RuleShown,
        TestGiven,
        WriteRuleGiven,
    )


async def test_call(ask: Ask, given: TestGiven) -> Decision:
    """The decision about a call, without making it."""
    find_tool(ask, given.tool)
    caller = ask.identity.principal(given.thread)
    found = await ask.service.permissions_test(
        given.tool, given.args, cwd=given.cwd, thread=caller.thread, who=caller, subagent=given.subagent
    )
    shape = found.decision.to_json()
    kept = {name: shape[name] for name in ("action", "layer", "rule", "source", "reason", "parts")}
    if given.explain:
        kept["steps"] = [step.to_json() for step in found.steps]
    return cast("Decision", kept)


async def list_rules(ask: Ask, _given: Nothing) -> Rules:
    """Every rule, in the order in which they apply."""
    service = ask.service
    specs = [each.spec for each in service.tools(all=True)]

    def read() -> Rules:
        config = load_config(ask.here.path, os.environ, trust_home=service.home.path)
        return {"rules": list(listed_rules(config, ask.here.path, service.home, specs))}

    return await asyncio.to_thread(read)


async def add_rule(ask: Ask, given: AddRuleGiven) -> RuleChange:
    """Add a rule to the haft.toml of the server's user, or of the workspace. It counts for services that open later."""
    specs = [each.spec for each in ask.service.tools(all=True)]
    rules = _changes(ask)
    in_workspace = given.place == "workspace"
    table = given.rule.model_dump(exclude_none=True)
    return _changed(await asyncio.to_thread(rules.add, table, specs, in_workspace=in_workspace, is_first=given.first))


async def remove_rule(ask: Ask, given: RemoveRuleGiven) -> RuleChange:
    """Remove a rule, or a remembered answer."""
    return _changed(await asyncio.to_thread(_changes(ask).remove, given.source))


async def replay_rules(ask: Ask, given: ReplayGiven) -> Replay:
    """Decide past calls again by other rules, and list those that would be decided differently."""
    rules = None
    if given.rules is not None:
        file = ConfigFile("haft.toml", given.rules.encode(), "the given rules")
        try:
            rules = await asyncio.to_thread(rules_in, file, ask.here.path, os.environ)
        except BadConfig as error:  # The request is wrong, and not the configuration of the server.
            raise BadUsage(error.message, hint=error.hint) from error
    return cast("Replay", (await replayed(ask.service, rules, given.limit)).to_json())


async def show_rule(ask: Ask, given: RuleNamed) -> RuleShown:
    """A rule of a file, as TOML."""
    return {"source": given.source, "text": await asyncio.to_thread(_changes(ask).text_of, given.source)}


async def write_rule(ask: Ask, given: WriteRuleGiven) -> RuleChange:
    """Replace a rule in its file, or add one. It counts for services that open later."""
    rules, table = _changes(ask), _table_of(given.text)
    specs = [each.spec for each in ask.service.tools(all=True)]
    if given.source is not None:
        return _changed(await asyncio.to_thread(rules.replace, given.source, table, specs))
    in_workspace = given.place == "workspace"
    return _changed(await asyncio.to_thread(rules.add, table, specs, in_workspace=in_workspace, is_first=True))


async def replay_change(ask: Ask, given: ReplayChangeGiven) -> Replay:
    """Decide past calls again with one rule changed, and list those that would be decided differently."""
    table = None if given.text is None else _table_of(given.text)
    found = await replayed_change(ask.service, given.source, table, given.limit)
    return cast("Replay", found.to_json())


async def count_decisions(ask: Ask, given: DecisionsGiven) -> DecisionCounts:
    """How many of the last calls each rule decided."""
    looked_at, counts = await asyncio.to_thread(decided_by, ask.service, given.limit)
    return {
        "lookedAt": looked_at,
        "counts": [
            {"file": file, "rule": rule, "action": action, "count": count}  # type: ignore[typeddict-item]
            for (file, rule, action), count in counts.most_common()
        ],
    }


def _table_of(text: str) -> dict[str, Any]:
    """The rule in a text that has exactly one. Raises `BadUsage` if it has none, or more than that."""
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadUsage(f"the rule is not TOML: {error}") from error
    rules = tables.get("permissions")
    if set(tables) != {"permissions"} or not isinstance(rules, list) or len(rules) != 1:
        raise BadUsage("write exactly one rule, which begins with [[permissions]]")
    table: dict[str, Any] = rules[0]
    return table


def _changes(ask: Ask) -> RuleChanges:
    return RuleChanges(ask.here.path, ask.service.home, ask.identity.principal())


def _changed(change: ChangedRule) -> RuleChange:
    shape = {**change.to_json(), "missing": change.missing, "losesTrust": change.loses_trust}
    return cast("RuleChange", shape)
