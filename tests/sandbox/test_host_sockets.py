"""Sockets of the host that no longer lie where they were bound, or were bound in a container: out of reach of calls
that nobody approved, whatever they are called; out of reach of approved calls as far as they can be found."""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import uuid

import pytest

pytestmark = [
    pytest.mark.every_user,
    pytest.mark.skipif(sys.platform != "linux", reason="the sandbox is made of Linux"),
]

IS_ROOT = os.geteuid() == 0

CONNECT = """
import socket, sys
end = socket.socket(socket.AF_UNIX)
end.settimeout(2)
end.connect(sys.argv[1])
"""
PAIR = """
import socket, sys
one, other = socket.socketpair(socket.AF_UNIX, getattr(socket, sys.argv[3]))
one.sendto(b"x", sys.argv[1]) if sys.argv[2] == "sendto" else one.connect(sys.argv[1])
one.send(b"x")
"""
LISTEN = """
import os, socket, sys
end = socket.socket(socket.AF_UNIX)
end.bind(sys.argv[1])
os.chmod(sys.argv[1], 0o777)
end.listen()
print("ready", flush=True)
end.accept()
print("heard", flush=True)
"""


@pytest.fixture
def place(host):
    """A directory of the workspace with a name short enough for sockets."""
    found = host.workspace / uuid.uuid4().hex[:6]
    found.mkdir()
    if len(str(found)) > 90:
        pytest.skip(f"{found} is too long a path for a socket")
    yield found
    for path in host.workspace.glob(f"{found.name}*"):
        shutil.rmtree(path)


def renamed(place):
    (place / "bound").rename(place / "now")
    return place / "now"


def linked(place):
    os.link(place / "bound", place / "now")
    (place / "bound").unlink()
    return place / "now"


def in_a_moved_directory(place):
    after = place.with_name(f"{place.name}-after")
    place.rename(after)
    return after / "bound"


@pytest.mark.parametrize("moved", [renamed, linked, in_a_moved_directory])
def test_a_call_that_nobody_approved_reaches_no_socket_whatever_became_of_its_name(moved, host, place, listen, python):
    listener = listen(socket.AF_UNIX, str(place / "bound"))
    command = python(CONNECT, moved(place))
    for code, said in (host.unasked(command), host.asking(command)):
        assert code != 0
        assert "not supported by protocol" in said
    assert not listener.heard()
    host.passes_bare(command)
    assert listener.heard(5)


@pytest.mark.parametrize("kind", ["SOCK_DGRAM", "SOCK_RAW"])
@pytest.mark.parametrize("how", ["sendto", "connect"])
def test_no_end_of_a_pair_is_turned_to_a_socket_of_the_host(how, kind, host, place, listen, python):
    listener = listen(socket.AF_UNIX, str(place / "bound"), socket.SOCK_DGRAM)
    command = python(PAIR, renamed(place), how, kind)
    for code, said in (host.unasked(command), host.asking(command)):
        assert code != 0
        assert "not supported by protocol" in said
    assert not listener.heard()
    host.bare(command)
    assert listener.heard(5)


@pytest.mark.parametrize("kind", ["SOCK_STREAM", "SOCK_SEQPACKET"])
def test_pairs_that_stay_pairs_can_be_had(kind, host, place, python):
    code = f"""
import socket
one, other = socket.socketpair(socket.AF_UNIX, socket.{kind})
one.send(b"through the pair")
print(other.recv(100).decode())
"""
    assert host.unasked(python(code)) == (0, "through the pair\n")
    with socket.socket(socket.AF_UNIX, getattr(socket, kind)) as server:
        server.bind(str(place / "bound"))
        server.listen()
        server.setblocking(False)
        for how in ("sendto", "connect"):
            host.unasked(python(PAIR, place / "bound", how, kind))
        with pytest.raises(BlockingIOError):
            server.accept()


@contextlib.contextmanager
def elsewhere(address, *ahead):
    """Something that listens in namespaces of its own, as containers do."""
    if shutil.which("unshare") is None:
        pytest.skip("unshare is not on this machine")
    new = ["unshare", "--net", *([] if IS_ROOT else ["--user"]), *ahead]
    listening = subprocess.Popen([*new, sys.executable, "-c", LISTEN, str(address)], stdout=subprocess.PIPE, text=True)
    try:
        if listening.stdout.readline() != "ready\n":
            pytest.skip("no such namespaces can be made here")
        yield listening
    finally:
        listening.kill()
        listening.wait()
        listening.stdout.close()


def test_a_call_that_nobody_approved_reaches_no_socket_of_a_container(host, place, python):
    command = python(CONNECT, place / "bound")
    with elsewhere(place / "bound") as listening:
        assert host.unasked(command)[0] != 0
        assert host.asking(command)[0] != 0
        host.passes_bare(command)
        assert listening.stdout.readline() == "heard\n"


@pytest.mark.skipif(not IS_ROOT, reason="only root may look into the namespaces of others")
def test_an_approved_call_of_root_reaches_no_socket_of_a_container(host, python):
    """The container knows the directory by another name than the host does."""
    place = host.place()
    mounted = ["--mount", "sh", "-c", f'mount --bind {place} /mnt && exec "$@"', "sh"]
    command = python(CONNECT, place / "bound")
    host.behind("true", sees_outside=True)  # What is prepared for the next call is so before there is the socket.
    with elsewhere("/mnt/bound", *mounted) as listening:
        for _ in range(2):
            assert host.behind(command, sees_outside=True).exit_code
        host.passes_bare(command)
        assert listening.stdout.readline() == "heard\n"


def test_programs_that_want_sockets_of_the_host_go_on_without(host):
    """Names of users and hosts are looked up through a socket first where there is one, and then by other means."""
    line = "id -un; getent passwd 0 | cut -d: -f3; getent hosts localhost | wc -l"
    assert host.unasked(line) == (0, f"{host.bare('id -un').output}0\n1\n")
