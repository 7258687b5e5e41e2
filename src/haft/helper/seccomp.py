"""Seccomp filters that refuse the few system calls which reach past every namespace.

The kernel's keyrings belong to a user, not to a namespace: a call could read the keys of the user who runs the host.
Sockets of most families ignore network namespaces too: through AF_VSOCK a virtual machine reaches its host. An io_uring
opens sockets without a system call that a filter could check, so it is refused. New namespaces are refused, since their
number on a machine is limited and a call could use them all up. A process may change only its own limits.

Unix sockets of the host are files, which no namespace separates. A call without approval gets no socket that can
connect to such a Unix socket. Such a call may not trace its own processes either. On some kernels, no call may trace
its processes (see `tracing`).
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from collections.abc import Iterable, Sequence

from haft.helper.abi import Abi, kernel_abis
from haft.helper.kernel import PR_SET_NO_NEW_PRIVS, checked, libc, prctl

PR_SET_SECCOMP, MODE_FILTER = 22, 2
ALLOW, REFUSE = 0x7FFF_0000, 0x0005_0000
LOAD, JUMP_EQUAL, JUMP_AT_LEAST, JUMP_ANY, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
AND = 0x54
AT_NUMBER, AT_ARCHITECTURE, AT_ARGUMENTS = 0, 4, (16, 24, 32, 40, 48, 56)
"""The offsets at which a filter finds the number of the system call, the architecture, and the lower half of each
argument."""

UNIX = 1
FAMILIES = (UNIX, 2, 10, 16)
"""UNIX, INET, INET6, NETLINK: the families that programs use, and that namespaces and Landlock confine."""

KINDS_OF_SOCKET, LASTING = 0xF, (1, 5)
"""The bits of a socket's type, and the types STREAM and SEQPACKET. The two sockets of such a pair stay connected to
each other, but a datagram socket can be connected again, to any name."""

NAMESPACES = 0x7E02_0080
"""Every CLONE_NEW* flag, in the first argument of clone and unshare. A filter cannot see the flags of clone3, so clone3
fails with ENOSYS, and libraries use clone instead."""

REFUSED = (
    "add_key", "request_key", "keyctl",
    "io_uring_setup", "io_uring_enter", "io_uring_register",
    "clone3", "memfd_secret", "io_setup",
)  # fmt: skip
"""System calls that are refused whatever their arguments, in every ABI that has them. No limit counts the memory of
memfd_secret, and all users of the machine share a limited number of io_setup requests."""

UNCOUNTED = ("memfd_create", "vmsplice")
"""System calls that are refused if no cgroup counts memory, since the memory that they take need not belong to any
process. A file of memfd_create can stay in a socket that nobody reads; with vmsplice, a pipe keeps a whole huge page
for one byte. Programs then use a file in /dev/shm instead of memfd_create, and write instead of vmsplice."""

ON_OPEN_SOCKETS = tuple(number for number in range(2, 21) if number != 8)
"""The operations of socketcall that are allowed: all except opening a socket or a pair, since a filter cannot see their
family there. 32-bit programs of x86 do all socket operations through socketcall, so most of them open no sockets."""

X86_64, X32 = 0xC000_003E, 0x4000_0000
"""Programs of the x32 ABI use the numbers of x86_64 with the bit `X32` set; the filter refuses all of them."""

Step = tuple[int, int, int, int]


def problem() -> str | None:
    """Why system calls cannot be filtered on this machine; None if they can be filtered."""
    if not kernel_abis():
        return f"haft does not know the system calls of {os.uname().machine}"
    libc.prctl(PR_SET_SECCOMP, MODE_FILTER, None, 0, 0)  # Always fails; EFAULT shows that the kernel supports it.
    return None if ctypes.get_errno() == errno.EFAULT else "this kernel filters no system calls"


def build_filters(*, tracing: bool) -> dict[bool, bytes]:
    """The filters for this machine: the key True has the filter for calls without approval, the key False has the
    filter for other calls. Both filters are empty if this machine cannot filter. `tracing`: whether a filter on this
    kernel also holds for a process that is traced."""
    if problem() is not None:
        return {True: b"", False: b""}
    return {unasked: packed(program(unasked=unasked, tracing=tracing)) for unasked in (True, False)}


def uncounted_memory_filter() -> bytes:
    """An additional filter, used if no cgroup counts memory. It refuses the system calls in `UNCOUNTED`, whose memory
    may belong to no process. Empty if this machine cannot filter."""
    if problem() is not None:
        return b""
    steps = [(LOAD, 0, 0, AT_ARCHITECTURE)]
    for way in kernel_abis():
        part = [(LOAD, 0, 0, AT_NUMBER)]
        for name in UNCOUNTED:
            part += [(JUMP_EQUAL, 0, 1, way.numbers[name]), _refuse(errno.ENOSYS)]
        steps += [(JUMP_EQUAL, 0, len(part) + 1, way.audit), *part, (RETURN, 0, 0, ALLOW)]
    return packed([*steps, _refuse(errno.ENOSYS)])


NEVER_BY_EGRESS = (
    "execve", "execveat", "ptrace", "process_vm_readv", "process_vm_writev", "pidfd_getfd", "setns", "unshare", "mount",
    "bpf", "perf_event_open", *REFUSED,
)  # fmt: skip
"""System calls that the egress process never needs."""
INTERNET = (2, 10, 16)
"""INET, INET6 and NETLINK, with which the resolver sorts addresses."""


def egress_filter() -> bytes:
    """The filter of the egress process, which connects and copies, and does nothing else."""
    steps = [(LOAD, 0, 0, AT_ARCHITECTURE)]
    bits = struct.calcsize("P") * 8
    for way in kernel_abis():
        if way.bits != bits:
            continue  # The process uses only its own ABI.
        part = [(LOAD, 0, 0, AT_NUMBER)]
        if way.audit == X86_64:
            part += [(JUMP_AT_LEAST, 0, 1, X32), _refuse(errno.ENOSYS)]
        for name in NEVER_BY_EGRESS:
            if name in way.numbers:
                part += [
                    (JUMP_EQUAL, 0, 1, way.numbers[name]),
                    _refuse(errno.ENOSYS if name == "clone3" else errno.EPERM),
                ]
        if "socket" in way.numbers:
            check = _only(INTERNET, 0, errno.EAFNOSUPPORT)
            part += [(JUMP_EQUAL, 0, len(check) + 1, way.numbers["socket"]), *check, (RETURN, 0, 0, ALLOW)]
        steps += [(JUMP_EQUAL, 0, len(part) + 1, way.audit), *part, (RETURN, 0, 0, ALLOW)]
    return packed([*steps, _refuse(errno.ENOSYS)])


def packed(steps: Iterable[Step]) -> bytes:
    """The bytes of a filter program."""
    return b"".join(struct.pack("=HBBI", *step) for step in steps)


def restrict(steps: bytes) -> None:
    """Install a packed filter for this process and all its children."""
    code = ctypes.create_string_buffer(steps)
    whole = struct.pack("@HP", len(steps) // struct.calcsize("=HBBI"), ctypes.addressof(code))
    prctl(PR_SET_NO_NEW_PRIVS, 1, "prctl(PR_SET_NO_NEW_PRIVS)")
    checked(libc.prctl(PR_SET_SECCOMP, MODE_FILTER, whole, 0, 0), "prctl(PR_SET_SECCOMP)")


def program(*, unasked: bool, tracing: bool) -> list[Step]:
    """The steps of a filter: the filter for calls without approval if `unasked`, otherwise the filter for other
    calls."""
    steps = [(LOAD, 0, 0, AT_ARCHITECTURE)]
    for way in kernel_abis():
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
    """Steps that refuse a system call, with the errno `error`, unless its argument number `argument` is one of
    `values`."""
    steps = [(LOAD, 0, 0, AT_ARGUMENTS[argument]), (AND, 0, 0, mask)]
    for number, value in enumerate(values):
        steps.append((JUMP_EQUAL, len(values) - number, 0, value))
    return [*steps, _refuse(error)]


def _refuse(number: int) -> Step:
    return RETURN, 0, 0, REFUSE | number
