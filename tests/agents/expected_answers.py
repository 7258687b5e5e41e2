"""What each agent does with every answer of a hook, and with every failure of one, as plain data. `test_real_answers`
compares it with the real agents, and `test_expected_answers` with haft's facts about them."""

from __future__ import annotations

ABSENT = "absent"
"""The case in which the hook's program is not there."""
RUNS, DENIED, REWRITTEN = "original", "none", "rewritten"
CASES = (
    *("nothing", "empty-object", "deny", "ask", "rewrite", "allow-rewrite", "ask-rewrite", "status-1", "status-2"),
    *("status-2-silent", "status-1-deny", "killed", "garbage", "unknown-decision", "hang", "hang-after-deny"),
    ABSENT,
)
PASSING = dict.fromkeys(CASES, RUNS) | {"deny": DENIED, "status-2": DENIED, "allow-rewrite": REWRITTEN}
CLAUDE = PASSING | {
    "ask": DENIED,
    "rewrite": REWRITTEN,
    "ask-rewrite": DENIED,
    "status-2-silent": DENIED,
    "status-1-deny": DENIED,
}
BLOCKING = dict.fromkeys(("status-1", "killed", "unknown-decision", "hang", "hang-after-deny", ABSENT), DENIED)
EXPECTED = {
    "claude-code": CLAUDE,
    "claude-code-onFailure-block": CLAUDE | BLOCKING,
    "codex": PASSING,
    "codex-from-code": PASSING,
    "opencode": PASSING | {"rewrite": REWRITTEN},
    "gemini": PASSING | {"rewrite": REWRITTEN, "status-1-deny": DENIED, ABSENT: DENIED},
}
_CHOSEN = tuple(case for case in CASES if case not in ("nothing", "empty-object", "deny", "rewrite"))
LEFT_OUT = {"gemini": ("ask", "ask-rewrite"), "opencode": _CHOSEN}
"""Gemini CLI without a terminal waits for ever if a hook asks. In opencode, the plugin decides about these cases."""
