"""System call numbers by name, for each ABI of the kernel.

A 64-bit kernel also runs 32-bit programs, which have numbers of their own: a filter must know both. For its own system
calls, this process needs the numbers of its own word size, which the kernel's machine name does not tell: a 32-bit
Python also runs on a 64-bit kernel.
"""

from __future__ import annotations

import os
import re
import struct
from typing import NamedTuple

SINCE_424 = {
    "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "open_tree": 428, "move_mount": 429,
    "clone3": 435, "pidfd_getfd": 438, "mount_setattr": 442, "memfd_secret": 447,
}  # fmt: skip
"""System calls that have the same number on every architecture, as all calls from number 424 on do."""

GENERIC = {
    "io_setup": 0, "mount": 40, "vmsplice": 75, "unshare": 97, "ptrace": 117, "socket": 198, "socketpair": 199,
    "add_key": 217, "request_key": 218, "keyctl": 219, "clone": 220, "execve": 221, "perf_event_open": 241,
    "prlimit64": 261, "setns": 268, "process_vm_readv": 270, "process_vm_writev": 271, "kcmp": 272,
    "memfd_create": 279, "bpf": 280, "execveat": 281,
}  # fmt: skip
"""System call numbers that aarch64 and later architectures share."""


class Abi(NamedTuple):
    """One ABI of a kernel."""

    audit: int
    """The number by which a seccomp filter recognises this ABI."""
    bits: int
    numbers: dict[str, int]


FAMILIES: dict[str, tuple[Abi, ...]] = {
    "x86": (
        Abi(0xC000_003E, 64, SINCE_424 | {
            "socket": 41, "socketpair": 53, "clone": 56, "ptrace": 101, "add_key": 248, "request_key": 249,
            "keyctl": 250, "unshare": 272, "prlimit64": 302, "io_setup": 206, "vmsplice": 278, "memfd_create": 319,
            "kcmp": 312, "execve": 59, "mount": 165, "perf_event_open": 298, "setns": 308, "process_vm_readv": 310,
            "process_vm_writev": 311, "bpf": 321, "execveat": 322,
        }),
        Abi(0x4000_0003, 32, SINCE_424 | {
            "ptrace": 26, "socketcall": 102, "clone": 120, "add_key": 286, "request_key": 287, "keyctl": 288,
            "unshare": 310, "prlimit64": 340, "socket": 359, "socketpair": 360, "io_setup": 245, "vmsplice": 316,
            "kcmp": 349, "memfd_create": 356,
        }),
    ),
    "arm": (
        Abi(0xC000_00B7, 64, SINCE_424 | GENERIC),
        Abi(0x4000_0028, 32, SINCE_424 | {
            "ptrace": 26, "clone": 120, "socket": 281, "socketpair": 288, "add_key": 309, "request_key": 310,
            "keyctl": 311, "unshare": 337, "prlimit64": 369, "io_setup": 243, "vmsplice": 343, "memfd_create": 385,
            "kcmp": 378,
        }),
    ),
    "riscv": (Abi(0xC000_00F3, 64, SINCE_424 | GENERIC),),
}  # fmt: skip
"""For each family of machines, the ABIs that its kernels run."""

MACHINES = {r"x86_64|i[3-6]86": "x86", r"aarch64|armv[678]l": "arm", r"riscv64": "riscv"}
"""Maps patterns of the kernel's machine name to families. With `setarch`, a 64-bit kernel reports a 32-bit name."""


def family(machine: str) -> str | None:
    """The family (such as `x86`) of a kernel's machine name (such as `x86_64`); None if haft does not know the system
    call numbers of such a machine."""
    return next((name for pattern, name in MACHINES.items() if re.fullmatch(pattern, machine)), None)


def kernel_abis() -> tuple[Abi, ...]:
    """Every ABI of this machine's kernel; empty if haft does not know them."""
    found = family(os.uname().machine)
    return FAMILIES[found] if found else ()


def own_number(call: str) -> int | None:
    """The number of a system call for this process; None if haft does not know the number."""
    bits = struct.calcsize("P") * 8
    return next((way.numbers.get(call) for way in kernel_abis() if way.bits == bits), None)
