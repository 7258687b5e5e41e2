"""Run a command on a machine that lacks something: `without.py NAME... -- COMMAND...`.

A seccomp filter makes the system calls of each NAME fail as they would on such a machine, for the command and whatever
it starts.
"""

import ctypes
import errno
import os
import platform
import struct
import sys

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP = 38, 22
LOAD, JUMP_EQUAL, JUMP_ANY_BIT, RETURN = 0x20, 0x15, 0x45, 0x06
ALLOW, REFUSE = 0x7FFF_0000, 0x0005_0000
AT_NUMBER, AT_ARCHITECTURE, AT_FIRST_ARGUMENT, AT_THIRD_ARGUMENT = 0, 4, 16, 32

NEWNS, NEWUSER, NEWPID, NEWNET = 0x0002_0000, 0x1000_0000, 0x2000_0000, 0x4000_0000

ARCHITECTURE, NUMBERS = {
    "x86_64": (0xC000_003E, {"unshare": 272, "mount": 165, "mkdir": 83, "mkdirat": 258, "ptrace": 101}),
    "aarch64": (0xC000_00B7, {"unshare": 97, "mount": 40, "mkdirat": 34, "ptrace": 117}),
}[platform.machine()]
NUMBERS |= {"mount_setattr": 442, "landlock_create_ruleset": 444}

LACKING = {
    "landlock": [("landlock_create_ruleset", errno.ENOSYS, 0)],
    "landlock-enabled": [("landlock_create_ruleset", errno.EOPNOTSUPP, 0)],
    "namespaces": [("unshare", errno.EPERM, 0)],
    "user-namespaces": [("unshare", errno.EPERM, NEWUSER)],
    "more-user-namespaces": [("unshare", errno.ENOSPC, NEWUSER), ("unshare", errno.EPERM, NEWPID)],
    "mount-namespaces": [("unshare", errno.EPERM, NEWNS)],
    "pid-namespaces": [("unshare", errno.EPERM, NEWPID)],
    "network-namespaces": [("unshare", errno.EPERM, NEWNET)],
    "tracing": [("ptrace", errno.EPERM, 0)],
    "mounts": [("mount", errno.EPERM, 0)],
    "mount-attributes": [("mount_setattr", errno.ENOSYS, 0)],
}
"""By what is lacking: the system call, how it fails, and with which bits in its first argument; 0: always."""


def refusal(name: str, number: int, bits: int) -> list[tuple[int, int, int, int]]:
    refused = (RETURN, 0, 0, REFUSE | number)
    steps = [(JUMP_ANY_BIT, 0, 1, bits), refused] if bits else [refused]
    if bits:
        steps = [(LOAD, 0, 0, AT_FIRST_ARGUMENT), *steps]
    return [(LOAD, 0, 0, AT_NUMBER), (JUMP_EQUAL, 0, len(steps), NUMBERS[name]), *steps]


def restrict(names: list[str]) -> None:
    steps = [(LOAD, 0, 0, AT_ARCHITECTURE), (JUMP_EQUAL, 1, 0, ARCHITECTURE), (RETURN, 0, 0, ALLOW)]
    for name in names:
        for call, number, bits in LACKING[name]:
            steps += refusal(call, number, bits)
    steps.append((RETURN, 0, 0, ALLOW))
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in steps))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        sys.exit("no_new_privs cannot be set")
    if libc.prctl(PR_SET_SECCOMP, 2, struct.pack("@HP", len(steps), ctypes.addressof(code)), 0, 0):
        sys.exit(f"the filter was refused: {os.strerror(ctypes.get_errno())}")


if __name__ == "__main__":
    end = sys.argv.index("--")
    restrict(sys.argv[1:end])
    os.execvp(sys.argv[end + 1], sys.argv[end + 1 :])
