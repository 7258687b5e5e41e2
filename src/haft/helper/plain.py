"""The helper that starts commands without namespaces: if the sandbox is off, or this machine cannot build one.

The host sends one message per call, with five descriptors: the call's control socket, its stdin, stdout, stderr and
working directory. The helper forks a supervisor for each call. The supervisor is a subreaper: even daemons that fork
twice and leave their session become its children. If a command kills its own supervisor, the processes of the command
become children of the helper, which is a subreaper too and kills them. When the host closes the socket, the helper
ends; each supervisor ends with its call.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import select
import signal
import socket
import sys
import time
from typing import Any

from haft.helper import cgroups, kernel, landlock, seccomp, tracing
from haft.helper.meter import Meter, apply_rlimits, rlimits
from haft.helper.protocol import argv_and_env, failure, read_request, send_report
from haft.helper.supervisor import (
    GIVE_UP_SECONDS,
    POLL_SECONDS,
    Supervisor,
    drain,
    forget_signals,
    reap,
    wake_on_children,
)

STREAMS = 3
THREADS = 17
"""The field with the number of threads in /proc/PID/stat, counted after the process's name."""


def parents() -> dict[int, int]:
    """The parent of every process of the machine."""
    table = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError), open(f"/proc/{name}/stat", "rb") as file:
                # The command's name is in parentheses and may contain any character: split after the last parenthesis.
                table[int(name)] = int(file.read().rsplit(b")", 1)[1].split()[1])
    return table


def descendants(root: int, spared: frozenset[int] = frozenset()) -> list[int]:
    """All descendants of `root`, except the processes in `spared` and their descendants."""
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


def send_signal(pids: list[int], number: int) -> None:
    """Send a signal to each process. Processes that have ended or are not ours are ignored."""
    for pid in pids:
        with contextlib.suppress(OSError):
            os.kill(pid, number)


class DescendantProcesses:
    """The processes of a call: all descendants of its supervisor, which is a subreaper."""

    def __init__(self, main: int) -> None:
        self._main = main

    def pids(self) -> list[int]:
        return descendants(os.getpid())

    def signal(self, number: int) -> None:
        # The process group first, in one step: processes that fork faster than we can list them are mostly in it.
        with contextlib.suppress(OSError):
            os.killpg(self._main, number)
        send_signal(self.pids(), number)


def become(
    request: dict[str, Any], streams: list[int], directory: int, group: cgroups.Group | None, filters: dict[bool, bytes]
) -> None:
    """In the child: set up session, signals, directory, limits and streams, then execute the command."""
    argv, env = argv_and_env(request)
    os.setsid()
    forget_signals()
    os.fchdir(directory)
    if group is not None:
        group.join()
    apply_rlimits({**rlimits(request["limits"], user=False, calls=1), **user_process_limit(request["limits"])})
    confinement = request["sandbox"]
    if confinement is not None and (abi := landlock.version()):
        landlock.restrict(confinement["places"], tcp=confinement["network"], abi=abi)
        if steps := filters[confinement["unasked"]]:
            seccomp.restrict(steps)
            seccomp.restrict(seccomp.uncounted_memory_filter())
    for target, descriptor in enumerate(streams):
        os.dup2(descriptor, target)
    os.execvpe(argv[0], argv, env)  # noqa: S606  this is the one place for it


def user_process_limit(limits: dict[str, Any]) -> dict[int, int]:
    """An rlimit against fork bombs, which grow faster than the meter can follow. The kernel counts all processes and
    threads of the user on the machine, so their current number is added to the limit. Empty for root, to whom this
    rlimit does not apply."""
    if os.geteuid() == 0 or not limits["max_processes"]:
        return {}
    return {resource.RLIMIT_NPROC: tasks_of_user() + int(limits["max_processes"]) * cgroups.TASKS_PER_PROCESS}


def tasks_of_user() -> int:
    """The number of processes and threads of the current user."""
    own, found = os.geteuid(), 0
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError):
                if os.stat(f"/proc/{name}").st_uid == own:
                    with open(f"/proc/{name}/stat", "rb") as file:
                        found += int(file.read().rsplit(b")", 1)[1].split()[THREADS])
    return found


