"""`sandbox.network = "never"`: no flag, rule or answer gives the network to a call, and none runs where it is open."""

import asyncio
import socket
import sys

import pytest

from haft.contracts import ApprovalAnswer, BadUsage
from haft.sandbox import Abilities
from haft.service import ToolService

pytestmark = [
    pytest.mark.every_user,
    pytest.mark.skipif(sys.platform != "linux", reason="sandbox need Linux"),
]

GRANTING = {"tool": "shell", "matches": {"command": "bash *"}, "action": "allow", "grant": {"network": True}}


@pytest.fixture
def workspace(tmp_path):
    (tmp_path / "workspace").mkdir()
    return tmp_path / "workspace"


@pytest.fixture
def port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def called(tmp_path, workspace, port):
    """One call that tries to reach the host."""

    def called(*, answer=False, network="never", grants=None, command=None, **settings):
        async def approver(_request):
            return answer

        async def go():
            service = ToolService.open(
                workspace,
                approver=approver,
                home=tmp_path / "home",
                installed=False,
                settings={
                    "sandbox.network": network,
                    **{name.replace("__", "."): each for name, each in settings.items()},
                },
            )
            async with service:
                line = command or f"bash -c ': < /dev/tcp/127.0.0.1/{port}'"
                return await service.call("shell", {"command": line}, grants=grants)

        return asyncio.run(go())

    return called


def test_the_control_reaches_the_host_by_each_grant(called):
    assert called(network=True, answer=True).status == "done"
    assert called(network=False, permissions=[GRANTING]).status == "done"
    assert called(network=False, answer=True, grants={"network": True}).status == "done"
    assert called(network=False, answer=ApprovalAnswer(True, grants={"network": True})).status == "done"


def test_a_flag_is_refused_and_says_where_it_is_written(called):
    with pytest.raises(BadUsage, match=r"`sandbox.network` is `never` \(the caller\)"):
        called(answer=True, grants={"network": True})


def test_a_rule_that_grants_it_allows_the_call_without_it(called):
    outcome = called(permissions=[GRANTING])
    assert (outcome.status, outcome.sandbox.network) == ("error", False)
    assert (outcome.decision.action, outcome.decision.layer) == ("allow", "rules")
    failing = "bash -c 'echo \"curl: (6) Could not resolve host: x\" >&2; exit 6'"
    error = called(permissions=[GRANTING], command=failing).error
    assert (error.code, error.hint) == ("sandbox-denied", "`sandbox.network` is `never`, and nothing opens it")


def test_an_answer_that_grants_it_is_not_followed(called):
    outcome = called(answer=ApprovalAnswer(True, grants={"network": True}))
    assert outcome.status == "rejected-by-user"
    assert "`sandbox.network` is `never`" in outcome.error.message
    assert called(answer=True, command="touch made").status == "done"


def test_nothing_runs_where_the_network_cannot_be_closed(called, monkeypatch):
    outcome = called(answer=True, sandbox__mode="off", command="touch made")
    assert (outcome.status, outcome.error.code) == ("error", "bad-config")
    assert "`sandbox.network` is `never`, and this machine cannot close the network" in outcome.error.message
    found = Abilities.from_hello

    def without(hello):
        return found({**hello, "network": False})

    monkeypatch.setattr(Abilities, "from_hello", staticmethod(without))
    assert called(answer=True, command="touch made").error.code == "bad-config"
    assert called(network=False, answer=True, command="touch made").status == "done"


def test_what_runs_in_the_host_itself_goes_on(tmp_path, workspace):
    async def go():
        settings = {"sandbox.network": "never", "sandbox.mode": "off"}
        async with ToolService.open(workspace, home=tmp_path / "home", installed=False, settings=settings) as service:
            return await service.call("list_directory", {"path": "."})

    assert asyncio.run(go()).status == "done"
