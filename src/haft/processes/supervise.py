"""The helper program: starts commands for a host and makes sure that nothing of them outlives their call.

Run by path with `python -I -S`, it knows nothing of haft and imports little, so that it starts quickly and forks
cheaply whatever the size of the host. It is reached over two kinds of socket:

- One from the host to the helper. Each message brings five descriptors: the call's control socket, its stdin, stdout,
  stderr and working directory. The helper forks a supervisor for each. When the host ends this socket, it ends.
- One control socket a call. The host sends the request (four bytes of length, then JSON), later perhaps `T` (end it:
  TERM, then KILL after a grace). The supervisor answers with one line of JSON when nothing of the call is left. When
  the host dies, the socket closes and the supervisor kills everything at once.

A supervisor is a subreaper: daemons that fork twice and leave their session become its children all the same. A
command that kills its own supervisor hands its children to the helper, which is a subreaper too and kills them.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import signal
import socket
import sys
import time

PR_SET_CHILD_SUBREAPER = 36
POLL_SECONDS = 0.02
LEFTOVER_GRACE = 0.2
"""Seconds between TERM and KILL for what a command left behind when it ended by itself."""
NAMING_SECONDS = 0.05
GIVE_UP_SECONDS = 5.0
"""How long a process may resist KILL (uninterruptible sleep, another user's) before it is reported as left."""


def become_subreaper() -> None:
    """Orphans below this process become its children, not init's."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


def wake_on_children() -> int:
    """A descriptor that becomes readable when a child changes state."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    os.set_blocking(writing, False)
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    return reading


def drain(descriptor: int) -> None:
    """Forget what woke us."""
    with contextlib.suppress(BlockingIOError):
        while os.read(descriptor, 512):
            pass


def reap(options: int = 0) -> tuple[dict[int, int], bool]:
    """The children that ended, with their wait status, and whether any are left. With `WUNTRACED` as option, those that
    were stopped are killed: a supervisor that stands still watches over nothing."""
    ended: dict[int, int] = {}
    try:
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG | options)
            if pid == 0:
                return ended, True
            if os.WIFSTOPPED(status):
                send_signal([pid], signal.SIGKILL)
            else:
                ended[pid] = status
    except ChildProcessError:
        return ended, False


def parents() -> dict[int, int]:
    """Every process of the machine and its parent."""
    table = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError), open(f"/proc/{name}/stat", "rb") as file:
                # The command's name stands in parentheses and may hold anything: split after the last one.
                table[int(name)] = int(file.read().rsplit(b")", 1)[1].split()[1])
    return table


def descendants(root: int, spared: frozenset[int] = frozenset()) -> list[int]:
    """Everything below `root`, but for the `spared` and what is below them."""
    children: dict[int, list[int]] = {}
    for pid, parent in parents().items():
        children.setdefault(parent, []).append(pid)
    found, waiting = [], [root]
    while waiting:
        for pid in children.get(waiting.pop(), ()):
            if pid not in spared:
                found.append(pid)
                waiting.append(pid)
    return found


def command_of(pid: int) -> str:
    """What a process calls itself, for people."""
    with contextlib.suppress(OSError):
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            line = file.read(400).replace(b"\0", b" ").strip()
        if not line:
            with open(f"/proc/{pid}/comm", "rb") as file:
                line = b"[" + file.read(64).strip() + b"]"
        return line.decode("utf-8", "replace")
    return ""


def send_signal(pids: list[int], number: int) -> None:
    """Signal each; those that are gone or not ours are passed over."""
    for pid in pids:
        with contextlib.suppress(OSError):
            os.kill(pid, number)


def bytes_of(text: str) -> bytes:
    """Text from the host as the bytes it stands for."""
    return text.encode("utf-8", "surrogateescape")


def become(request: dict[str, object], descriptors: list[int], directory: int) -> None:
    """In the child: own session, clean signals, the three streams, the directory, then the command."""
    argv = [bytes_of(str(word)) for word in request["argv"]]  # type: ignore[attr-defined]
    env = {bytes_of(key): bytes_of(value) for key, value in request["env"].items()}  # type: ignore[attr-defined]
    os.setsid()
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        # What the host ignores, its tools would ignore too, TERM included.
        if signal.getsignal(number) is not signal.SIG_DFL:
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    os.fchdir(directory)
    for target, descriptor in enumerate(descriptors):
        os.dup2(descriptor, target)
    os.execvpe(argv[0], argv, env)  # noqa: S606  this is the one place for it


