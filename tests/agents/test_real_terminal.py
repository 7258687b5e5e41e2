"""Real agents in a terminal: their own prompt shows what runs, and a person answers there."""

import pytest
from connected import Connected
from own_tools import shell
from terminal import Terminal

from haft.testing.scripted_model import say


@pytest.mark.parametrize("name", ["claude-code"])
def test_its_own_prompt_shows_the_command_and_an_answer_there_counts_once(name, tmp_path, model):
    agent = Connected(name, tmp_path, model.url, "--hooks", rules="")
    prompt = model.task(shell(name, "touch asked-now"), shell(name, "touch asked-again"), say("all is done"))
    words = [*agent.real.command, *agent.real.words(prompt), "--permission-mode", "default"]
    try:
        with Terminal(tmp_path, words, agent.workspace, agent.real.env) as terminal:
            screen = terminal.until("Do you want to proceed?")
            assert "asked-now'" in screen
            assert not (agent.workspace / "asked-now").exists()
            assert "ask again" not in screen, "an answer for all such commands would cover other commands"
            terminal.press("Enter")
            screen = terminal.until("asked-again'")
            assert (agent.workspace / "asked-now").exists()
            terminal.press("2")
            terminal.until("all is done", "❯")
        assert not (agent.workspace / "asked-again").exists()
        (asked, *_) = agent.runs()
        assert asked["status"] == "done"
        assert name in str(asked), asked
    finally:
        agent.end()
