"""The page about real agents, `docs/reference/agents.md`: what `make test-agents` found, and measured facts.

A row is a test, a column an agent. The facts are those of `recorded/README.md`. `test_real_answers` keeps its table of
answers true: all rows for Claude Code, Codex (its shell and code mode) and Gemini CLI, except hooks that ask in Gemini
CLI; for opencode the answers that its plugin obeys, since the plugin decides about the rest. The other tables are from
the recordings, and no test repeats them.
"""

from __future__ import annotations

import re
from pathlib import Path

import installed_agents

HERE = Path(__file__).parent
PAGE = HERE.parent.parent / "docs" / "reference" / "agents.md"
TITLES = {"claude-code": "Claude Code", "codex": "Codex", "opencode": "opencode", "gemini": "Gemini CLI"}
SECTIONS = {
    "test_real_mcp": "Beside the agent's own tools: `haft connect AGENT`",
    "test_real_hooks": "In its hooks: `haft connect AGENT --hooks`",
    "test_real_terminal": "In its hooks, on a terminal",
    "test_real_rules": "In its hooks: the agent's own rules",
    "test_real_answers": "Answers and failures of any hook: the table at the end of this page",
    "test_real_hook_failures": "A hook of haft that fails",
    "test_real_self_approval": "An agent that tries to approve its own call",
    "test_real_replace": "Instead of its tools: `haft connect AGENT --replace`",
    "test_real_run": "Around it: `haft run -- AGENT`",
    "test_real_run_confined": "Around it: what it is refused",
}
INTRODUCTION = """# Agents, as tested

`make test-agents` runs the real programs with haft and a scripted model, without a network, and writes this page.
Agents that are not listed (Antigravity, Cursor, VS Code, Amp) are *not run*: haft writes their configuration from their
documentation.
"""


def write(outcomes: dict[str, str]) -> None:
    """Write the page, from the outcomes by the ids of tests."""
    rows: dict[str, dict[str, dict[str, str]]] = {}
    for test, outcome in outcomes.items():
        agent = next((agent for agent in TITLES if f"[{agent}" in test), None)
        found = re.search(r"(test_real_\w+)\.py::test_(\w+)\[", test)
        if agent and found:
            case = test.partition(f"[{agent}")[2].strip("-]")
            sentence = _sentence(found[2]) + (f": {case.replace('-', ' ')}" if case else "")
            rows.setdefault(found[1], {}).setdefault(sentence, {})[agent] = outcome
    words = [INTRODUCTION]
    heads = [f"{title} {installed_agents.version(agent)}" for agent, title in TITLES.items()]
    for module, title in SECTIONS.items():
        if module in rows:
            words.append(f"## {title}\n\n| | {' | '.join(heads)} |\n|---|---|---|---|---|")
            words += [
                f"| {sentence[0].upper()}{sentence[1:]} | " + " | ".join(by.get(a, "–") for a in TITLES) + " |"
                for sentence, by in sorted(rows[module].items())
            ]
            words.append("")
    facts = (HERE / "recorded" / "README.md").read_text().partition("\n| | ")
    words.append("## What agents give their hooks\n\n| | " + facts[2].rstrip())
    PAGE.write_text("\n".join(words) + "\n")


def _sentence(name: str) -> str:
    """The name of a test as words."""
    words = f" {name.replace('_', ' ')} "
    for plain, owned in (("hafts", "haft's"), ("agents", "agent's"), ("hooks", "hook's")):
        words = words.replace(f" {plain} ", f" {owned} ")
    return words.strip()
