"""What each agent does with every answer of a hook, and with every failure of one, is what the table in
`recorded/README.md` says."""

import pytest
from hook_probe import LEFT_OUT, outcomes
from real_agents import AGENTS

RUNS, DENIED, REWRITTEN = "original", "none", "rewritten"
CASES = (
    *("nothing", "empty-object", "deny", "ask", "rewrite", "allow-rewrite", "ask-rewrite", "status-1", "status-2"),
    *("status-2-silent", "status-1-deny", "killed", "garbage", "unknown-decision", "hang", "hang-after-deny"),
)
PASSING = dict.fromkeys(CASES, RUNS) | {"deny": DENIED, "status-2": DENIED, "allow-rewrite": REWRITTEN}
CLAUDE = PASSING | {
    "ask": DENIED,
    "rewrite": REWRITTEN,
    "ask-rewrite": DENIED,
    "status-2-silent": DENIED,
    "status-1-deny": DENIED,
}
BLOCKING = dict.fromkeys(("status-1", "killed", "unknown-decision", "hang", "hang-after-deny"), DENIED)
EXPECTED = {
    "claude-code": CLAUDE,
    "claude-code-onFailure-block": CLAUDE | BLOCKING,
    "codex": PASSING,
    "gemini": PASSING | {"rewrite": REWRITTEN, "status-1-deny": DENIED},
}


@pytest.mark.parametrize("name", EXPECTED)
def test_the_hooks_answers_have_the_effect_that_the_table_says(name, tmp_path, monkeypatch):
    agent = next(agent for agent in AGENTS if name.startswith(agent))
    if name.endswith("block"):
        monkeypatch.setattr(AGENTS[agent], "hook_fields", {"onFailure": "block"})
    left_out = LEFT_OUT.get(agent, ())
    found = outcomes(agent, tmp_path, leave_out=left_out)
    expected = {case: what for case, what in EXPECTED[name].items() if case not in left_out}
    assert {case: what for case, (what, _) in found.items()} == expected
