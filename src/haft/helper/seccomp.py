"""Seccomp: refuses the few system calls that reach past every namespace.

The kernel's keyrings belong to a user, not to a namespace: a call could read the keys of whoever runs the host. Sockets
of most families know no network namespace either: by AF_VSOCK a virtual machine reaches the machine that it runs on. An
io_uring opens sockets without a system call that could be looked at, so there is none. New namespaces are refused too:
the machine has so many, and who uses them all up keeps others from having theirs. A process changes the limits of
itself alone.
"""

from __future__ import annotations

import ctypes
import errno
import struct

from haft.helper.abi import Abi, ways_in
from haft.helper.kernel import PR_SET_NO_NEW_PRIVS, checked, libc, prctl

PR_SET_SECCOMP, MODE_FILTER = 22, 2
ALLOW, REFUSE = 0x7FFF_0000, 0x0005_0000
LOAD, JUMP_EQUAL, JUMP_AT_LEAST, JUMP_ANY, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
AT_NUMBER, AT_ARCHITECTURE, AT_FIRST_ARGUMENT = 0, 4, 16

FAMILIES = (1, 2, 10, 16)
"""UNIX, INET, INET6, NETLINK: what programs use, and what namespaces and Landlock hold."""

NAMESPACES = 0x7E02_0080
"""Every CLONE_NEW* flag: in the first argument of clone and unshare. In clone3 they cannot be seen: it is as if that
were not there, and libraries go on with clone."""

REFUSED = (
    "add_key", "request_key", "keyctl",
    "io_uring_setup", "io_uring_enter", "io_uring_register",
    "clone3", "socketcall",
)  # fmt: skip
"""Refused whatever their arguments, wherever a way into the kernel has them. 32-bit programs of x86 can open sockets by
socketcall, which hides the family."""

X86_64, X32 = 0xC000_003E, 0x4000_0000
"""A third kind of programs has the numbers of x86_64 with this bit: none of them run."""

Step = tuple[int, int, int, int]


def available() -> bool:
    """Whether this kernel filters system calls, and we know its numbers."""
    if not ways_in():
        return False
    libc.prctl(PR_SET_SECCOMP, MODE_FILTER, None, 0, 0)  # Refused either way: EFAULT says that it would have looked.
    return ctypes.get_errno() == errno.EFAULT


def written() -> bytes:
    """The filter for this machine; nothing where there can be none."""
    if not available():
        return b""
    return b"".join(struct.pack("=HBBI", *step) for step in program())


def restrict(steps: bytes) -> None:
    """For this process and all that it starts: the filter as it was written before, which takes a while."""
    code = ctypes.create_string_buffer(steps)
    whole = struct.pack("@HP", len(steps) // struct.calcsize("=HBBI"), ctypes.addressof(code))
    prctl(PR_SET_NO_NEW_PRIVS, 1, "prctl(PR_SET_NO_NEW_PRIVS)")
    checked(libc.prctl(PR_SET_SECCOMP, MODE_FILTER, whole, 0, 0), "prctl(PR_SET_SECCOMP)")


def program() -> list[Step]:
    """The filter, as the kernel wants it."""
    steps = [(LOAD, 0, 0, AT_ARCHITECTURE)]
    for way in ways_in():
        part = _part(way)
        steps += [(JUMP_EQUAL, 0, len(part), way.audit), *part]
    return [*steps, _refuse(errno.ENOSYS)]


def _part(way: Abi) -> list[Step]:
    steps = [(LOAD, 0, 0, AT_NUMBER)]
    if way.audit == X86_64:
        steps += [(JUMP_AT_LEAST, 0, 1, X32), _refuse(errno.ENOSYS)]
    for number in (way.numbers[name] for name in REFUSED if name in way.numbers):
        steps += [(JUMP_EQUAL, 0, 1, number), _refuse(errno.ENOSYS)]
    for name in ("clone", "unshare"):
        steps += [
            (JUMP_EQUAL, 0, 4, way.numbers[name]), (LOAD, 0, 0, AT_FIRST_ARGUMENT),
            (JUMP_ANY, 0, 1, NAMESPACES), _refuse(errno.EPERM), (RETURN, 0, 0, ALLOW),
        ]  # fmt: skip
    steps += [
        (JUMP_EQUAL, 0, 4, way.numbers["prlimit64"]), (LOAD, 0, 0, AT_FIRST_ARGUMENT),
        (JUMP_EQUAL, 1, 0, 0), _refuse(errno.EPERM), (RETURN, 0, 0, ALLOW),
    ]  # fmt: skip
    steps += [(JUMP_EQUAL, 1, 0, way.numbers["socket"]), (RETURN, 0, 0, ALLOW), (LOAD, 0, 0, AT_FIRST_ARGUMENT)]
    for family in FAMILIES:
        steps += [(JUMP_EQUAL, 0, 1, family), (RETURN, 0, 0, ALLOW)]
    return [*steps, _refuse(errno.EAFNOSUPPORT)]


def _refuse(number: int) -> Step:
    return RETURN, 0, 0, REFUSE | number
