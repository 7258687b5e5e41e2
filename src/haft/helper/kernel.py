"""System calls for which Python has no function. Each raises `OSError` with the errno if the kernel refuses."""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct

from haft.helper.abi import own_number

CLONE_NEWNS = 0x0002_0000
CLONE_NEWIPC = 0x0800_0000
CLONE_NEWUSER = 0x1000_0000
CLONE_NEWPID = 0x2000_0000
CLONE_NEWNET = 0x4000_0000

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 1, 2, 4, 8
MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 1 << 18

MNT_DETACH = 2
UMOUNT_NOFOLLOW = 8

ATTR_RDONLY, ATTR_NOSUID, ATTR_NODEV = 1, 2, 4
AT_FDCWD, AT_RECURSIVE, AT_EMPTY_PATH = -100, 0x8000, 0x1000
OPEN_TREE_CLONE = 1
MOVE_FROM_EMPTY, MOVE_TO_EMPTY = 0x04, 0x40

IN_DELETE_SELF = 0x400
KCMP_FILES = 2
SYS_OPEN_TREE, SYS_MOVE_MOUNT, SYS_MOUNT_SETATTR = 428, 429, 442
KEYCTL_JOIN_SESSION_KEYRING = 1

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_KEEPCAPS = 8
PR_CAPBSET_DROP = 24
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38

CAPABILITY_VERSION = 0x2008_0522
ROOT_KEEPS = (0, 1, 3, 4, 6, 7)
"""CHOWN, DAC_OVERRIDE, FOWNER, FSETID, SETGID, SETUID: root needs these to own files in the workspace."""

SIOCSIFFLAGS, IFF_UP, IFF_RUNNING = 0x8914, 0x1, 0x40

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long


def checked(result: int, what: str) -> int:
    """The result of a system call; raises `OSError` if the result is negative."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def unshare(flags: int, what: str) -> None:
    """Move this process into new namespaces."""
    checked(libc.unshare(flags), f"unshare ({what})")


def setns(descriptor: int, kind: int) -> None:
    """Enter a namespace."""
    checked(libc.setns(descriptor, kind), "setns")


def mount(source: str | None, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
    """mount(2)."""
    words = [None if word is None else os.fsencode(word) for word in (source, target, kind, options)]
    checked(libc.mount(words[0], words[1], words[2], ctypes.c_ulong(flags), words[3]), f"mount on {target}")


def unmount(target: str, *, idle: bool = False) -> None:
    """Remove the topmost mount at `target`. With `idle`, raise `OSError` with EBUSY if a process uses the mount."""
    flags = UMOUNT_NOFOLLOW | (0 if idle else MNT_DETACH)
    checked(libc.umount2(os.fsencode(target), flags), f"unmount of {target}")


def pivot_root(root: str, old: str) -> None:
    """Make the mount `root` the root of all paths. The previous root is then mounted at `old`, a path below `root`."""
    checked(libc.pivot_root(os.fsencode(root), os.fsencode(old)), "pivot_root")


def bind(descriptor: int, target: str, *, recursive: bool = True) -> None:
    """Bind the open file or directory `descriptor` to `target`, even if another mount covers its own path."""
    mount(f"/proc/self/fd/{descriptor}", target, None, MS_BIND | (MS_REC if recursive else 0))


def clone_mounts(descriptor: int) -> int:
    """A descriptor of a detached copy of an open directory or file, with all mounts below it."""
    flags = OPEN_TREE_CLONE | os.O_CLOEXEC | AT_EMPTY_PATH | AT_RECURSIVE
    return checked(libc.syscall(SYS_OPEN_TREE, descriptor, b"", flags), "open_tree")


def attach(tree: int, onto: int) -> None:
    """Mount the detached copy `tree` over the open directory or file `onto`."""
    checked(libc.syscall(SYS_MOVE_MOUNT, tree, b"", onto, b"", MOVE_FROM_EMPTY | MOVE_TO_EMPTY), "move_mount")


def share_descriptors(one: int, other: int) -> bool:
    """Whether two threads certainly share their descriptors; False if that is unknown."""
    number = own_number("kcmp")
    return number is not None and libc.syscall(number, one, other, KCMP_FILES, 0, 0) == 0


def cover(descriptor: int, onto: int | None = None, *, add: int = 0, clear: int = 0) -> None:
    """Mount an open file or directory over itself or over `onto`, with changed flags. No path is looked up."""
    empty = b""
    tree = clone_mounts(descriptor)
    try:
        if add or clear:
            attributes = struct.pack("QQQQ", add, clear, 0, 0)
            flags = AT_EMPTY_PATH | (AT_RECURSIVE if add else 0)
            size = ctypes.c_size_t(len(attributes))
            checked(libc.syscall(SYS_MOUNT_SETATTR, tree, empty, flags, attributes, size), "mount_setattr")
        attach(tree, descriptor if onto is None else onto)
    finally:
        os.close(tree)


def open_mount(descriptor: int) -> None:
    """Make a mount writable again. `descriptor` is the root directory of this mount."""
    attributes = struct.pack("QQQQ", 0, ATTR_RDONLY, 0, 0)
    size = ctypes.c_size_t(len(attributes))
    checked(libc.syscall(SYS_MOUNT_SETATTR, descriptor, b"", AT_EMPTY_PATH, attributes, size), "mount_setattr")


def set_mount(path: str, *, add: int = 0, clear: int = 0, recursive: bool = False) -> None:
    """Change the flags of a mount and, if `recursive`, of all mounts below it, in one step."""
    attributes = struct.pack("QQQQ", add, clear, 0, 0)
    flags = AT_RECURSIVE if recursive else 0
    checked(
        libc.syscall(
            SYS_MOUNT_SETATTR, AT_FDCWD, os.fsencode(path), flags, attributes, ctypes.c_size_t(len(attributes))
        ),
        f"mount_setattr on {path}",
    )


def watch(descriptor: int, path: str) -> None:
    """Set an inotify watch that reports when the file system at `path` is finally gone. The watch does not keep the
    file system alive."""
    checked(libc.inotify_add_watch(descriptor, os.fsencode(path), IN_DELETE_SELF), f"watch on {path}")


def prctl(option: int, value: int, what: str) -> None:
    """prctl(2) with one value."""
    checked(libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0), what)


def become_subreaper() -> None:
    """Make orphaned descendants children of this process, and not of the system's init."""
    prctl(PR_SET_CHILD_SUBREAPER, 1, "prctl(PR_SET_CHILD_SUBREAPER)")


