"""The helper that starts commands in the sandbox. Each host process has one, called the zygote, for its whole life.

    host ── waiter            is outside the namespace, and removes cgroups after everything has ended
              └─ zygote       pid 1 of its own namespace: when it ends, the kernel kills all processes below it
                   ├─ init    pid 1 of one call's namespace: reaps, passes signals on, watches the limits
                   │    └─ the command
                   └─ init    prepared ahead for the next call

With cgroups there is a forker between the zygote and each init: it is in its own cgroup and runs one call at a time.
The host sends one message per call over its socket: JSON that says which kind of sandbox the call needs, and the call's
control socket, stdin, stdout and stderr. When the host closes that socket, everything ends.
"""

from __future__ import annotations

import contextlib
import errno
import gc
import json
import os
import select
import signal
import socket
import sys
from typing import Any, NoReturn

from haft.helper import cgroups, jail, kernel, landlock, seccomp, tracing
from haft.helper.init import STREAMS, Init
from haft.helper.protocol import never_started, send_report
from haft.helper.session import run_session
from haft.helper.warm import run_warm

MAX_MESSAGE = 1 << 18
RUNNERS = {"warm": run_warm, "session": run_session}
MAX_LEFT = 64_000_000


class Forker:
    """Forks inits, each of which is pid 1 of one call. Without cgroups, the zygote itself is the forker. With cgroups,
    the zygote has children that are forkers, each in its own cgroup."""

    def __init__(self, template: jail.Template, group: cgroups.Group | None = None) -> None:
        self._template = template
        self._group = group
        self._own = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)

    def fork(self, orders: socket.socket, kind: dict[str, Any]) -> None:
        """Fork an init that takes its call from `orders`."""
        kernel.unshare(kernel.CLONE_NEWPID, "processes")
        try:
            pid = os.fork()
            if pid == 0:
                self._be_init(orders, kind)
        finally:
            kernel.setns(self._own, kernel.CLONE_NEWPID)

    def _be_init(self, orders: socket.socket, kind: dict[str, Any]) -> NoReturn:
        try:
            kept = self._group.descriptors if self._group else set()
            kernel.close_others({orders.fileno(), *kept})
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # Without a handler, pid 1 ignores signals of its own call.
            Init(orders, self._template, self._group, RUNNERS).live(kind)
        finally:
            os._exit(0)


