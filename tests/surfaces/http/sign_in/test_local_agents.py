"""An agent on this machine has an agent's rights, also if its program sends the token or the cookie of a person."""

import asyncio
import contextlib
import socket
import subprocess
import sys

import pytest

from haft import Principal
from haft.service import NEVER_FOR_AGENTS, AuditLogFacade, StateHome, Tokens, announce, clients_alive
from haft.surfaces.http.api.problems import Forbidden
from haft.surfaces.http.sign_in import SignIn

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows the processes of connections")

CONNECTING = "import socket, sys; made = socket.create_connection(('127.0.0.1', int(sys.argv[1]))); sys.stdin.read()"


@contextlib.contextmanager
def connected():
    """A program of this user that has connected, and its address as the server sees it."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = str(listening.getsockname()[1])
        with subprocess.Popen([sys.executable, "-c", CONNECTING, port], stdin=subprocess.PIPE) as program:
            accepted, address = listening.accept()
            with accepted:
                yield program.pid, address
                program.stdin.close()


def asked(sign_in, token, address, method="POST"):
    headers = [(b"host", b"127.0.0.1:1"), (b"authorization", f"Bearer {token}".encode())]
    return asyncio.run(sign_in.identity_of({"method": method, "headers": headers, "client": address}))


@pytest.fixture
def sign_in(tmp_path):
    home = StateHome(str(tmp_path))
    home.prepare()
    made = SignIn(home)
    yield made
    made.close()


def test_a_program_of_an_agent_gains_nothing_by_the_token_of_a_person(sign_in, tmp_path):
    token = Tokens(tmp_path).add("olga", Principal("ana"), kind="person", roles=["operator"])[1]
    with connected() as (pid, address):
        before = asked(sign_in, token, address)
        assert (before.kind, before.used_by) == ("person", None) and before.may("answer")
        announced = announce(StateHome(str(tmp_path)), "codex", pid)
        try:
            found = asked(sign_in, token, address)
            assert found.kind == "agent" and f"`codex` (pid {pid})" in found.used_by
            assert not any(found.may(action) for action in NEVER_FOR_AGENTS)
            assert found.principal().kind == "agent"
            assert "`codex`" in Forbidden(found, "answer").message
            asked(sign_in, token, address)
            (entry,) = AuditLogFacade(StateHome(str(tmp_path))).entries()
            assert (entry["type"], entry["who"], entry["command"]) == (
                *("refuse", "codex"),
                "a request with the rights of olga",
            )
            assert asked(sign_in, token, address, "GET").kind == "person"  # Reading approves nothing.
        finally:
            announced.release()


def test_an_agent_is_announced_before_its_first_request_is_answered(sign_in, tmp_path):
    token = Tokens(tmp_path).add("codex", Principal("ana"))[1]
    home = StateHome(str(tmp_path))
    with connected() as (pid, address):
        assert asked(sign_in, token, address).kind == "agent"
        assert [(each.name, each.pid) for each in clients_alive(home)] == [("codex", pid)]
        person = Tokens(tmp_path).add("olga", Principal("ana"), kind="person", roles=["approver"])[1]
        assert not asked(sign_in, person, address).may("answer")
