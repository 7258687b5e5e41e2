"""Landlock, a second protection in addition to namespaces. After a process has restricted itself, neither the process
nor its children can write outside the named paths or mount anything, ever again.

Landlock does not check chmod, chown, utime, xattr, mknod or UDP, so Landlock alone is no sandbox. The namespaces are
the sandbox.
"""

from __future__ import annotations

import ctypes
import os
import stat
import struct
from collections.abc import Sequence

from haft.helper.kernel import PR_SET_NO_NEW_PRIVS, checked, libc, prctl

SYS_CREATE, SYS_ADD_RULE, SYS_RESTRICT = 444, 445, 446
VERSION_FLAG = 1
RULE_PATH = 1

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1, 2, 4, 8
TRUNCATE, IOCTL_DEVICE = 1 << 14, 1 << 15
OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEVICE
"""The rights that apply to a file that is not a directory."""

BIND_TCP, CONNECT_TCP = 1, 2
SCOPE_ABSTRACT_SOCKETS, SCOPE_SIGNALS = 1, 2

RIGHTS_BY_VERSION = {1: 13, 2: 14, 3: 15, 4: 15}
"""How many file rights each version has; from version 5 on we use sixteen."""
FIRST_WITH_TCP, FIRST_WITH_SCOPES = 4, 6


def version() -> int:
    """The Landlock version of this kernel; 0 if the kernel has no Landlock."""
    found: int = libc.syscall(SYS_CREATE, None, ctypes.c_size_t(0), VERSION_FLAG)
    return max(found, 0)


def restrict(writable: Sequence[str | int], *, tcp: bool, abi: int, executable: Sequence[str] | None = None) -> None:
    """Restrict this process and its children: they may read everywhere, and write only below `writable`, which are
    paths or descriptors. Without `tcp`, they can neither connect nor listen over TCP. They may execute only the files
    at or below `executable`; any file if it is None."""
    rules = ruleset(writable, tcp=tcp, abi=abi, executable=executable)
    try:
        prctl(PR_SET_NO_NEW_PRIVS, 1, "prctl(PR_SET_NO_NEW_PRIVS)")
        checked(libc.syscall(SYS_RESTRICT, rules, 0), "landlock_restrict_self")
    finally:
        os.close(rules)


def restrict_to_reading(paths: Sequence[str], *, abi: int) -> None:
    """Restrict this process: it may read only below `paths`, and write nowhere. Its sockets are not restricted."""
    rights = (1 << RIGHTS_BY_VERSION.get(abi, 16)) - 1
    words = [rights]
    if abi >= FIRST_WITH_SCOPES:
        words += [0, SCOPE_ABSTRACT_SOCKETS | SCOPE_SIGNALS]
    attributes = struct.pack(f"{len(words)}Q", *words)
    rules = checked(libc.syscall(SYS_CREATE, attributes, ctypes.c_size_t(len(attributes)), 0), "landlock ruleset")
    try:
        for path in paths:
            _allow(rules, path, EXECUTE | READ_FILE | READ_DIR, rights)
        prctl(PR_SET_NO_NEW_PRIVS, 1, "prctl(PR_SET_NO_NEW_PRIVS)")
        checked(libc.syscall(SYS_RESTRICT, rules, 0), "landlock_restrict_self")
    finally:
        os.close(rules)


def ruleset(writable: Sequence[str | int], *, tcp: bool, abi: int, executable: Sequence[str] | None = None) -> int:
    """A descriptor of the rules that `restrict` describes; a process can restrict itself with this descriptor."""
    rights = (1 << RIGHTS_BY_VERSION.get(abi, 16)) - 1
    words = [rights]
    if abi >= FIRST_WITH_TCP:
        words.append(0 if tcp else BIND_TCP | CONNECT_TCP)
    if abi >= FIRST_WITH_SCOPES:
        words.append(SCOPE_ABSTRACT_SOCKETS | SCOPE_SIGNALS)
    attributes = struct.pack(f"{len(words)}Q", *words)
    rules = checked(libc.syscall(SYS_CREATE, attributes, ctypes.c_size_t(len(attributes)), 0), "landlock ruleset")
    try:
        execute = EXECUTE if executable is None else 0
        _allow(rules, "/", execute | READ_FILE | READ_DIR, rights)
        for path in writable:
            _allow(rules, path, rights & ~EXECUTE | execute, rights)
        for path in executable or ():
            _allow(rules, path, EXECUTE, rights)
    except BaseException:
        os.close(rules)
        raise
    return rules


def _allow(rules: int, path: str | int, access: int, known: int) -> None:
    try:
        place = os.dup(path) if isinstance(path, int) else os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        if not stat.S_ISDIR(os.fstat(place).st_mode):
            access &= OF_FILES
        rule = struct.pack("=Qi", access & known, place)
        checked(libc.syscall(SYS_ADD_RULE, rules, RULE_PATH, rule, 0), f"landlock rule for {path}")
    finally:
        os.close(place)
