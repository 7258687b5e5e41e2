"""`haft connect AGENT --replace` with the real agents: their own shell is gone."""

import pytest
from connected import Connected
from own_tools import AGENT_NAMES, HAFTS, SHELLS, haft

from haft.testing.scripted_model import say


@pytest.mark.parametrize("name", AGENT_NAMES)
def test_its_own_shell_is_gone_and_hafts_shell_works(name, tmp_path, model):
    agent = Connected(name, tmp_path, model.url, "--replace")
    try:
        prompt = model.task(haft(name, "shell", command="echo by haft > made.txt"), say("done"))
        done = agent.real.run(prompt)
        offered = model.tools(prompt)
        assert (agent.workspace / "made.txt").read_text() == "by haft\n", (done, offered)
        assert SHELLS[name] not in offered
        assert f"{HAFTS[name]}shell" in offered
    finally:
        agent.end()


@pytest.mark.parametrize("name", AGENT_NAMES)
def test_taken_back_its_own_shell_is_there_again(name, tmp_path, model):
    agent = Connected(name, tmp_path, model.url, "--replace")
    agent.haft("connect", name, "--remove", "--yes")
    prompt = model.task(say("done"))
    agent.real.run(prompt)
    assert SHELLS[name] in model.tools(prompt)
    assert not [tool for tool in model.tools(prompt) if tool.startswith(HAFTS[name])]
