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
import platform
import struct
from collections.abc import Iterable

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

IO_URING_AND_CLONE3 = (425, 426, 427, 435)
Table = tuple[int, tuple[int, ...], int, tuple[int, int], int]
TABLES: dict[str, list[Table]] = {
    "x86_64": [
        (0xC000_003E, (248, 249, 250, *IO_URING_AND_CLONE3), 41, (56, 272), 302),
        (0x4000_0003, (286, 287, 288, 102, *IO_URING_AND_CLONE3), 359, (120, 310), 340),
    ],
    "aarch64": [
        (0xC000_00B7, (217, 218, 219, *IO_URING_AND_CLONE3), 198, (220, 97), 261),
        (0x4000_0028, (309, 310, 311, *IO_URING_AND_CLONE3), 281, (120, 337), 369),
    ],
    "riscv64": [(0xC000_00F3, (217, 218, 219, *IO_URING_AND_CLONE3), 198, (220, 97), 261)],
}
"""By machine, for it and for its 32-bit programs: the architecture; what is refused, add_key, request_key and keyctl
among it; socket; clone and unshare; prlimit64. Those of x86 open sockets by socketcall, which hides the family: they
get none."""
X32 = 0x4000_0000


def available() -> bool:
    """Whether this kernel filters system calls, and we know its numbers."""
    if platform.machine() not in TABLES:
        return False
    libc.prctl(PR_SET_SECCOMP, MODE_FILTER, None, 0, 0)  # Refused either way: EFAULT says that it would have looked.
    return ctypes.get_errno() == errno.EFAULT


def written() -> bytes:
    """The filter for this machine; nothing where there can be none."""
    if not available():
        return b""
    return b"".join(struct.pack("=HBBI", *step) for step in program(platform.machine()))


def restrict(steps: bytes) -> None:
    """For this process and all that it starts: the filter as it was written before, which takes a while."""
    code = ctypes.create_string_buffer(steps)
    whole = struct.pack("@HP", len(steps) // struct.calcsize("=HBBI"), ctypes.addressof(code))
    prctl(PR_SET_NO_NEW_PRIVS, 1, "prctl(PR_SET_NO_NEW_PRIVS)")
    checked(libc.prctl(PR_SET_SECCOMP, MODE_FILTER, whole, 0, 0), "prctl(PR_SET_SECCOMP)")


def program(machine: str) -> list[tuple[int, int, int, int]]:
    """The filter, as the kernel wants it."""
    steps = [(LOAD, 0, 0, AT_ARCHITECTURE)]
    for architecture, refused, opening, forking, limiting in TABLES[machine]:
        part = _part(refused, opening, forking, limiting, x32=machine == "x86_64")
        steps += [(JUMP_EQUAL, 0, len(part), architecture), *part]
    return [*steps, _refuse(errno.ENOSYS)]


def _part(
    refused: Iterable[int], opening: int, forking: Iterable[int], limiting: int, *, x32: bool
) -> list[tuple[int, int, int, int]]:
    steps = [(LOAD, 0, 0, AT_NUMBER)]
    if x32:
        steps += [(JUMP_AT_LEAST, 0, 1, X32), _refuse(errno.ENOSYS)]
    for number in refused:
        steps += [(JUMP_EQUAL, 0, 1, number), _refuse(errno.ENOSYS)]
    for number in forking:
        steps += [
            (JUMP_EQUAL, 0, 4, number), (LOAD, 0, 0, AT_FIRST_ARGUMENT),
            (JUMP_ANY, 0, 1, NAMESPACES), _refuse(errno.EPERM), (RETURN, 0, 0, ALLOW),
        ]  # fmt: skip
    steps += [
        (JUMP_EQUAL, 0, 4, limiting), (LOAD, 0, 0, AT_FIRST_ARGUMENT),
        (JUMP_EQUAL, 1, 0, 0), _refuse(errno.EPERM), (RETURN, 0, 0, ALLOW),
    ]  # fmt: skip
    steps += [(JUMP_EQUAL, 1, 0, opening), (RETURN, 0, 0, ALLOW), (LOAD, 0, 0, AT_FIRST_ARGUMENT)]
    for family in FAMILIES:
        steps += [(JUMP_EQUAL, 0, 1, family), (RETURN, 0, 0, ALLOW)]
    return [*steps, _refuse(errno.EAFNOSUPPORT)]


def _refuse(number: int) -> tuple[int, int, int, int]:
    return RETURN, 0, 0, REFUSE | number