def limit_future_capabilities(kept: tuple[int, ...]) -> None:
    """From now on, the processes that this process starts get only the capabilities `kept`. This process keeps its own
    capabilities."""
    _inherit_none()
    for capability in range(64):
        if capability not in kept and libc.prctl(PR_CAPBSET_DROP, ctypes.c_ulong(capability), 0, 0, 0):
            if capability > 40:
                return  # Past the last capability that this kernel knows.
            checked(-1, "prctl(PR_CAPBSET_DROP)")


def keep_capabilities_of_next_user() -> None:
    """Let this process keep its permitted capabilities when it becomes another user."""
    prctl(PR_SET_KEEPCAPS, 1, "prctl(PR_SET_KEEPCAPS)")


def drop_capabilities(kept: tuple[int, ...]) -> None:
    """Drop all capabilities of this process except `kept`."""
    low = sum(1 << each for each in kept)
    header = struct.pack("=Ii", CAPABILITY_VERSION, 0)
    checked(libc.capset(header, struct.pack("=6I", low, low, 0, 0, 0, 0)), "capset")


def _inherit_none() -> None:
    """Clear the inheritable capabilities: root's programs would get them even if the bounding set lacks them."""
    header, sets = struct.pack("=Ii", CAPABILITY_VERSION, 0), ctypes.create_string_buffer(24)
    checked(libc.capget(header, sets), "capget")
    effective, permitted, _, effective_high, permitted_high, _ = struct.unpack("=6I", sets.raw)
    wanted = struct.pack("=6I", effective, permitted, 0, effective_high, permitted_high, 0)
    checked(libc.capset(header, wanted), "capset")


def leave_keyrings() -> None:
    """Join a new session keyring: the host's keyring may contain secrets."""
    if (keyctl := own_number("keyctl")) is not None:
        libc.syscall(keyctl, KEYCTL_JOIN_SESSION_KEYRING, None)


def raise_loopback() -> None:
    """Start the loopback device, which is down in a new network namespace; programs expect it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as end:
        fcntl.ioctl(end, SIOCSIFFLAGS, struct.pack("16sH22x", b"lo", IFF_UP | IFF_RUNNING))


def close_others(kept: set[int]) -> None:
    """Close every descriptor except `kept` and the three streams: a copy of another call's pipe would keep that pipe
    open."""
    low = 3
    for descriptor in sorted(each for each in kept if each >= low):
        os.closerange(low, descriptor)
        low = descriptor + 1
    os.closerange(low, os.sysconf("SC_OPEN_MAX"))


def map_user_to_itself(uid: int, gid: int) -> None:
    """In a new user namespace, map only the current user and group, to themselves."""
    for name, words in maps_to_itself(uid, gid):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(words)


def maps_to_itself(uid: int, gid: int) -> tuple[tuple[str, str], ...]:
    """The files in `/proc/self` that map only this user and group, to themselves; and what to write to each file."""
    return ("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")
