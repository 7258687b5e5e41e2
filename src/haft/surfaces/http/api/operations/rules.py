"""The rules of a workspace: which decides what, and changes of them."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, cast

from haft.contracts import BadConfig, BadUsage
from haft.service import ConfigFile, RuleChanges, listed_rules, load_config, replayed, rules_in
from haft.surfaces.http.api.operations.tools import find_tool

if TYPE_CHECKING:
    from haft.service import RuleChange as ChangedRule
    from haft.surfaces.http.api.ask import Ask
    from haft.surfaces.http.api.types.given import Nothing
    from haft.surfaces.http.api.types.rules import (
        AddRuleGiven,
        Decision,
        RemoveRuleGiven,
        Replay,
        ReplayGiven,
        RuleChange,
        Rules,
        TestGiven,
    )


async def test_call(ask: Ask, given: TestGiven) -> Decision:
    """The decision about a call, without making it."""
    find_tool(ask, given.tool)
    thread = None if given.thread is None else ask.identity.principal(given.thread).thread
    found = await ask.service.permissions_test(
        given.tool, given.args, cwd=given.cwd, thread=thread, subagent=given.subagent
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
    if given.place == "user":
        ask.require_everywhere("a rule of the server's user counts in every workspace")
    rules = _changes(ask)
    in_workspace = given.place == "workspace"
    table = given.rule.model_dump(exclude_none=True)
    return _changed(
        await asyncio.to_thread(rules.add, table, specs, in_workspace=in_workspace, is_first=given.first)
    )


async def remove_rule(ask: Ask, given: RemoveRuleGiven) -> RuleChange:
    """Remove a rule, or a remembered answer."""
    if not given.source.startswith("remembered:"):
        ask.require_everywhere("a rule that is written in a file may count in every workspace")
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


def _changes(ask: Ask) -> RuleChanges:
    return RuleChanges(ask.here.path, ask.service.home, ask.identity.principal())


def _changed(change: ChangedRule) -> RuleChange:
    shape = {**change.to_json(), "missing": change.missing, "losesTrust": change.loses_trust}
    return cast("RuleChange", shape)
