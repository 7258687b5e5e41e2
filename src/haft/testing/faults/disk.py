"""A small disk for the world of one scenario: a file system in memory, in a mount namespace of this process.

Only processes that this process starts see it. The state home lies on a second one, which stays large: haft itself can
still write its journal.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
from typing import Final, Self

from haft.testing.calls.world import World
from haft.testing.scenarios.scenario import Unfit

_NEW_MOUNTS: Final = 0x0002_0000
_NEW_USERS: Final = 0x1000_0000
_PRIVATE: Final = 1 << 18
_RECURSIVE: Final = 1 << 14
_REMOUNT: Final = 1 << 5
_DETACH: Final = 2
_LARGE: Final = 1 << 30


class SmallDiskWorld(World):
    """A world whose workspace lies on a disk of its own."""

    def __enter__(self) -> Self:
        try:
            own_mount_namespace()
            _mount(self.root, _LARGE)
        except OSError as error:
            self.close()
            raise Unfit(f"a disk cannot be full here: this machine allows no mounts ({error.strerror})") from error
        # The size 0 would mean that there is no limit.
        with open(os.path.join(self.root, ".one-page"), "wb") as file:
            file.write(b"\n")
        super().__enter__()
        _mount(self.state, _LARGE)
        self.share_environments()
        return self

    def fill(self, free: int) -> None:
        """Leave only so many bytes free."""
        status = os.statvfs(self.root)
        used = (status.f_blocks - status.f_bfree) * status.f_frsize
        _mount(self.root, used + free, _REMOUNT)

    def empty(self) -> None:
        """Let the disk have space again."""
        _mount(self.root, _LARGE, _REMOUNT)

    def close(self) -> None:
        for path in (self.state, self.root):
            with contextlib.suppress(OSError):
                _called("umount2", os.fsencode(path), _DETACH)
        super().close()


def own_mount_namespace() -> None:
    """Give this process a mount namespace. If it has not the right, it first gets a user namespace, in which it is the
    same user. Raises `OSError` if the machine allows neither."""
    try:
        _called("unshare", _NEW_MOUNTS)
    except PermissionError:
        user, group = os.geteuid(), os.getegid()
        _called("unshare", _NEW_USERS | _NEW_MOUNTS)
        for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)
    _called("mount", b"none", b"/", None, ctypes.c_ulong(_PRIVATE | _RECURSIVE), None)


def _mount(path: str, size: int, flags: int = 0) -> None:
    options = f"size={size},mode=0700".encode()
    _called("mount", b"haft-test", os.fsencode(path), b"tmpfs", ctypes.c_ulong(flags), options)


def _called(name: str, *arguments: object) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, name)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), name)
