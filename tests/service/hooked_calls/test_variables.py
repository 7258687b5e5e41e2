"""Which variables of an agent count for the service that runs its commands."""

import asyncio
import os

from haft import ToolService
from haft.service import environment_key, environment_of


def test_agents_with_another_path_need_another_service():
    one = {"PATH": "/usr/bin", "TERM": "xterm", "CLAUDECODE": "1"}
    assert environment_key(one) == environment_key({**one, "TERM": "dumb", "CLAUDECODE": "2"})
    assert environment_key(one) != environment_key({**one, "PATH": "/opt/bin:/usr/bin"})
    assert environment_key(one) != environment_key({**one, "LC_ALL": "C.UTF-8"})


def test_settings_of_haft_are_those_of_the_resident(monkeypatch):
    monkeypatch.setenv("HAFT_HOME", "/its/own")
    found = environment_of({"PATH": "/usr/bin", "HAFT_HOME": "/another", "HAFT_SANDBOX_MODE": "off"})
    assert (found["PATH"], found["HAFT_HOME"]) == ("/usr/bin", "/its/own")
    assert "HAFT_SANDBOX_MODE" not in found


def test_an_environment_that_is_not_active_where_the_agent_runs_is_not_active_for_it(monkeypatch):
    monkeypatch.setenv("VIRTUAL_ENV", "/another/terminal")
    assert "VIRTUAL_ENV" not in environment_of({"PATH": "/usr/bin"})
    assert environment_of({})["VIRTUAL_ENV"] == "/another/terminal", "an agent that says nothing gets the resident's"


def test_a_service_gives_its_calls_the_variables_that_it_was_opened_with(tmp_path):
    (tmp_path / "bin").mkdir(mode=0o755)
    (tmp_path / "workspace").mkdir()

    async def main():
        environ = {**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}
        service = ToolService.open(
            tmp_path / "workspace", home=tmp_path / "home", environ=environ, approver=lambda _request: True
        )
        async with service:
            return (await service.call("shell", {"command": "touch x; echo $PATH"})).output

    assert str(tmp_path / "bin") in asyncio.run(main()).split(":")
