"""What `haft connect --hooks` tells people about failing hooks is what the tests with the real agents expect."""

from __future__ import annotations

import pytest
from expected_answers import ABSENT, DENIED, EXPECTED, LEFT_OUT, REWRITTEN, RUNS

from haft.connecting import AGENTS

FAILURES = {
    "it is killed, or ends with another code than 0 or 2": ("killed", "status-1"),
    "its program is not there": (ABSENT,),
    "it takes longer than its time limit": ("hang", "hang-after-deny"),
    "it prints something that is not JSON": ("garbage",),
}
"""The cases that the words in `HookFacts.passes` mean."""
TRIED = ("claude-code", "codex", "gemini")


def expected(agent: str) -> dict[str, str]:
    """What an agent does with the hook that haft writes."""
    facts = AGENTS[agent].hooks
    assert facts is not None
    blocks = f"{agent}-onFailure-block"
    return EXPECTED[blocks if facts.blocks_on_failure and blocks in EXPECTED else agent]


@pytest.mark.parametrize("agent", TRIED)
def test_the_failures_that_let_a_call_pass_are_those_that_are_told(agent: str) -> None:
    facts = AGENTS[agent].hooks
    assert facts is not None
    told = {case for words in facts.passes for case in FAILURES[words]}
    passing = {case for cases in FAILURES.values() for case in cases if expected(agent)[case] == RUNS}
    assert passing == told


@pytest.mark.parametrize("agent", [agent for agent in TRIED if (hooks := AGENTS[agent].hooks) and hooks.blocking])
def test_the_failures_that_pass_in_an_older_version_are_those_without_the_setting(agent: str) -> None:
    facts = AGENTS[agent].hooks
    assert facts is not None and facts.blocking is not None and f"{agent}-{facts.blocking.setting}-block" in EXPECTED
    told = {case for words in facts.blocking.passes_before for case in FAILURES[words]}
    assert {case for cases in FAILURES.values() for case in cases if EXPECTED[agent][case] == RUNS} == told


@pytest.mark.parametrize("agent", [*TRIED, "opencode"])
def test_every_agent_obeys_a_denial_and_the_way_in_which_haft_rewrites(agent: str) -> None:
    facts = AGENTS[agent].hooks
    assert facts is not None
    assert expected(agent)["deny"] == DENIED
    assert agent == "opencode" or expected(agent)["status-2"] == DENIED
    assert expected(agent)["allow-rewrite" if facts.rewriting == "with-allow" else "rewrite"] == REWRITTEN
    assert not {"deny", "rewrite"} & {*LEFT_OUT.get(agent, ())}


def test_only_codex_has_tools_that_no_hook_sees() -> None:
    """`test_real_answers` shows it."""
    unseen = {agent: facts.hooks.unseen for agent, facts in AGENTS.items() if facts.hooks is not None}
    assert {agent for agent, tools in unseen.items() if tools} == {"codex"}
    assert "`write_stdin`" in str(unseen["codex"])
