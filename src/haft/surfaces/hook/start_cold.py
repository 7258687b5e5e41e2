"""Starts the resident, for `start.py`, which loads this file only if nobody listens at the socket.

The resident must not end with the agent that happened to start it: it gets a session of its own and no terminal, and is
no child of the hook. It tells over a pair of sockets that it listens, or that another one does.
"""

import _socket
import posix
import sys


def start_resident(home: bytes, silence: float, *, is_shell: bool) -> None:
    """Start the resident, and wait until it listens, or has ended. Raises `TimeoutError` if it does neither.
    `is_shell`: the first thing that it is asked is probably about a shell command."""
    ours, its = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_STREAM)
    ours.settimeout(silence)
    if is_shell:
        ours.send(b"s")
    child = posix.fork()
    if child == 0:
        try:
            posix.setsid()
            if posix.fork() == 0:
                become_resident(home, its.fileno())
        finally:
            posix._exit(1)
    its.close()
    posix.waitpid(child, 0)
    while ours.recv(4096):  # It closes its end when it listens, and when it has ended.
        pass
    ours.close()


def become_resident(home: bytes, ready: int) -> None:
    """Replace this process by the resident. `ready` is the descriptor that the resident closes when it listens."""
    null = posix.open("/dev/null", posix.O_RDWR)
    for descriptor in (0, 1, 2):
        posix.dup2(null, descriptor)
    posix.set_inheritable(ready, True)
    # What an agent's configuration put into the environment must not change haft's settings.
    env = {
        name: value
        for name, value in posix.environ.items()
        if not name.startswith((b"HAFT_", b"PYTHON")) or name == b"HAFT_INSIDE"
    }
    env[b"HAFT_HOME"] = home
    words = [sys.executable, "-I", "-m", "haft", "hook", "--resident", "--ready", str(ready)]
    posix.execve(sys.executable, words, env)
