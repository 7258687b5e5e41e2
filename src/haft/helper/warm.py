"""A program that is kept loaded in a room of its own, and answers one call after another, each from a fork of itself.

    init ── keeper        has loaded what the program needs; stands still but while it forks
      └──── answerer      forked ahead, stands still until its call; a child of init like any command

What the keeper has loaded is foreign code, so it is trusted with nothing: it has no capabilities, sees the workspace
read-only, and is stopped while anything is mounted. Init puts the layer of each call over the workspace and takes it
away again; that works only where nobody holds anything in it any more, the keeper included. The room serves the next
call only after a call that ended by itself, left no process, and whose scratch files could be taken away. Else
everything in it ends, and the host starts another.

What is said between init and keeper, over a socket that the keeper has as descriptor 3: the keeper begins with `ready`,
or with `no` and a reason. To each `fork`, which brings a socket, it forks twice, so that the answerer is init's child,
and says `ready` again. The answerer says `ready` over the new socket, and is sent, as one message, the directory to
work in, with its stdin, stdout and stderr, and where there is one a set of rules to restrict itself by.
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
from haft.helper.init import STREAMS, Everyone, Init
from haft.helper.paths import WrittenFile
from haft.helper.scheduling import scheduling
from haft.helper.supervisor import Supervisor, drain, forget_signals, reap
from haft.helper.words import argv_and_env, never_started, programs, read_request, tell

CHANNEL = 3
MOST_WORDS = 2000
FORK_SECONDS = 10.0
STOP_SECONDS = 5.0
_HARMLESS = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom")
IDLE_TRIES = 20
"""How often it is tried to take a layer away: what a process held is let go a moment after its end."""


def keep(
    init: Init,
    room: jail.Room,
    host: socket.socket,
    wake: int,
    request: dict[str, Any],
    streams: list[int],
    problem: OSError | None,
) -> None:
    """What an init does for a program that is kept loaded."""
    Warm(init, room, host, wake).live(request, streams, problem)


class GivenUp(Exception):
    """Why the room cannot serve calls, or no more of them."""


class Warm:
    """The life of such a room, in its init."""

    def __init__(self, init: Init, room: jail.Room, host: socket.socket, wake: int) -> None:
        self._init = init
        self._room = room
        self._host = host
        self._wake = wake
        self._keeper = 0
        self._is_whole = True
        """Whether nothing happened that the next call could notice; else `_why`."""
        self._why = ""
        self._held = dict.fromkeys("012", os.devnull)
        """What the keeper has open, and nothing else."""
        self._turns = b""
        """How often the keeper had run when the call began."""
        self._scheduling: tuple[Any, ...] = ()
        """How the keeper was scheduled when the program was loaded. This process is out of reach: it has capabilities
        that no call has."""

    def live(self, request: dict[str, Any], streams: list[int], problem: OSError | None) -> None:
        """Load the program, tell the host, and answer calls until it is gone."""
        try:
            if problem is not None or not self._room.has_proc:
                raise GivenUp(f"its room could not be built: {problem or 'there is no /proc'}")
            self._room.put_layers_away()
            keeps = request["sandbox"]["scratch"] is not None
            found = os.listdir(self._room.tmp) if keeps else []
            channel = self._begin(request, streams)
            for descriptor in streams:
                os.close(descriptor)
            self._hear(channel, None)
            if keeps and os.listdir(self._room.tmp) != found:
                raise GivenUp("its libraries leave files in /tmp, where calls have that of their thread")
            before = self._settled()
            ready = self._forked(channel)
            tell(self._host, {"ready": True})
        except (OSError, ValueError, GivenUp) as error:
            tell(self._host, {"failed": str(error)})
            return
        self._serve(channel, ready, before)

    def _serve(self, channel: socket.socket, ready: tuple[socket.socket, int], before: scratch.Inventory) -> None:
        try:
            while (call := self._next_call()) is not None:
                control, streams, request = call
                self._init.take_handed(self._room, request, streams, STREAMS)
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
                if not self._room.has_network:
                    _check_ports()
                ready = self._forked(channel)
        except (OSError, ValueError, GivenUp) as error:
            tell(self._host, {"failed": str(error)})
        finally:
            self._refuse_waiting()

    @property
    def _scratch(self) -> int:
        assert self._room.scratch is not None
        return self._room.scratch

    def _begin(self, request: dict[str, Any], streams: list[int]) -> socket.socket:
        """Start the keeper, held to everything that a call is held to but for the layer that it has not yet."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._keeper = os.fork()
        if self._keeper == 0:
            try:
                self._become(request, streams, theirs.fileno())
            finally:
                os._exit(127)
        self._init.go_last()
        self._held["3"] = f"socket:[{os.fstat(theirs.fileno()).st_ino}]"
        theirs.close()
        return ours

    def _become(self, request: dict[str, Any], streams: list[int], channel: int) -> NoReturn:
        argv, env = argv_and_env(request)
        os.setsid()
        forget_signals()
        os.chdir(os.fsencode(request["directory"]))
        keeps = request["sandbox"]["scratch"] is not None
        self._init.restrict(self._room, request, self._room.outside(keeps=keeps))
        kept = [os.dup(descriptor) for descriptor in (*streams, channel)]  # None of them where another is to go.
        kept = [_raised(descriptor) for descriptor in kept]
        for target, descriptor in enumerate(kept):
            os.dup2(descriptor, target)
        for program in programs(argv[0], env):
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                os.execve(program, argv, env)  # noqa: S606  held to everything by now
        raise FileNotFoundError(argv[0])

    def _settled(self) -> scratch.Inventory:
        """What there is when the program is loaded: that is what every call finds."""
        if Everyone(frozenset({self._keeper})).pids():
            raise GivenUp("it starts other processes when it is loaded")
        _check_segments()
        self._check_held()
        self._scheduling = scheduling(self._keeper)
        return scratch.inventory(self._scratch)

    def _check_held(self) -> None:
        """That one call cannot leave anything to another by what all of them come from: it looked after that itself,
        but whoever it loaded may have deceived it."""
        place = f"/proc/{self._keeper}/fd"
        held = {name: os.readlink(f"{place}/{name}") for name in os.listdir(place)}
        if any(found != self._held.get(name) and found not in _HARMLESS for name, found in held.items()):
            raise GivenUp("its libraries keep files or sockets open")
        with open(f"/proc/{self._keeper}/maps", "rb") as file:
            if any(line.split(b" ", 2)[1][1::2] == b"ws" for line in file):
                raise GivenUp("its libraries share memory with what is forked")

    def _forked(self, channel: socket.socket) -> tuple[socket.socket, int]:
        """The next answerer, standing still."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        os.kill(self._keeper, signal.SIGCONT)
        socket.send_fds(channel, [b"fork"], [theirs.fileno()])
        theirs.close()
        self._hear(ours, time.monotonic() + FORK_SECONDS)
        self._hear(channel, time.monotonic() + FORK_SECONDS)
        pid = self._only_one()
        for each in (self._keeper, pid):
            self._stop(each)
        self._check_stillness(pid)
        with contextlib.suppress(PermissionError):  # An ordinary user's cannot be looked into once it closed itself.
            self._check_held()
        return ours, pid

    def _check_stillness(self, *answerers: int) -> None:
        """Nobody moves but us, and nobody is left who could wake the others. One of two that run could wake the other
        and stop itself while they are looked at, so that the first is looked at again. Both are scheduled as ever: what
        is forked inherits that."""
        among = self._keeper, *answerers
        if set(Everyone().pids()) != set(among) or any(_state(each) != "T" for each in (*among, *among)):
            raise GivenUp("it does not stand still")
        if any(scheduling(each) != self._scheduling for each in among):
            raise GivenUp("it is scheduled otherwise than when it was loaded")

    def _only_one(self) -> int:
        """The answerer. The process between it and the keeper is gone a moment later."""
        until = time.monotonic() + STOP_SECONDS
        everyone = Everyone(frozenset({self._keeper}))
        while len(found := everyone.pids()) != 1:
            if time.monotonic() > until:
                raise GivenUp("it did not fork as it was told to")
            time.sleep(0.0005)
        if _parent(found[0]) != 1:
            raise GivenUp("it did not fork as it was told to")
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

    def _hear(self, end: socket.socket, until: float | None) -> None:
        """Wait for `ready`, as long as the host and the keeper are there."""
        sources = [end.fileno(), self._wake, self._host.fileno()]
        while True:
            patience = None if until is None else max(0.0, until - time.monotonic())
            found, _, _ = select.select(sources, [], [], patience)
            if end.fileno() in found:
                words = end.recv(MOST_WORDS)
                if words == b"ready":
                    return
                why = words.decode("utf-8", "replace").removeprefix("no ")
                raise GivenUp(why or "it ended when it was loaded")
            if self._host.fileno() in found:
                if not self._host.recv(1, socket.MSG_PEEK):
                    raise GivenUp("the host is gone")
                sources.pop()  # The next call waits already.
            if self._wake in found:
                drain(self._wake)
                ended, _left = reap()
                if self._keeper in ended:
                    raise GivenUp(f"it ended with {os.waitstatus_to_exitcode(ended[self._keeper])} when it was loaded")
            elif not found:
                raise GivenUp("it did not fork in time")

    def _next_call(self) -> tuple[socket.socket, list[int], dict[str, Any]] | None:
        """The next call; None when the host wants no more, or the keeper is gone."""
        while True:
            found, _, _ = select.select([self._host.fileno(), self._wake], [], [])
            if self._wake in found:
                drain(self._wake)
                ended, _left = reap()
                if ended:
                    return None
            if self._host.fileno() in found:
                taken = self._taken()
                if taken is None:
                    return None
                with contextlib.suppress(EOFError):
                    return *taken, read_request(taken[0])
                _close(taken)

    def _taken(self) -> tuple[socket.socket, list[int]] | None:
        message, descriptors, _, _ = socket.recv_fds(self._host, 1, 3 + STREAMS)
        if not message or len(descriptors) < 1 + STREAMS:
            return None
        for descriptor in descriptors:
            os.set_inheritable(descriptor, False)  # `recv_fds` drops MSG_CMSG_CLOEXEC in some Pythons.
        return socket.socket(fileno=descriptors[0]), descriptors[1:]

    def _refuse_waiting(self) -> None:
        """A call that came when it was over is told so, and taken elsewhere."""
        with contextlib.suppress(OSError):
            self._host.shutdown(socket.SHUT_RD)
            self._host.setblocking(False)
            while (taken := self._taken()) is not None:
                tell(taken[0], {"stale": True})
                _close(taken)

    def _answer(
        self, control: socket.socket, streams: list[int], request: dict[str, Any], end: socket.socket, pid: int
    ) -> None:
        """One call, from its layer to the last word."""
        self._is_whole = False
        try:
            if not self._init.open_up(self._room, request):
                tell(control, {"stale": True})
                return
            rules = self._init.rules(self._room, request["sandbox"])
            self._turns = _turns(self._keeper)
            os.kill(pid, signal.SIGCONT)
            socket.send_fds(end, [os.fsencode(request["directory"])], [*streams, *([] if rules is None else [rules])])
            if rules is not None:
                os.close(rules)
        except WrittenFile as error:
            tell(control, {"replaced": error.filename})
            return
        except (OSError, ValueError) as error:
            tell(control, never_started([None, f"the sandbox around it could not be built: {error}"]))
            return
        finally:
            end.close()
        self._init.carry(control, pid, request, self._room, self._wake, frozenset({self._keeper}), self._over)

    def _over(self, supervisor: Supervisor) -> dict[str, Any]:
        """Whether the room can serve another call. Else nothing of it is left when the host hears of that."""
        if supervisor.kill_at is not None or supervisor.hit is not None:
            self._why = "a call was ended, or left processes behind"
        elif _turns(self._keeper) != self._turns:
            self._why = "a call woke what it was forked from"
        elif scheduling(self._keeper) != self._scheduling:
            self._why = "a call changed how what it was forked from is scheduled"
        else:
            self._is_whole = self._layer_is_gone()
        if not self._is_whole:
            with contextlib.suppress(OSError):
                os.kill(-1, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                while True:
                    os.waitpid(-1, 0)
        return {"kept": self._is_whole}

    def _layer_is_gone(self) -> bool:
        for _ in range(IDLE_TRIES):
            try:
                self._room.close_again()
            except OSError as error:
                self._why = f"something in the workspace is still held: {error}"
                time.sleep(0.0005)
            else:
                return True
        return False


def _close(taken: tuple[socket.socket, list[int]]) -> None:
    taken[0].close()
    for descriptor in taken[1]:
        os.close(descriptor)


def _raised(descriptor: int) -> int:
    """The same above those that programs are handed."""
    import fcntl

    return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, CHANNEL + 1)


def _parent(pid: int) -> int:
    with open(f"/proc/{pid}/stat", "rb") as file:
        return int(file.read().rsplit(b")", 1)[1].split()[1])


def _state(pid: int) -> str:
    with open(f"/proc/{pid}/stat", "rb") as file:
        return file.read().rsplit(b")", 1)[1].split()[0].decode()


def _turns(pid: int) -> bytes:
    """What tells whether a process ran meanwhile, or was sent a signal that it has yet to see."""
    try:
        with open(f"/proc/{pid}/status", "rb") as file:
            return b"".join(line for line in file if line.startswith(_OF_TURNS))
    except OSError:
        return b"gone"


_OF_TURNS = (b"SigPnd", b"ShdPnd", b"voluntary_ctxt", b"nonvoluntary_ctxt")


def _check_segments() -> None:
    """Memory that outlives processes would be there for the next call too."""
    for kind in ("shm", "sem", "msg"):
        with contextlib.suppress(FileNotFoundError), open(f"/proc/sysvipc/{kind}", "rb") as file:
            if file.read().count(b"\n") > 1:
                raise GivenUp("it left memory behind that outlives processes")


def _check_ports() -> None:
    """So would be a port that the kernel keeps for a while, in a network that only this room has."""
    for kind in ("tcp", "tcp6"):
        with contextlib.suppress(FileNotFoundError), open(f"/proc/net/{kind}", "rb") as file:
            if file.read().count(b"\n") > 1:
                raise GivenUp("it left connections behind")