class CgroupSlot:
    """Runs one call at a time: its forker, a child of the zygote in a cgroup of its own, forks the call's init."""

    def __init__(self, template: jail.Template, hierarchies: list[cgroups.Hierarchy], name: str) -> None:
        group = cgroups.Group(hierarchies, name)
        group.limit(template.site["limits"])
        self.orders, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.running: socket.socket | None = None
        self.ready: PreparedInit | None = None
        self.sealed = False
        self._group = group
        pid = os.fork()
        if pid == 0:
            try:
                kernel.close_others({theirs.fileno(), *group.descriptors})
                group.join()
                serve_slot(theirs, Forker(template, group))
            finally:
                os._exit(0)
        theirs.close()

    def order(self, kind: dict[str, Any]) -> PreparedInit:
        """Fork an init, which prepares this kind of sandbox and waits for its call. Returns the init."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        socket.send_fds(self.orders, [json.dumps({**kind, "sealed": self.sealed}).encode()], [theirs.fileno()])
        theirs.close()
        return PreparedInit(ours, kind)

    def is_burdened(self) -> bool:
        """Whether the last call left memory behind, in a file that another process has open: this memory would count
        for the next call."""
        return self._group.left_behind() > MAX_LEFT

    def close(self) -> None:
        """End the forker and its init."""
        self.orders.close()
        if self.ready is not None:
            self.ready.end.close()


def serve_slot(orders: socket.socket, forker: Forker) -> None:
    """Fork an init for every order, until the zygote is gone."""
    while True:
        message, descriptors, _, _ = socket.recv_fds(orders, MAX_MESSAGE, 1)
        if not message:
            return
        end = socket.socket(fileno=descriptors[0])
        os.set_inheritable(end.fileno(), False)
        forker.fork(end, json.loads(message))
        end.close()


class PlainSlot:
    """Runs any number of calls at a time, without cgroups: the zygote itself forks their inits."""

    def __init__(self, template: jail.Template) -> None:
        self._forker = Forker(template)
        self.running: socket.socket | None = None
        self.ready: PreparedInit | None = None
        self.sealed = False

    def order(self, kind: dict[str, Any]) -> PreparedInit:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._forker.fork(theirs, {**kind, "sealed": self.sealed})
        theirs.close()
        return PreparedInit(ours, kind)


class PreparedInit:
    """An init (pid 1 of a call's sandbox) that is waiting for its call."""

    def __init__(self, end: socket.socket, kind: dict[str, Any]) -> None:
        self.end = end
        self.kind = kind


STRICTEST_KIND: dict[str, Any] = {"network": False, "unasked": True, "extra": [], "links": []}
"""The kind with the strictest sandbox: if this one can be built, so can all others."""


class Zygote:
    """Gives each call to an init, which runs the call in its own sandbox."""

    def __init__(
        self, server: socket.socket, template: jail.Template, hierarchies: list[cgroups.Hierarchy], tag: str
    ) -> None:
        self._server = server
        self._template = template
        self._hierarchies = hierarchies
        self._tag = tag
        self._count = 0
        self._sealed = False
        """Whether the first sandbox had all protections: then no later one may have less."""
        self._slots: list[CgroupSlot | PlainSlot] = []

    def trial(self) -> dict[str, Any]:
        """Prepare the first sandbox, and return which protections it has."""
        try:
            return self._trial()
        except OSError:
            if not self._hierarchies:
                raise
            # Groups can be made here, but no process can be moved into them.
            self._hierarchies.clear()
            self._slots.clear()
            return self._trial()

    def _trial(self) -> dict[str, Any]:
        slot = self._new_slot()
        slot.ready = slot.order({**STRICTEST_KIND, "trial": True})
        words = slot.ready.end.recv(MAX_MESSAGE)
        slot.ready.kind = STRICTEST_KIND
        if not words:
            raise ConnectionResetError("the first init died")
        found: dict[str, Any] = json.loads(words)
        self._sealed = bool(found["proc"] and found["network"] and not found["problem"])
        slot.sealed = self._sealed
        return found

    def _new_slot(self) -> CgroupSlot | PlainSlot:
        self._count += 1
        slot: CgroupSlot | PlainSlot
        if self._hierarchies:
            slot = CgroupSlot(self._template, self._hierarchies, f"{self._tag}-{self._count}")
        else:
            slot = PlainSlot(self._template)
        slot.sealed = self._sealed
        self._slots.append(slot)
        return slot

    def serve(self) -> None:
        """Serve calls until the host closes the socket."""
        while True:
            running = {slot.running.fileno(): slot for slot in self._slots if slot.running is not None}
            ready, _, _ = select.select([self._server.fileno(), *running], [], [])
            for descriptor in ready:
                if descriptor in running:
                    slot = running[descriptor]
                    assert slot.running is not None
                    slot.running.close()  # The init has ended, so the slot is free.
                    slot.running = None
                    if isinstance(slot, CgroupSlot) and slot.is_burdened():
                        self._slots.remove(slot)
                        slot.close()
            if self._server.fileno() not in ready:
                continue
            message, descriptors, _, _ = socket.recv_fds(self._server, MAX_MESSAGE, 4 + STREAMS)
            if not message:
                return
            carrier: CgroupSlot | PlainSlot | None = None
            kind: dict[str, Any] = {}
            is_warm = False
            try:
                kind = json.loads(message)
                is_warm = kind.pop("warm", False)
                carrier = self._dispatch(kind, descriptors)
            except (OSError, ValueError) as error:
                with contextlib.suppress(OSError), socket.socket(fileno=os.dup(descriptors[0])) as control:
                    send_report(control, never_started([None, f"no slot could be made for it: {error}"]))
            finally:
                for descriptor in descriptors:
                    os.close(descriptor)
            if carrier is not None and carrier.ready is None and not (is_warm and isinstance(carrier, CgroupSlot)):
                # The next call will most likely need the same kind, without the paths granted to this one alone.
                with contextlib.suppress(OSError):
                    carrier.ready = carrier.order(
                        {**STRICTEST_KIND, "network": kind["network"], "unasked": kind["unasked"]}
                    )

    @staticmethod
    def _send_call(slot: CgroupSlot | PlainSlot, kind: dict[str, Any], descriptors: list[int]) -> PreparedInit:
        """Send a call to the prepared init of the slot; if there is none for this kind of sandbox, fork one first.
        Returns the init."""
        ready, slot.ready = slot.ready, None
        if ready is None or ready.kind != kind:
            if ready is not None:
                ready.end.close()
            ready = slot.order(kind)
        socket.send_fds(ready.end, [b"r"], descriptors)
        return ready

    def _dispatch(self, kind: dict[str, Any], descriptors: list[int]) -> CgroupSlot | PlainSlot:
        free = [slot for slot in self._slots if slot.running is None]
        slot = next((one for one in free if one.ready is not None and one.ready.kind == kind), None)
        if slot is None:
            slot = free[0] if free else self._new_slot()
        try:
            ready = self._send_call(slot, kind, descriptors)
        except OSError:
            self._slots.remove(slot)  # Its forker or init was killed: try another slot, once.
            slot = self._new_slot()
            ready = self._send_call(slot, kind, descriptors)
        if isinstance(slot, CgroupSlot):
            slot.running = ready.end
        else:
            ready.end.close()
        return slot


def wait_for(pid: int, hierarchies: list[cgroups.Hierarchy], tag: str) -> NoReturn:
    """Run the waiter: wait until the zygote has ended, and with it all processes that it started; then remove the
    cgroups."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    os.waitpid(pid, 0)
    cgroups.sweep(hierarchies, tag)
    os._exit(0)


def main(descriptor: int) -> None:
    """Send the hello message, then serve calls."""
    server = socket.socket(fileno=descriptor)
    gc.disable()
    kernel.leave_keyrings()
    hello: dict[str, Any] = {"landlock": landlock.version(), "namespaces": False, "problem": None}
    hello["seccomp_problem"] = seccomp.problem()
    hello["tracing"] = tracing.filters_hold()
    hello["accounts_io"] = os.path.exists("/proc/self/io")
    message = server.recv(1 << 20)  # Last: a host may start this program before it knows what for.
    if not message:
        return
    site = json.loads(message)
    try:
        begin(server, site, hello)
    except OSError as error:
        hello["problem"] = str(error)
        hello["errno"] = error.errno
        hello["passing"] = error.errno in PASSING and allowed_namespaces() > 0
        with contextlib.suppress(OSError):
            server.sendall(json.dumps(hello).encode())


PASSING = (errno.ENOSPC, errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE)
"""Errors that mean that a resource is used up for the moment, not that this machine lacks it."""


def allowed_namespaces() -> int:
    """How many user namespaces the kernel allows; 0 if that cannot be read."""
    with contextlib.suppress(OSError, ValueError), open("/proc/sys/user/max_user_namespaces") as file:
        return int(file.read())
    return 0


def begin(server: socket.socket, site: dict[str, Any], hello: dict[str, Any]) -> None:
    """Enter the namespaces, fork the zygote, which serves calls, and wait for its end. Never returns; raises `OSError`
    if the namespaces cannot be made."""
    in_user_namespace = True
    if os.geteuid() == 0:
        with contextlib.suppress(OSError):
            kernel.unshare(kernel.CLONE_NEWPID, "processes")
            in_user_namespace = False
    tag = cgroups.tag()
    hierarchies = cgroups.usable(tag)
    cgroups.sweep(hierarchies)
    if in_user_namespace:
        uid, gid = os.geteuid(), os.getegid()
        kernel.unshare(kernel.CLONE_NEWUSER, "users")
        kernel.map_user_to_itself(uid, gid)
        kernel.unshare(kernel.CLONE_NEWPID, "processes")
    pid = os.fork()
    if pid:
        server.close()
        wait_for(pid, hierarchies, tag)
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL, "prctl(PR_SET_PDEATHSIG)")
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # The kernel reaps for us.
    filters = seccomp.build_filters(tracing=hello["tracing"])
    template = jail.Template(site, in_user_namespace=in_user_namespace, filters=filters)
    template.enter()
    gc.freeze()
    zygote = Zygote(server, template, hierarchies, tag)
    hello.update(zygote.trial())
    hello["namespaces"] = hello["problem"] is None
    hello["user_namespace"] = in_user_namespace
    hello["cgroups"] = {name: each.version for each in hierarchies for name in each.controllers}
    server.sendall(json.dumps(hello).encode())
    if hello["namespaces"]:
        zygote.serve()
    os._exit(0)


if __name__ == "__main__":
    main(int(sys.argv[1]))
