"""What each agent does with every answer of a hook, and with every failure of one, is what the table in
`recorded/README.md` says."""

import re

import pytest
from expected_answers import EXPECTED, LEFT_OUT
from hook_probe import outcomes
from real_agents import AGENTS
from recording import events, install_recorder

from haft.testing.scripted_model import ScriptedModel, call, say


@pytest.mark.parametrize("name", EXPECTED)
def test_the_hooks_answers_have_the_effect_that_the_table_says(name, tmp_path, monkeypatch):
    agent = next(agent for agent in AGENTS if name.startswith(agent))
    if name.endswith("block"):
        monkeypatch.setattr(AGENTS[agent], "hook_fields", {"onFailure": "block"})
    left_out = LEFT_OUT.get(agent, ())
    found = outcomes(agent, tmp_path, leave_out=left_out, from_code=name.endswith("from-code"))
    expected = {case: what for case, what in EXPECTED[name].items() if case not in left_out}
    assert {case: what for case, (what, _) in found.items()} == expected


@pytest.mark.parametrize("name", ["codex"])
def test_input_for_a_running_command_reaches_no_hook(name, tmp_path):
    with ScriptedModel(without_tools="ok") as model:
        agent = AGENTS[name](tmp_path, model.url)
        log, _ = install_recorder(agent)

        def typing(request):
            session = re.search(r"session ID (\d+)", request.results[0])
            return call("write_stdin", session_id=int(session[1]), chars="typed\n", yield_time_ms=2000)

        reads = call("exec_command", cmd="read -r line; touch $line", tty=True, yield_time_ms=500)
        prompt = model.task(reads, call("exec_command", cmd="true"), typing, say("done"))
        agent.run(prompt, *agent.unattended, *agent.trusting, "-c", 'model="gpt-5.5"')
    assert (agent.workspace / "typed").exists()
    befores = [event["stdin"]["tool_name"] for event in events(log) if event["event"] == "before"]
    assert befores == ["Bash", "Bash"], "the two commands, and not the input"
