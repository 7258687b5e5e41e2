"""Record what each agent gives its hooks, with the real programs, into `recorded/AGENT.json`.

    python tests/agents/recording.py [AGENT…]

One session of each agent calls all tools of its own that need no network: with success, with failure, in the
background, in a sub-agent. Tests of the hook read the recordings. Names of places are replaced, so that a recording is
the same on every machine: the agent's home is `/workspaces/person`, its workspace `/workspaces/person/project`.
"""

from __future__ import annotations

import json
import re
import shlex
import sys
import tempfile
import threading
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent.parent), str(Path(__file__).parent)]

import installed_agents  # noqa: E402
from real_agents import AGENTS, RealAgent  # noqa: E402

from haft.testing.scripted_model import ScriptedModel, call, calls, say, text_call  # noqa: E402

HERE = Path(__file__).parent
RECORDED = HERE / "recorded"
NOTEBOOK = {"cells": [{"cell_type": "code", "id": "a", "source": "1", "metadata": {}, "outputs": []}], "metadata": {}}
PATCH = """*** Begin Patch
*** Add File: patched.txt
+one
*** Update File: note.txt
@@
-old
+new
*** End Patch
"""


def claude_steps(model: ScriptedModel, at: Path) -> list:
    helper = model.task(call("Bash", command="echo from the sub-agent"), say("helped"))
    return [
        call("Bash", command="echo hello", description="Say hello"),
        call("Bash", command="exit 3"),
        call("Bash", command="cd sub && pwd"),
        call("Bash", command="sleep 5", timeout=1000),
        call("Bash", command="echo in the background; touch background.txt", run_in_background=True),
        calls(call("Bash", command="echo first"), call("Bash", command="echo second")),
        call("Read", file_path=f"{at}/note.txt"),
        call("Edit", file_path=f"{at}/note.txt", old_string="old", new_string="new"),
        call("Edit", file_path=f"{at}/note.txt", old_string="never there", new_string="new"),
        call("Write", file_path=f"{at}/made.txt", content="made\n"),
        call("Read", file_path=f"{at}/book.ipynb"),
        call("NotebookEdit", notebook_path=f"{at}/book.ipynb", cell_id="a", new_source="2"),
        call("Glob", pattern="*.txt"),
        call("Grep", pattern="made"),
        call("TaskCreate", subject="a task", description="a task"),
        call("Agent", description="help", prompt=helper, subagent_type="general-purpose"),
        call("Monitor", description="watch", timeout_ms=2000, command="echo watched"),
        say("done"),
    ]


def codex_steps(model: ScriptedModel, at: Path) -> list:
    return [
        call("exec_command", cmd="echo hello"),
        call("exec_command", cmd="exit 3"),
        call("exec_command", cmd="pwd", workdir=f"{at}/sub"),
        call("exec_command", cmd="sleep 2; echo later", yield_time_ms=250),
        calls(call("exec_command", cmd="echo first"), call("exec_command", cmd="echo second")),
        text_call("apply_patch", PATCH),
        call(
            "exec_command",
            cmd=f"apply_patch <<'EOF'\n{PATCH.replace('patched', 'patched2').replace('-old', '-new')}EOF",
        ),
        call("view_image", path=f"{at}/none.png"),
        say("done"),
    ]


def codex_code_steps(model: ScriptedModel, at: Path) -> list:
    """Newer models of Codex call tools from JavaScript only."""
    patch = PATCH.replace("patched", "patched3")
    return [
        text_call("exec", 'const done = await tools.exec_command({cmd: "echo nested"}); text(done)'),
        text_call("exec", f"text(await tools.apply_patch({json.dumps(patch)}))"),
        say("done"),
    ]


def codex_agent_steps(model: ScriptedModel, at: Path) -> list:
    """A model that Codex does not know gets the tools for sub-agents."""
    helped = threading.Event()
    helper = model.task(call("exec_command", cmd="echo from the sub-agent"), lambda _: helped.set() or say("helped"))
    return [
        call("spawn_agent", message=helper),
        lambda _: helped.wait(20) and call("exec_command", cmd="echo last"),
        say("done"),
    ]


def opencode_steps(model: ScriptedModel, at: Path) -> list:
    helper = model.task(call("bash", command="echo from the sub-agent", description="help"), say("helped"))
    return [
        call("bash", command="echo hello", description="Say hello"),
        call("bash", command="exit 3", description="Fail"),
        call("bash", command="pwd", workdir=f"{at}/sub", description="Elsewhere"),
        call("bash", command="sleep 5", timeout=1000, description="Too long"),
        calls(
            call("bash", command="echo first", description="First"),
            call("bash", command="echo second", description="Second"),
        ),
        call("read", filePath=f"{at}/note.txt"),
        call("edit", filePath=f"{at}/note.txt", oldString="old", newString="new"),
        call("edit", filePath=f"{at}/note.txt", oldString="never there", newString="new"),
        call("write", filePath=f"{at}/made.txt", content="made\n"),
        call("glob", pattern="*.txt"),
        call("grep", pattern="made"),
        call("todowrite", todos=[{"content": "a task", "status": "pending", "priority": "low", "id": "1"}]),
        call("task", description="help", prompt=helper, subagent_type="general"),
        say("done"),
    ]


