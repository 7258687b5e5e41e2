"""The helper that starts commands in the sandbox: one for each host, for its whole life.

    host ── waiter            stands outside, and clears up when everything is gone
              └─ zygote       pid 1 of a namespace of its own: when it ends, the kernel kills all that is below
                   ├─ init    pid 1 of one call's namespace: reaps, passes signals on, watches the limits
                   │    └─ the command
                   └─ init    prepared ahead for the next call

Where cgroups can be had, forkers stand between zygote and inits: each is in a group of its own and carries one call at
a time. The host sends one message a call over its socket: JSON that says which room it needs, and the call's control
socket, stdin, stdout and stderr. When that socket ends, so does everything.
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
from haft.helper.session import stay
from haft.helper.warm import keep
from haft.helper.words import never_started, tell

MOST_MESSAGE = 1 << 18
CARRIERS = {"warm": keep, "session": stay}
MOST_LEFT = 64_000_000


class Forker:
    """Forks inits: the zygote itself, or a child of it that is in a cgroup."""

    def __init__(self, template: jail.Template, group: cgroups.Group | None = None) -> None:
        self._template = template
        self._group = group
        self._own = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)

    def fork(self, orders: socket.socket, kind: dict[str, Any]) -> None:
        """A new init that takes its call from `orders`."""
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
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # Without a handler, pid 1 is deaf to its own call.
            Init(orders, self._template, self._group, CARRIERS).live(kind)
        finally:
            os._exit(0)


class Stall:
    """A place for calls: a forker in a cgroup of its own, which carries one at a time."""

    def __init__(self, template: jail.Template, hierarchies: list[cgroups.Hierarchy], name: str) -> None:
        group = cgroups.Group(hierarchies, name)
        group.limit(template.site["limits"])
        self.orders, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.running: socket.socket | None = None
        self.ready: Ready | None = None
        self.sealed = False
        self._group = group
        pid = os.fork()
        if pid == 0:
            try:
                kernel.close_others({theirs.fileno(), *group.descriptors})
                group.join()
                serve_stall(theirs, Forker(template, group))
            finally:
                os._exit(0)
        theirs.close()

    def order(self, kind: dict[str, Any]) -> Ready:
        """Have an init prepared."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        socket.send_fds(self.orders, [json.dumps({**kind, "sealed": self.sealed}).encode()], [theirs.fileno()])
        theirs.close()
        return Ready(ours, kind)

    def is_burdened(self) -> bool:
        """Whether its call left memory behind that counts against the next: in a file that someone else holds."""
        return self._group.left_behind() > MOST_LEFT

    def close(self) -> None:
        """The forker ends, and its init with it."""
        self.orders.close()
        if self.ready is not None:
            self.ready.end.close()


def serve_stall(orders: socket.socket, forker: Forker) -> None:
    """Fork an init for every order, until the zygote is gone."""
    while True:
        message, descriptors, _, _ = socket.recv_fds(orders, MOST_MESSAGE, 1)
        if not message:
            return
        end = socket.socket(fileno=descriptors[0])
        os.set_inheritable(end.fileno(), False)
        forker.fork(end, json.loads(message))
        end.close()


class Yard:
    """The same without cgroups: the zygote forks by itself, any number at a time."""

    def __init__(self, template: jail.Template) -> None:
        self._forker = Forker(template)
        self.running: socket.socket | None = None
        self.ready: Ready | None = None
        self.sealed = False

    def order(self, kind: dict[str, Any]) -> Ready:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._forker.fork(theirs, {**kind, "sealed": self.sealed})
        theirs.close()
        return Ready(ours, kind)


class Ready:
    """An init that waits for its call."""

    def __init__(self, end: socket.socket, kind: dict[str, Any]) -> None:
        self.end = end
        self.kind = kind


PLAIN: dict[str, Any] = {"network": False, "unasked": True, "extra": [], "links": []}
"""The closest room: where it can be had, so can any."""


