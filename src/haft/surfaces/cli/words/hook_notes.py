"""What `haft connect` tells a person about the hooks of an agent: where they do not cover its calls, and which version
of the agent they need."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from haft.connecting import Agent, Plan


def version_warning(agent: Agent) -> str | None:
    """What is wrong with hooks in the installed version of the agent; None if nothing is known to be wrong."""
    from haft.connecting import installed_version, needed_version, too_old_sentence

    sentence = too_old_sentence(agent, installed_version(agent, os.environ))
    return None if sentence is None else f"{sentence}; update to {needed_version(agent)} or newer"


def hook_notes(plan: Plan) -> list[str]:
    """How well the hooks of an agent cover its own tools, in sentences."""
    from haft.connecting import failures_that_pass, installed_version, needed_version

    agent, choice, facts = plan.agent, plan.choice, plan.agent.hooks
    assert facts is not None
    version, needed = installed_version(agent, os.environ), needed_version(agent)
    notes = []
    if needed is not None and (version is None or choice.scope == "project"):
        who = "each person needs" if choice.scope == "project" else "haft could not see its version: you need"
        older = f"older versions ignore `{facts.blocking.setting if facts.blocking else ''}`"
        notes.append(
            f"{who} {agent.title} {needed} or newer; {older}, and let calls pass if haft's hook fails to start"
        )
    if facts.rewriting == "off":
        notes.append(
            f"{agent.title}'s own shell commands are decided and recorded, and run without haft's sandbox: "
            "no test has shown that a rewritten command is what runs"
        )
    if passes := failures_that_pass(agent, version):
        notes.append("\n  - ".join(("a call passes without haft's decision if the hook fails like this:", *passes)))
    if not facts.blocks_on_failure and not facts.passes:
        notes.append(f"{agent.title} cannot be told to deny a call if the hook itself cannot start")
    notes += [f"{agent.title}'s own rules: {each}" for each in facts.own_rules]
    has_rule = plan.record is not None and any(entry.part == "rules" for entry in plan.record.entries)
    if facts.rewriting == "plain" and not has_rule and not choice.replace:
        notes.append(
            f"{agent.title} gets no rule that allows haft's own program, so where its own rules ask about commands, it "
            "asks about each of them"
        )
    notes += [f"never reaches the hook: {each}" for each in facts.unseen]
    if agent.id == "codex" and choice.scope == "project":
        notes.append("each person trusts the hooks once, with `/hooks` in Codex; until then Codex skips them")
    return notes
