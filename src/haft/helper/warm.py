"""Keeps a program loaded in its own sandbox. The program serves one call after another, each in a fork.

    init ── keeper        has loaded the program's libraries; is stopped except while it forks
      └──── answerer      forked ahead and stopped until its call; a child of init like any command

The keeper has loaded foreign code, so init does not trust it: the keeper has no capabilities, sees the workspace
read-only, and is stopped while anything is mounted. Init mounts the layer of each call over the workspace and unmounts
it afterwards, which works only if no process, the keeper included, has anything open in it. The sandbox serves another
call only if the last call ended by itself, left no process, and its scratch files could be removed. If not, everything
in the sandbox ends, and the host starts another sandbox.

Init and keeper talk over a socket, which is descriptor 3 of the keeper. The keeper first sends `ready`, or `no` and a
reason. For each `fork`, which comes with a socket, it forks twice, so that the answerer becomes a child of init, and
sends `ready` again. The answerer sends `ready` over the new socket. It then gets one message with its working
directory, its stdin, stdout and stderr, and, if there are any, the Landlock rules with which it restricts itself.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import time
from typing import Any, NoReturn

from haft.helper import jail, scratch
from haft.helper.init import STREAMS, Init, NamespaceProcesses
from haft.helper.paths import Replaced
from haft.helper.protocol import argv_and_env, never_started, programs, read_request, send_report
from haft.helper.scheduling import scheduling
from haft.helper.supervisor import Supervisor, drain, forget_signals, reap

CHANNEL = 3
MAX_WORDS = 2000
FORK_SECONDS = 10.0
STOP_SECONDS = 5.0
_HARMLESS = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom")
IDLE_TRIES = 20
"""How often init tries to unmount a layer: the kernel closes the files of a process a moment after its end."""


def run_warm(
    init: Init,
    sandbox: jail.CallSandbox,
    host: socket.socket,
    wake: int,
    request: dict[str, Any],
    streams: list[int],
    problem: OSError | None,
) -> None:
    """In this init, keep a program loaded and serve calls with it."""
    WarmRunner(init, sandbox, host, wake).live(request, streams, problem)


class GivenUp(Exception):
    """The sandbox cannot serve calls, or cannot serve more calls; the message says why."""


class WarmRunner:
    """Loads a program in a process, the keeper, and serves each call with a fork of the keeper, the answerer."""

    def __init__(self, init: Init, sandbox: jail.CallSandbox, host: socket.socket, wake: int) -> None:
        self._init = init
        self._sandbox = sandbox
        self._host = host
        self._wake = wake
        self._keeper = 0
        self._is_whole = True
        """Whether the last call left nothing that the next one could notice; if not, `_why` says what."""
        self._why = ""
        self._held = dict.fromkeys("012", os.devnull)
        """The only descriptors that the keeper may have open."""
        self._run_counters = b""
        """The run counters of the keeper when the call began."""
        self._scheduling: tuple[Any, ...] = ()
        """The scheduling of the keeper when the program was loaded. Calls cannot change the scheduling of init, which
        has more capabilities than they have."""

    def live(self, request: dict[str, Any], streams: list[int], problem: OSError | None) -> None:
        """Load the program, report to the host, and serve calls until the host is gone."""
        try:
            if problem is not None or not self._sandbox.has_proc:
                raise GivenUp(f"its sandbox could not be built: {problem or 'there is no /proc'}")
            self._sandbox.detach_layers()
            keeps = request["sandbox"]["scratch"] is not None
            found = os.listdir(self._sandbox.tmp) if keeps else []
            channel = self._begin(request, streams)
            for descriptor in streams:
                os.close(descriptor)
            self._wait_for_ready(channel, None)
            if keeps and os.listdir(self._sandbox.tmp) != found:
                raise GivenUp("its libraries leave files in /tmp, but its calls see the /tmp of their thread")
            before = self._check_loaded()
            ready = self._fork_answerer(channel)
            send_report(self._host, {"ready": True})
        except (OSError, ValueError, GivenUp) as error:
            send_report(self._host, {"failed": str(error)})
            return
        self._serve(channel, ready, before)

    def _serve(self, channel: socket.socket, ready: tuple[socket.socket, int], before: scratch.Inventory) -> None:
        try:
            while (call := self._next_call()) is not None:
                control, streams, request = call
                self._init.take_descriptors(self._sandbox, request, streams, STREAMS)
                try:
                    self._answer(control, streams, request, *ready)
                finally:
                    for descriptor in streams:
                        os.close(descriptor)
                    control.close()
                if not self._is_whole:
                    raise GivenUp(self._why)
                scratch.restore(self._scratch, before)
                _check_segments()
                if not self._sandbox.has_network:
                    _check_ports()
                ready = self._fork_answerer(channel)
        except (OSError, ValueError, GivenUp) as error:
            send_report(self._host, {"failed": str(error)})
        finally:
            self._refuse_waiting()

    @property
    def _scratch(self) -> int:
        assert self._sandbox.scratch is not None
        return self._sandbox.scratch

    def _begin(self, request: dict[str, Any], streams: list[int]) -> socket.socket:
        """Start the keeper, with the same restrictions as a call, but without a layer. Returns the socket to the
        keeper."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._keeper = os.fork()
        if self._keeper == 0:
            try:
                self._become(request, streams, theirs.fileno())
            finally:
                os._exit(127)
        self._init.be_killed_last()
        self._held["3"] = f"socket:[{os.fstat(theirs.fileno()).st_ino}]"
        theirs.close()
        return ours

    def _become(self, request: dict[str, Any], streams: list[int], channel: int) -> NoReturn:
        argv, env = argv_and_env(request)
        os.setsid()
        forget_signals()
        os.chdir(os.fsencode(request["directory"]))
        keeps = request["sandbox"]["scratch"] is not None
        self._init.restrict(self._sandbox, request, self._sandbox.outside(keeps=keeps))
        # First copy the descriptors to numbers above all targets, so that no copy overwrites a descriptor that is still
        # needed.
        sources = [os.dup(descriptor) for descriptor in (*streams, channel)]
        sources = [_duplicate_above(descriptor) for descriptor in sources]
        for target, descriptor in enumerate(sources):
            os.dup2(descriptor, target)
        for program in programs(argv[0], env):
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                os.execve(program, argv, env)  # noqa: S606  the process is restricted by now
        raise FileNotFoundError(argv[0])

    def _check_loaded(self) -> scratch.Inventory:
        """Check the loaded program, and return the inventory of scratch files that every call will find."""
        if NamespaceProcesses(frozenset({self._keeper})).pids():
            raise GivenUp("it starts other processes when it is loaded")
        _check_segments()
        self._check_held()
        self._scheduling = scheduling(self._keeper)
        return scratch.inventory(self._scratch)

    def _check_held(self) -> None:
        """Check that one call cannot pass anything to another through the keeper. The keeper checked this itself, but
        the code that it loaded may have deceived it."""
        place = f"/proc/{self._keeper}/fd"
        held = {name: os.readlink(f"{place}/{name}") for name in os.listdir(place)}
        if any(found != self._held.get(name) and found not in _HARMLESS for name, found in held.items()):
            raise GivenUp("its libraries keep files or sockets open")
        with open(f"/proc/{self._keeper}/maps", "rb") as file:
            if any(line.split(b" ", 2)[1][1::2] == b"ws" for line in file):
                raise GivenUp("its libraries share memory with forked processes")

    def _fork_answerer(self, channel: socket.socket) -> tuple[socket.socket, int]:
        """Have the keeper fork the next answerer, and stop both. Returns the socket to the answerer, and its pid."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        os.kill(self._keeper, signal.SIGCONT)
        socket.send_fds(channel, [b"fork"], [theirs.fileno()])
        theirs.close()
        self._wait_for_ready(ours, time.monotonic() + FORK_SECONDS)
        self._wait_for_ready(channel, time.monotonic() + FORK_SECONDS)
        pid = self._only_one()
        for each in (self._keeper, pid):
            self._stop(each)
        self._check_stillness(pid)
        with contextlib.suppress(PermissionError):  # An ordinary user may not read an undumpable keeper.
            self._check_held()
        return ours, pid

    def _check_stillness(self, *answerers: int) -> None:
        """Check that keeper and answerers are the only processes, that all are stopped, and that their scheduling is
        unchanged, since forks inherit it. Each is checked twice: a process could wake another that was checked already,
        and then stop itself."""
        among = self._keeper, *answerers
        if set(NamespaceProcesses().pids()) != set(among) or any(_state(each) != "T" for each in (*among, *among)):
            raise GivenUp("its processes could not be stopped")
        if any(scheduling(each) != self._scheduling for each in among):
            raise GivenUp("its scheduling changed since it was loaded")

    def _only_one(self) -> int:
        """The pid of the answerer. Waits until the process between the keeper and the answerer has ended."""
        until = time.monotonic() + STOP_SECONDS
        processes = NamespaceProcesses(frozenset({self._keeper}))
        while len(found := processes.pids()) != 1:
            if time.monotonic() > until:
                raise GivenUp("it did not fork as it should")
            time.sleep(0.0005)
        if _parent(found[0]) != 1:
            raise GivenUp("it did not fork as it should")
        return found[0]

    def _stop(self, pid: int) -> None:
        os.kill(pid, signal.SIGSTOP)
        until = time.monotonic() + STOP_SECONDS
        while time.monotonic() < until:
            changed, status = os.waitpid(pid, os.WUNTRACED | os.WNOHANG)
            if changed:
                if os.WIFSTOPPED(status):
                    return
                break
            time.sleep(0.0001)
        raise GivenUp("it ended, or cannot be stopped")

    def _wait_for_ready(self, end: socket.socket, until: float | None) -> None:
        """Wait for the message `ready` on the socket `end`. Raises `GivenUp` if another message comes, if the host or
        the keeper has ended, or at the time `until`."""
        sources = [end.fileno(), self._wake, self._host.fileno()]
        while True:
            patience = None if until is None else max(0.0, until - time.monotonic())
            found, _, _ = select.select(sources, [], [], patience)
            if end.fileno() in found:
                words = end.recv(MAX_WORDS)
                if words == b"ready":
                    return
                why = words.decode("utf-8", "replace").removeprefix("no ")
                raise GivenUp(why or "it ended while it was loaded")
            if self._host.fileno() in found:
                if not self._host.recv(1, socket.MSG_PEEK):
                    raise GivenUp("the host is gone")
                sources.pop()  # The next call is waiting already.
            if self._wake in found:
                drain(self._wake)
                ended, _left = reap()
                if self._keeper in ended:
                    raise GivenUp(f"it ended with {os.waitstatus_to_exitcode(ended[self._keeper])} while it was loaded")
            elif not found:
                raise GivenUp("it did not fork in time")

    def _next_call(self) -> tuple[socket.socket, list[int], dict[str, Any]] | None:
        """The next call; None if the host closed the socket, or the keeper is gone."""
        while True:
            found, _, _ = select.select([self._host.fileno(), self._wake], [], [])
            if self._wake in found:
                drain(self._wake)
                ended, _left = reap()
                if ended:
                    return None
            if self._host.fileno() in found:
                taken = self._receive_call()
                if taken is None:
                    return None
                with contextlib.suppress(EOFError):
                    return *taken, read_request(taken[0])
                _close(taken)

    def _receive_call(self) -> tuple[socket.socket, list[int]] | None:
        message, descriptors, _, _ = socket.recv_fds(self._host, 1, 4 + STREAMS)
        if not message or len(descriptors) < 1 + STREAMS:
            return None
        for descriptor in descriptors:
            os.set_inheritable(descriptor, False)  # `recv_fds` drops MSG_CMSG_CLOEXEC in some Pythons.
        return socket.socket(fileno=descriptors[0]), descriptors[1:]

    def _refuse_waiting(self) -> None:
        """Report `stale` to calls that came too late, so that the host runs them in another sandbox."""
        with contextlib.suppress(OSError):
            self._host.shutdown(socket.SHUT_RD)
            self._host.setblocking(False)
            while (taken := self._receive_call()) is not None:
                send_report(taken[0], {"stale": True})
                _close(taken)

    def _answer(
        self, control: socket.socket, streams: list[int], request: dict[str, Any], end: socket.socket, pid: int
    ) -> None:
        """Run one call, from mounting its layer to sending its report."""
        self._is_whole = False
        try:
            if not self._init.open_for_call(self._sandbox, request):
                send_report(control, {"stale": True})
                return
            rules = self._init.rules(self._sandbox, request["sandbox"])
            self._run_counters = _run_counters(self._keeper)
            os.kill(pid, signal.SIGCONT)
            socket.send_fds(end, [os.fsencode(request["directory"])], [*streams, *([] if rules is None else [rules])])
            if rules is not None:
                os.close(rules)
        except Replaced as error:
            send_report(control, {"replaced": error.filename})
            return
        except (OSError, ValueError) as error:
            send_report(control, never_started([None, f"the sandbox around it could not be built: {error}"]))
            return
        finally:
            end.close()
        self._init.supervise_call(
            control, pid, request, self._sandbox, self._wake, frozenset({self._keeper}), self._finish_call
        )

    def _finish_call(self, supervisor: Supervisor) -> dict[str, Any]:
        """Find out whether the sandbox can serve another call. If not, kill all processes in the sandbox before the
        report is sent. Returns a field for the report: `kept`, which is True if the sandbox can serve another call."""
        if supervisor.kill_at is not None or supervisor.hit is not None:
            self._why = "a call was killed, or left processes behind"
        elif _run_counters(self._keeper) != self._run_counters:
            self._why = "a call woke the process that it was forked from"
        elif scheduling(self._keeper) != self._scheduling:
            self._why = "a call changed the scheduling of the process that it was forked from"
        else:
            self._is_whole = self._remove_layer()
        if not self._is_whole:
            with contextlib.suppress(OSError):
                os.kill(-1, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                while True:
                    os.waitpid(-1, 0)
        return {"kept": self._is_whole}

    def _remove_layer(self) -> bool:
        for _ in range(IDLE_TRIES):
            try:
                self._sandbox.close_after_call()
            except OSError as error:
                self._why = f"a file in the workspace is still open: {error}"
                time.sleep(0.0005)
            else:
                return True
        return False


def _close(taken: tuple[socket.socket, list[int]]) -> None:
    taken[0].close()
    for descriptor in taken[1]:
        os.close(descriptor)


def _duplicate_above(descriptor: int) -> int:
    """A duplicate of the descriptor, with a number above 3: the program gets its own descriptors as numbers 0 to 3."""
    import fcntl

    return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, CHANNEL + 1)


def _parent(pid: int) -> int:
    with open(f"/proc/{pid}/stat", "rb") as file:
        return int(file.read().rsplit(b")", 1)[1].split()[1])


def _state(pid: int) -> str:
    with open(f"/proc/{pid}/stat", "rb") as file:
        return file.read().rsplit(b")", 1)[1].split()[0].decode()


def _run_counters(pid: int) -> bytes:
    """The lines of a process's `/proc/PID/status` that change when the process runs or a signal is pending for it."""
    try:
        with open(f"/proc/{pid}/status", "rb") as file:
            return b"".join(line for line in file if line.startswith(_COUNTER_LINES))
    except OSError:
        return b"gone"


_COUNTER_LINES = (b"SigPnd", b"ShdPnd", b"voluntary_ctxt", b"nonvoluntary_ctxt")


def _check_segments() -> None:
    """Check that no System V objects are left: they outlive processes, and the next call would find them."""
    for kind in ("shm", "sem", "msg"):
        with contextlib.suppress(FileNotFoundError), open(f"/proc/sysvipc/{kind}", "rb") as file:
            if file.read().count(b"\n") > 1:
                raise GivenUp("it left System V memory, semaphores or messages behind")


def _check_ports() -> None:
    """Check that no connections are left: the kernel keeps their ports for a while, in this sandbox's own network."""
    for kind in ("tcp", "tcp6"):
        with contextlib.suppress(FileNotFoundError), open(f"/proc/net/{kind}", "rb") as file:
            if file.read().count(b"\n") > 1:
                raise GivenUp("it left connections behind")