class Zygote:
    """The dispatcher."""

    def __init__(
        self, server: socket.socket, template: jail.Template, hierarchies: list[cgroups.Hierarchy], tag: str
    ) -> None:
        self._server = server
        self._template = template
        self._hierarchies = hierarchies
        self._tag = tag
        self._count = 0
        self._sealed = False
        """Whether the first room had everything: then no later one does with less."""
        self._places: list[Stall | Yard] = []

    def trial(self) -> dict[str, Any]:
        """Prepare the first room, and tell how that went."""
        try:
            return self._trial()
        except OSError:
            if not self._hierarchies:
                raise
            # Groups can be made here, and yet nobody moved into them.
            self._hierarchies.clear()
            self._places.clear()
            return self._trial()

    def _trial(self) -> dict[str, Any]:
        place = self._new_place()
        place.ready = place.order({**PLAIN, "trial": True})
        words = place.ready.end.recv(MOST_MESSAGE)
        place.ready.kind = PLAIN
        if not words:
            raise ConnectionResetError("the first init died")
        found: dict[str, Any] = json.loads(words)
        self._sealed = bool(found["proc"] and found["network"] and not found["problem"])
        place.sealed = self._sealed
        return found

    def _new_place(self) -> Stall | Yard:
        self._count += 1
        place: Stall | Yard
        if self._hierarchies:
            place = Stall(self._template, self._hierarchies, f"{self._tag}-{self._count}")
        else:
            place = Yard(self._template)
        place.sealed = self._sealed
        self._places.append(place)
        return place

    def serve(self) -> None:
        """Until the host ends the socket."""
        while True:
            running = {place.running.fileno(): place for place in self._places if place.running is not None}
            ready, _, _ = select.select([self._server.fileno(), *running], [], [])
            for descriptor in ready:
                if descriptor in running:
                    place = running[descriptor]
                    assert place.running is not None
                    place.running.close()  # The init is gone: the place is free.
                    place.running = None
                    if isinstance(place, Stall) and place.is_burdened():
                        self._places.remove(place)
                        place.close()
            if self._server.fileno() not in ready:
                continue
            message, descriptors, _, _ = socket.recv_fds(self._server, MOST_MESSAGE, 3 + STREAMS)
            if not message:
                return
            carrier: Stall | Yard | None = None
            kind: dict[str, Any] = {}
            is_warm = False
            try:
                kind = json.loads(message)
                is_warm = kind.pop("warm", False)
                carrier = self._dispatch(kind, descriptors)
            except (OSError, ValueError) as error:
                with contextlib.suppress(OSError), socket.socket(fileno=os.dup(descriptors[0])) as control:
                    tell(control, never_started([None, f"no place could be made for it: {error}"]))
            finally:
                for descriptor in descriptors:
                    os.close(descriptor)
            if carrier is not None and carrier.ready is None and not (is_warm and isinstance(carrier, Stall)):
                # The next call will most likely be like this one, but for what was granted to this one alone.
                with contextlib.suppress(OSError):
                    carrier.ready = carrier.order({**PLAIN, "network": kind["network"], "unasked": kind["unasked"]})

    @staticmethod
    def _handed(place: Stall | Yard, kind: dict[str, Any], descriptors: list[int]) -> Ready:
        """An init of that place, with its call."""
        ready, place.ready = place.ready, None
        if ready is None or ready.kind != kind:
            if ready is not None:
                ready.end.close()
            ready = place.order(kind)
        socket.send_fds(ready.end, [b"r"], descriptors)
        return ready

    def _dispatch(self, kind: dict[str, Any], descriptors: list[int]) -> Stall | Yard:
        free = [place for place in self._places if place.running is None]
        place = next((one for one in free if one.ready is not None and one.ready.kind == kind), None)
        if place is None:
            place = free[0] if free else self._new_place()
        try:
            ready = self._handed(place, kind, descriptors)
        except OSError:
            self._places.remove(place)  # Its forker or init was killed: another place, once.
            place = self._new_place()
            ready = self._handed(place, kind, descriptors)
        if isinstance(place, Stall):
            place.running = ready.end
        else:
            ready.end.close()
        return place


def wait_for(pid: int, hierarchies: list[cgroups.Hierarchy], tag: str) -> NoReturn:
    """The waiter: until the zygote is gone, and with it everything below."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    os.waitpid(pid, 0)
    cgroups.sweep(hierarchies, tag)
    os._exit(0)


def main(descriptor: int) -> None:
    """Say what can be done here, then do it."""
    server = socket.socket(fileno=descriptor)
    site = json.loads(server.recv(1 << 20))
    gc.disable()
    kernel.leave_keyrings()
    hello: dict[str, Any] = {"landlock": landlock.version(), "namespaces": False, "problem": None}
    hello["seccomp_problem"] = seccomp.problem()
    hello["tracing"] = tracing.filters_hold()
    hello["accounts_io"] = os.path.exists("/proc/self/io")
    try:
        begin(server, site, hello)
    except OSError as error:
        hello["problem"] = str(error)
        hello["errno"] = error.errno
        hello["passing"] = error.errno in PASSING and allowed_namespaces() > 0
        with contextlib.suppress(OSError):
            server.sendall(json.dumps(hello).encode())


PASSING = (errno.ENOSPC, errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE)
"""What says that something is used up, not that it cannot be had."""


def allowed_namespaces() -> int:
    """How many user namespaces there may be."""
    with contextlib.suppress(OSError, ValueError), open("/proc/sys/user/max_user_namespaces") as file:
        return int(file.read())
    return 0


def begin(server: socket.socket, site: dict[str, Any], hello: dict[str, Any]) -> None:
    """Enter the namespaces, and serve. Returns in the zygote only, and at its end."""
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
    filters = seccomp.written(tracing=hello["tracing"])
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
