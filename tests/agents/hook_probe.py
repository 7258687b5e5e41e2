"""What an agent does with each answer of a hook, and with a hook that fails.

    python tests/agents/hook_probe.py [AGENT…]

One session of the agent runs `touch CASE.original` for each case; the hook answers, or fails, as the case says. Which
file is there afterwards says what ran: the original line, the line that the hook wrote, or none. A hook that is not
there needs a session of its own. `outcomes` is used by `test_real_answers`, which keeps the table in the documentation
true.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent.parent), str(Path(__file__).parent)]

from expected_answers import ABSENT, LEFT_OUT  # noqa: E402
from real_agents import AGENTS, RealAgent  # noqa: E402
from recording import install_recorder  # noqa: E402

from haft.testing.scripted_model import ScriptedModel, call, say, text_call  # noqa: E402

SECONDS = 3
"""The time limit that the hook's entry names."""
NOWHERE = "/nowhere/haft-hook"
REASON = "refused by the hook"


def rewritten(case: str) -> str:
    return f"touch {case}.rewritten"


def like_claude(case: str, decision: str | None, *, rewrites: bool = False, event: str = "PreToolUse") -> str:
    """An answer in the form that Claude Code and Codex read."""
    words: dict = {"hookEventName": event}
    if decision:
        words |= {"permissionDecision": decision, "permissionDecisionReason": REASON}
    if rewrites:
        words |= {"updatedInput": {"command": rewritten(case)}}
    return json.dumps({"hookSpecificOutput": words})


def like_gemini(case: str, decision: str | None, *, rewrites: bool = False) -> str:
    words: dict = {"decision": decision, "reason": REASON} if decision else {}
    if rewrites:
        words |= {"hookSpecificOutput": {"hookEventName": "BeforeTool", "tool_input": {"command": rewritten(case)}}}
    return json.dumps(words)


def like_opencode(case: str, decision: str | None, *, rewrites: bool = False) -> str:
    """An answer to the plugin that the tests install."""
    words: dict = {"deny": REASON} if decision == "deny" else {}
    return json.dumps(words | ({"args": {"command": rewritten(case)}} if rewrites else {}))


FORMS = {"claude-code": like_claude, "codex": like_claude, "gemini": like_gemini, "opencode": like_opencode}


def answers(agent: str) -> dict[str, dict]:
    """The cases, and what the hook does in each."""
    form = FORMS[agent]
    return {
        "nothing": {},
        "empty-object": {"stdout": "{}"},
        "deny": {"stdout": form("deny", "deny")},
        "ask": {"stdout": form("ask", "ask")},
        "rewrite": {"stdout": form("rewrite", None, rewrites=True)},
        "allow-rewrite": {"stdout": form("allow-rewrite", "allow", rewrites=True)},
        "ask-rewrite": {"stdout": form("ask-rewrite", "ask", rewrites=True)},
        "status-1": {"status": 1, "stderr": REASON},
        "status-2": {"status": 2, "stderr": REASON},
        "status-2-silent": {"status": 2},
        "status-1-deny": {"status": 1, "stdout": form("deny", "deny")},
        "killed": {"kill": True},
        "garbage": {"stdout": "neither JSON nor {"},
        "unknown-decision": {"stdout": form("unknown-decision", "perhaps")},
        "hang": {"seconds": SECONDS * 3},
        "hang-after-deny": {"stdout": form("deny", "deny"), "hold": SECONDS * 3},
    }


def ran(agent: RealAgent, case: str) -> str:
    """What ran in a case."""
    made = [kind for kind in ("original", "rewritten") if (agent.workspace / f"{case}.{kind}").exists()]
    return " and ".join(made) or "none"


def shell(agent: str, command: str):
    """A step: the agent's own shell."""
    name = AGENTS[agent].own_shell
    return call(name, cmd=command) if agent == "codex" else call(name, command=command, description="run it")


def code_shell(agent: str, command: str):
    """A step: the shell of a model of Codex that calls tools from JavaScript."""
    return text_call("exec", f"text(await tools.exec_command({json.dumps({'cmd': command})}))")


CODE_MODE = ("-c", 'model="gpt-5.6-sol"')
"""The options that let Codex use a model that calls tools from JavaScript."""


def outcomes(
    agent: str, base: Path, *, leave_out: tuple[str, ...] = (), from_code: bool = False
) -> dict[str, tuple[str, str]]:
    """For each case what ran, and what the model was told. With `from_code`, the model calls the shell from code."""
    step = code_shell if from_code else shell
    with ScriptedModel(without_tools="ok") as model:
        real = AGENTS[agent](base / agent, model.url)
        _, answering = install_recorder(real, seconds=SECONDS)
        cases = {case: answer for case, answer in answers(agent).items() if case not in leave_out}
        answering.write_text(json.dumps({f"touch {case}.original": answer for case, answer in cases.items()}))
        options = (*real.unattended, *real.trusting, *(CODE_MODE if from_code else ()))
        prompt = model.task(*(step(agent, f"touch {case}.original") for case in cases), say("done"))
        real.run(prompt, *options)
        told = model.results(prompt)
        told += [""] * (len(cases) - len(told))
        if ABSENT not in leave_out:
            real.install_hooks(NOWHERE, NOWHERE, seconds=SECONDS)
            prompt = model.task(step(agent, f"touch {ABSENT}.original"), say("done"))
            real.run(prompt, *options)
            told = [*told[: len(cases)], *model.results(prompt), ""]
            cases[ABSENT] = {}
        return {case: (ran(real, case), words) for case, words in zip(cases, told, strict=False)}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="probe-", ignore_cleanup_errors=True) as scratch:
        for each in sys.argv[1:] or AGENTS:
            print("==", each)
            for name, (what, words) in outcomes(each, Path(scratch), leave_out=LEFT_OUT.get(each, ())).items():
                print(f"{name:18} {what:10} {' '.join(words.split())[:200]}")