def start(request: dict[str, object], descriptors: list[int], directory: int) -> tuple[int, list[object] | None]:
    """Fork and exec. The pid, and what failed where it did."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(reading)
            become(request, descriptors, directory)
        except BaseException as error:
            number = error.errno if isinstance(error, OSError) else None
            os.write(writing, json.dumps([number, f"{error}"]).encode())
        finally:
            os._exit(127)
    os.close(writing)
    # Exec closes the pipe. A command that cannot be executed says why instead.
    with open(reading, "rb") as pipe:
        complaint = pipe.read()
    return pid, json.loads(complaint) if complaint else None


class Supervisor:
    """One call: its command, everything below it, and how it ends."""

    def __init__(self, control: socket.socket, main: int) -> None:
        self.control = control
        self.main = main
        self.name = command_of(main)
        self.status: int | None = None
        self.ended: dict[int, str] = {}
        self.kill_at: float | None = None
        """When TERM has had its chance; None while the command may run."""
        self.give_up_at = 0.0

    def terminate(self, grace: float) -> None:
        """TERM everything, and set the time for KILL."""
        if self.kill_at is None or self.kill_at > time.monotonic() + grace:
            self.kill_at = time.monotonic() + grace
            self.give_up_at = self.kill_at + GIVE_UP_SECONDS
        pids = self.others_named()
        send_signal(pids, signal.SIGTERM)
        send_signal(pids, signal.SIGCONT)

    def let_them_exec(self) -> None:
        """What was forked a moment ago still bears the command's own name: give it a moment to become what it is."""
        until = time.monotonic() + NAMING_SECONDS
        while any(command_of(pid) == self.name for pid in descendants(os.getpid())) and time.monotonic() < until:
            time.sleep(0.002)

    def others_named(self) -> list[int]:
        """Everything below us; what is not the command itself is remembered by name."""
        pids = descendants(os.getpid())
        for pid in pids:
            if pid != self.main and pid not in self.ended:
                self.ended[pid] = command_of(pid)
        return pids

    def kill(self) -> None:
        # Stopped first, so that a tree that forks as fast as we kill loses the race.
        pids = self.others_named()
        send_signal(pids, signal.SIGSTOP)
        send_signal(pids, signal.SIGKILL)

    def told(self) -> bool:
        """Read what the host says. False when it is gone."""
        try:
            words = self.control.recv(64)
        except (BlockingIOError, InterruptedError):
            return True
        except OSError:
            return False
        if not words:
            return False
        self.terminate(grace=1.0)
        return True

    def watch(self, wake: int) -> list[int]:
        """Until nothing is left. What could not be killed, where that happened."""
        host_is_there = True
        while True:
            ended, any_left = reap()
            if self.main in ended:
                self.status = ended[self.main]
            if not any_left:
                return []
            now = time.monotonic()
            if self.status is not None and self.kill_at is None:
                self.let_them_exec()
                self.terminate(LEFTOVER_GRACE)
            if self.kill_at is not None and now >= self.kill_at:
                self.kill()
                if now >= self.give_up_at:
                    return descendants(os.getpid())
            sources = [wake, self.control.fileno()] if host_is_there else [wake]
            ready, _, _ = select.select(sources, [], [], None if self.kill_at is None else POLL_SECONDS)
            if wake in ready:
                drain(wake)
            if self.control.fileno() in ready and not self.told():
                host_is_there = False
                self.terminate(grace=0.0)


def read_exactly(control: socket.socket, size: int) -> bytes:
    """So many bytes, or `EOFError` when the host is gone."""
    data = b""
    while len(data) < size:
        part = control.recv(min(size - len(data), 1 << 20))
        if not part:
            raise EOFError
        data += part
    return data


def supervise(control: socket.socket, descriptors: list[int], directory: int) -> None:
    """The life of one supervisor, from the request to the last word."""
    become_subreaper()
    wake = wake_on_children()
    try:
        request = json.loads(read_exactly(control, int.from_bytes(read_exactly(control, 4), "big")))
    except (EOFError, OSError):
        return  # The host changed its mind before it said what to run.
    pid, complaint = start(request, descriptors, directory)
    for descriptor in (*descriptors, directory):
        os.close(descriptor)
    supervisor = Supervisor(control, pid)
    left = supervisor.watch(wake)
    report: dict[str, object] = {
        "failed": complaint,
        "status": 0 if supervisor.status is None else os.waitstatus_to_exitcode(supervisor.status),
        "ended": [[pid, name] for pid, name in supervisor.ended.items() if pid not in left],
        "left": [[pid, command_of(pid)] for pid in left],
    }
    with contextlib.suppress(OSError):
        control.setblocking(True)
        control.sendall(json.dumps(report).encode() + b"\n")


def serve(server: socket.socket) -> None:
    """The helper: a supervisor for every message, until the host ends the socket."""
    become_subreaper()
    wake = wake_on_children()
    supervisors: set[int] = set()
    hunt_until = 0.0
    while True:
        ready, _, _ = select.select([server.fileno(), wake], [], [], POLL_SECONDS if hunt_until else None)
        if wake in ready:
            drain(wake)
            ended, _ = reap(os.WUNTRACED)
            if any(status != 0 for pid, status in ended.items() if pid in supervisors):
                hunt_until = time.monotonic() + GIVE_UP_SECONDS
            supervisors.difference_update(ended)
        if hunt_until:
            # A command killed its supervisor. What that watched over has become ours: again until nothing is left, as
            # it may fork meanwhile.
            strays = descendants(os.getpid(), frozenset(supervisors))
            send_signal(strays, signal.SIGSTOP)
            send_signal(strays, signal.SIGKILL)
            if not strays or time.monotonic() >= hunt_until:
                hunt_until = 0.0
        if server.fileno() not in ready:
            continue
        message, descriptors, _, _ = socket.recv_fds(server, 1, 5)
        if not message:
            return
        for descriptor in descriptors:
            os.set_inheritable(descriptor, False)  # `recv_fds` drops MSG_CMSG_CLOEXEC in some Pythons.
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                server.close()
                os.close(wake)
                supervise(socket.socket(fileno=descriptors[0]), descriptors[1:4], descriptors[4])
                code = 0
            finally:
                os._exit(code)
        supervisors.add(pid)
        for descriptor in descriptors:
            os.close(descriptor)


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
