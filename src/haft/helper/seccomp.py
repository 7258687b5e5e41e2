"""Seccomp: refuses the few system calls that reach past every namespace.

The kernel's keyrings belong to a user, not to a namespace: a call could read the keys of whoever runs the host. Sockets
of most families know no network namespace either: by AF_VSOCK a virtual machine reaches the machine that it runs on. An
io_uring opens sockets without a system call that could be looked at, so there is none. New namespaces are refused too:
the machine has so many, and who uses them all up keeps others from having theirs. A process changes the limits of
itself alone.

Sockets of the host have names in its file system, which no namespace keeps apart. A call that nobody approved gets no
socket that can be connected to one. Nor may it trace its own processes, and on some kernels no call may: `tracing`.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from collections.abc import Iterable, Sequence

from haft.helper.abi import Abi, ways_in
from haft.helper.kernel import PR_SET_NO_NEW_PRIVS, checked, libc, prctl

PR_SET_SECCOMP, MODE_FILTER = 22, 2
ALLOW, REFUSE = 0x7FFF_0000, 0x0005_0000
LOAD, JUMP_EQUAL, JUMP_AT_LEAST, JUMP_ANY, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
AND = 0x54
AT_NUMBER, AT_ARCHITECTURE, AT_ARGUMENTS = 0, 4, (16, 24, 32, 40, 48, 56)
"""Where a filter finds them; of an argument the lower half."""

UNIX = 1
FAMILIES = (UNIX, 2, 10, 16)
"""UNIX, INET, INET6, NETLINK: what programs use, and what namespaces and Landlock hold."""

KINDS_OF_SOCKET, LASTING = 0xF, (1, 5)
"""STREAM and SEQPACKET: a pair of them stays a pair. One of datagrams can be connected to any name."""

NAMESPACES = 0x7E02_0080
"""Every CLONE_NEW* flag: in the first argument of clone and unshare. In clone3 they cannot be seen: it is as if that
were not there, and libraries go on with clone."""

REFUSED = (
    "add_key", "request_key", "keyctl",
    "io_uring_setup", "io_uring_enter", "io_uring_register",
    "clone3", "memfd_secret", "io_setup",
)  # fmt: skip
"""Refused whatever their arguments, wherever a way into the kernel has them. No limit holds memory that is made secret,
and the machine has only so many requests of io_setup for everyone."""

UNCOUNTED = ("memfd_create", "vmsplice")
"""Refused where no cgroup counts memory, since no process need have the memory that they take. A file of memfd_create
can wait in a socket for nobody; a pipe keeps a huge page for one byte of it. Programs go on with a file in /dev/shm, or
with write."""

ON_OPEN_SOCKETS = tuple(number for number in range(2, 21) if number != 8)
"""What socketcall may do, by which 32-bit programs of x86 do everything with sockets: all but to open one or a pair. It
hides the family, so that most of them open none."""

X86_64, X32 = 0xC000_003E, 0x4000_0000
"""A third kind of programs has the numbers of x86_64 with this bit: none of them run."""

Step = tuple[int, int, int, int]


def problem() -> str | None:
    """Why system calls cannot be filtered here, if they cannot."""
    if not ways_in():
        return f"haft does not know the system calls of {os.uname().machine}"
    libc.prctl(PR_SET_SECCOMP, MODE_FILTER, None, 0, 0)  # Refused either way: EFAULT says that it would have looked.
    return None if ctypes.get_errno() == errno.EFAULT else "this kernel filters no system calls"


def written(*, tracing: bool) -> dict[bool, bytes]:
    """The filters for this machine, by whether nobody approved the call; empty where there can be none. `tracing`:
    whether they hold against a tracer here."""
    if problem() is not None:
        return {True: b"", False: b""}
    return {unasked: packed(program(unasked=unasked, tracing=tracing)) for unasked in (True, False)}


def for_uncounted_memory() -> bytes:
    """One filter more, for where no cgroup counts memory; empty where there can be none."""
    if problem() is not None:
        return b""
    steps = [(LOAD, 0, 0, AT_ARCHITECTURE)]
    for way in ways_in():
        part = [(LOAD, 0, 0, AT_NUMBER)]
        for name in UNCOUNTED:
            part += [(JUMP_EQUAL, 0, 1, way.numbers[name]), _refuse(errno.ENOSYS)]
        steps += [(JUMP_EQUAL, 0, len(part) + 1, way.audit), *part, (RETURN, 0, 0, ALLOW)]
    return packed([*steps, _refuse(errno.ENOSYS)])


def packed(steps: Iterable[Step]) -> bytes:
    """A filter as the kernel reads it."""
    return b"".join(struct.pack("=HBBI", *step) for step in steps)


def restrict(steps: bytes) -> None:
    """For this process and all that it starts: the filter as it was written before, which takes a while."""
    code = ctypes.create_string_buffer(steps)
    whole = struct.pack("@HP", len(steps) // struct.calcsize("=HBBI"), ctypes.addressof(code))
    prctl(PR_SET_NO_NEW_PRIVS, 1, "prctl(PR_SET_NO_NEW_PRIVS)")
    checked(libc.prctl(PR_SET_SECCOMP, MODE_FILTER, whole, 0, 0), "prctl(PR_SET_SECCOMP)")


def program(*, unasked: bool, tracing: bool) -> list[Step]:
    """The filter, step by step."""
    steps = [(LOAD, 0, 0, AT_ARCHITECTURE)]
    for way in ways_in():
        part = _part(way, unasked=unasked, tracing=tracing)
        steps += [(JUMP_EQUAL, 0, len(part), way.audit), *part]
    return [*steps, _refuse(errno.ENOSYS)]


def _part(way: Abi, *, unasked: bool, tracing: bool) -> list[Step]:
    steps = [(LOAD, 0, 0, AT_NUMBER)]
    if way.audit == X86_64:
        steps += [(JUMP_AT_LEAST, 0, 1, X32), _refuse(errno.ENOSYS)]
    refusals = dict.fromkeys(REFUSED, errno.ENOSYS)
    if unasked or not tracing:
        refusals["ptrace"] = errno.EPERM
    for name, error in refusals.items():
        if name in way.numbers:
            steps += [(JUMP_EQUAL, 0, 1, way.numbers[name]), _refuse(error)]
    no_namespace = [(LOAD, 0, 0, AT_ARGUMENTS[0]), (JUMP_ANY, 0, 1, NAMESPACES), _refuse(errno.EPERM)]
    pairs = _only((UNIX,), 0, errno.EAFNOSUPPORT)
    if unasked:
        pairs += _only(LASTING, 1, errno.EAFNOSUPPORT, KINDS_OF_SOCKET)
    families = tuple(one for one in FAMILIES if not (unasked and one == UNIX))
    checks = {
        "clone": no_namespace,
        "unshare": no_namespace,
        "prlimit64": _only((0,), 0, errno.EPERM),
        "socket": _only(families, 0, errno.EAFNOSUPPORT),
        "socketpair": pairs,
        "socketcall": _only(ON_OPEN_SOCKETS, 0, errno.ENOSYS),
    }
    for name, check in checks.items():
        if name in way.numbers:
            steps += [(JUMP_EQUAL, 0, len(check) + 1, way.numbers[name]), *check, (RETURN, 0, 0, ALLOW)]
    return [*steps, (RETURN, 0, 0, ALLOW)]


def _only(values: Sequence[int], argument: int, error: int, mask: int = 0xFFFF_FFFF) -> list[Step]:
    """Go on where an argument is one of these."""
    steps = [(LOAD, 0, 0, AT_ARGUMENTS[argument]), (AND, 0, 0, mask)]
    for number, value in enumerate(values):
        steps.append((JUMP_EQUAL, len(values) - number, 0, value))
    return [*steps, _refuse(error)]


def _refuse(number: int) -> Step:
    return RETURN, 0, 0, REFUSE | number