def gemini_steps(model: ScriptedModel, at: Path) -> list:
    helper = model.task(call("run_shell_command", command="echo from the sub-agent"), say("helped"))
    return [
        call("run_shell_command", command="echo hello", description="Say hello"),
        call("run_shell_command", command="exit 3"),
        call("run_shell_command", command="pwd", dir_path="sub"),
        call("run_shell_command", command="sleep 1; touch background.txt", is_background=True),
        calls(call("run_shell_command", command="echo first"), call("run_shell_command", command="echo second")),
        call("read_file", file_path=f"{at}/note.txt"),
        call("replace", file_path=f"{at}/note.txt", instruction="newer", old_string="old", new_string="new"),
        call("replace", file_path=f"{at}/note.txt", instruction="newer", old_string="never there", new_string="new"),
        call("write_file", file_path=f"{at}/made.txt", content="made\n"),
        call("list_directory", dir_path=f"{at}"),
        call("glob", pattern="*.txt"),
        call("grep_search", pattern="made"),
        call("write_todos", todos=[{"description": "a task", "status": "pending"}]),
        call("invoke_agent", agent_name="generalist", prompt=helper),
        say("done"),
    ]


STEPS = {
    "claude-code": claude_steps,
    "codex": codex_steps,
    "codex-code": codex_code_steps,
    "codex-agents": codex_agent_steps,
    "opencode": opencode_steps,
    "gemini": gemini_steps,
}
OPTIONS = {"codex": ("-c", 'model="gpt-5.5"'), "codex-code": ("-c", 'model="gpt-5.6-sol"')}


AGENT_OF = {"codex-code": "codex", "codex-agents": "codex"}


def fill(workspace: Path) -> None:
    """The files that the steps read and change."""
    (workspace / "sub").mkdir()
    (workspace / "note.txt").write_text("old\n")
    (workspace / "book.ipynb").write_text(json.dumps({**NOTEBOOK, "nbformat": 4, "nbformat_minor": 5}))


def install_recorder(agent: RealAgent, *, seconds: int = 60) -> tuple[Path, Path]:
    """Let an agent call the recorder. Its log, and the file for its answers."""
    log, answers = agent.base / "hooks.jsonl", agent.base / "answers.json"
    line = [sys.executable, str(HERE / "hook_recorder.py"), str(log)]
    lines = (shlex.join([*line, when, str(answers)]) for when in ("before", "after"))
    agent.install_hooks(*lines, seconds=seconds)
    return log, answers


def events(log: Path) -> list[dict]:
    """What the recorder wrote."""
    return [*map(json.loads, log.read_text().splitlines())] if log.exists() else []


def elsewhere(agent: RealAgent, value):
    """A recording with the names of places that every machine has."""
    places = {
        agent.workspace: "/workspaces/person/project",
        agent.home: "/workspaces/person",
        agent.base: "/workspaces/person/base",
    }
    text = json.dumps(value)
    for place, name in places.items():
        text = text.replace(str(place), name).replace(_dashed(place), _dashed(name))
    return json.loads(text.replace(str(installed_agents.installed().parent), "/opt/agents"))


def _dashed(place: Path | str) -> str:
    """A path as Claude Code names its own folders after it."""
    return re.sub(r"[^A-Za-z0-9]", "-", str(place))


def record(name: str, base: Path) -> dict:
    """All that the hooks of an agent got in one session."""
    with ScriptedModel(without_tools="ok") as model:
        agent = AGENTS[AGENT_OF.get(name, name)](base / name, model.url)
        fill(agent.workspace)
        log, _ = install_recorder(agent)
        prompt = model.task(*STEPS[name](model, agent.workspace))
        done = agent.run(prompt, *agent.unattended, *agent.trusting, *OPTIONS.get(name, ()))
        print(name, done.returncode, done.stdout[-300:], done.stderr[-300:], file=sys.stderr)
        found = {"agent": agent.id, "version": installed_agents.version(agent.id), "tools": model.tools(prompt)}
        return elsewhere(agent, found | {"events": events(log), "results": model.results(prompt)})


if __name__ == "__main__":
    RECORDED.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="recording-", ignore_cleanup_errors=True) as scratch:
        for each in sys.argv[1:] or STEPS:
            (RECORDED / f"{each}.json").write_text(json.dumps(record(each, Path(scratch)), indent=1) + "\n")