def root_process_group(limits: dict[str, Any], hierarchies: list[cgroups.Hierarchy]) -> cgroups.Group | None:
    """A cgroup against fork bombs, for root, who has no rlimit on processes; None if there are no cgroups, or no limit
    is set."""
    if hierarchies and limits["max_processes"]:
        with contextlib.suppress(OSError):
            group = cgroups.Group(hierarchies, f"haft-{os.getppid()}-{os.getpid()}")
            group.limit(limits)
            return group
    return None


def process_hierarchies(tag: str) -> list[cgroups.Hierarchy]:
    """The cgroup hierarchies that count processes and in which we may make groups."""
    found = [each for each in cgroups.usable(tag) if "pids" in each.controllers] if os.geteuid() == 0 else []
    for hierarchy in found:
        hierarchy.controllers &= {"pids"}
    cgroups.sweep(found)
    return found


def start(
    request: dict[str, Any], streams: list[int], directory: int, group: cgroups.Group | None, filters: dict[bool, bytes]
) -> tuple[int, list[Any] | None]:
    """Fork, and execute the command in the child. Returns the child's pid, and the error if the command could not be
    executed, otherwise None."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(reading)
            become(request, streams, directory, group, filters)
        except BaseException as error:
            os.write(writing, json.dumps(failure(error)).encode())
        finally:
            os._exit(127)
    os.close(writing)
    # A successful exec closes the pipe; otherwise the child writes the error into it.
    with open(reading, "rb") as pipe:
        complaint = pipe.read()
    return pid, json.loads(complaint) if complaint else None


def supervise(
    control: socket.socket,
    streams: list[int],
    directory: int,
    hierarchies: list[cgroups.Hierarchy],
    filters: dict[bool, bytes],
) -> None:
    """Supervise one call, from the request to the report."""
    kernel.become_subreaper()
    wake = wake_on_children()
    try:
        request = read_request(control)
    except EOFError:
        return  # The host closed the socket before it sent the request.
    group = root_process_group(request["limits"], hierarchies)
    pid, complaint = start(request, streams, directory, group, filters)
    for descriptor in (*streams, directory):
        os.close(descriptor)
    control.setblocking(False)
    below = DescendantProcesses(pid)
    meter = Meter(
        request["limits"], below.pids, roots=[request["workspace"]] if request["workspace"] else [], group=group
    )
    supervisor = Supervisor(control, pid, " ".join(request["argv"]), below, meter)
    left = supervisor.watch(wake)
    if group is not None:
        group.remove()
    send_report(control, supervisor.report(left, complaint))


def serve(server: socket.socket, hierarchies: list[cgroups.Hierarchy], filters: dict[bool, bytes]) -> None:
    """Run the helper: fork a supervisor for every message, until the host closes the socket."""
    kernel.become_subreaper()
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
            # A command killed its supervisor, so its processes are now our children. Repeat until none is left, since
            # they may fork meanwhile.
            strays = descendants(os.getpid(), frozenset(supervisors))
            send_signal(strays, signal.SIGSTOP)
            send_signal(strays, signal.SIGKILL)
            if not strays or time.monotonic() >= hunt_until:
                hunt_until = 0.0
        if server.fileno() not in ready:
            continue
        message, descriptors, _, _ = socket.recv_fds(server, 1, STREAMS + 2)
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
                control = socket.socket(fileno=descriptors[0])
                supervise(control, descriptors[1:4], descriptors[4], hierarchies, filters)
                code = 0
            finally:
                os._exit(code)
        supervisors.add(pid)
        for descriptor in descriptors:
            os.close(descriptor)


def main(descriptor: int) -> None:
    """Send the hello message, then serve requests."""
    server = socket.socket(fileno=descriptor)
    server.recv(1 << 20)  # Facts that only the helper with a sandbox needs.
    server.sendall(json.dumps({"landlock": landlock.version(), "namespaces": False, "problem": None}).encode())
    tag = cgroups.tag()
    hierarchies = process_hierarchies(tag)
    serve(server, hierarchies, seccomp.build_filters(tracing=tracing.filters_hold()))
    cgroups.sweep(hierarchies, tag)


if __name__ == "__main__":
    main(int(sys.argv[1]))
