"""The area of a workspace: the directory that holds its layers and its originals (replaced files).

Originals are moved, not copied, if a rename can move a file from the workspace to the area. So the area is in the state
home if a rename from the workspace to the state home works. If not, the area is beside the workspace, if a rename works
there. If neither works, the area is in the state home, and originals are copied.

    AREA/live/HOST/RUN/   running transactions: `upper` and the like; `manifest` and `out` once the commit begins
    AREA/held/RUN/        change sets that wait for a person
    AREA/kept/RUN/        committed change sets: `manifest`, and in `out` the files they replaced
    AREA/saved/RUN/       files that a failed commit had replaced and could not put back
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import sys
from typing import Final

from haft.files import owner_only
from haft.files import remove as remove
from haft.values import dataclass

UNFIT_FOR_LAYERS: Final = (
    "overlay",
    "nfs",
    "nfs4",
    "cifs",
    "smb3",
    "9p",
    "virtiofs",
    "vfat",
    "exfat",
    "ntfs",
    "ntfs3",
    "ecryptfs",
)
"""Filesystems that cannot hold a layer."""


@dataclass(frozen=True, slots=True)
class Area:
    """The area of one workspace, and the paths of its subdirectories."""

    path: str
    workspace: str
    lock: str
    """The file whose lock is held while the workspace changes."""
    can_move: bool
    """Whether a rename can move a file from the workspace to the area."""

    @property
    def live(self) -> str:
        return os.path.join(self.path, "live")

    @property
    def held(self) -> str:
        return os.path.join(self.path, "held")

    @property
    def kept(self) -> str:
        return os.path.join(self.path, "kept")

    @property
    def saved(self) -> str:
        return os.path.join(self.path, "saved")

    def prepare(self) -> None:
        for path in (self.path, self.live, self.held, self.kept):
            os.makedirs(path, mode=0o700, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            os.close(os.open(self.lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))


def workspace_key(workspace: str) -> str:
    """A digest of a workspace's path. It is a short name for the workspace, and can be used as a file name."""
    return hashlib.sha256(os.fsencode(workspace)).hexdigest()[:20]


def find_area(home: str, workspace: str) -> Area:
    """The area of a workspace. It is chosen at the first call, and its path is written to the state home. `home` is the
    state home's directory for all workspaces."""
    own = os.path.join(home, workspace_key(workspace))
    lock = os.path.join(own, "lock")
    os.makedirs(own, mode=0o700, exist_ok=True)
    noted = os.path.join(own, "area")
    with contextlib.suppress(OSError), open(noted, "rb") as file:
        path = os.fsdecode(file.read())
        if os.path.isdir(path):
            return Area(path, workspace, lock, can_rename_between(workspace, path))
    path = own
    if not can_rename_between(workspace, own):
        beside = _beside(workspace)
        path = beside or own
    area = Area(path, workspace, lock, can_rename_between(workspace, path))
    area.prepare()
    _write_note(noted, os.fsencode(path))
    _write_note(os.path.join(own, "workspace"), os.fsencode(workspace))
    return area


def known_areas(home: str) -> list[Area]:
    """The areas of all workspaces in a state home. `home` is the state home's directory for all workspaces."""
    found = []
    with contextlib.suppress(FileNotFoundError):
        for name in sorted(os.listdir(home)):
            with contextlib.suppress(OSError):
                workspace = _read_note(os.path.join(home, name, "workspace"))
                path = _read_note(os.path.join(home, name, "area"))
                found.append(
                    Area(path, workspace, os.path.join(home, name, "lock"), can_rename_between(workspace, path))
                )
    return found


def _read_note(path: str) -> str:
    with open(path, "rb") as file:
        return os.fsdecode(file.read())


def _write_note(path: str, words: bytes) -> None:
    temporary = f"{path}.{os.getpid()}"
    with open(temporary, "wb", opener=owner_only) as file:
        file.write(words)
    os.rename(temporary, path)


def _beside(workspace: str) -> str | None:
    """Make a private directory beside the workspace and return its path; None if that fails or the directory is on
    another mount."""
    path = os.path.join(os.path.dirname(workspace), f".haft-{os.geteuid()}-{workspace_key(workspace)}")
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        found = os.lstat(path)
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
            return None
    except OSError:
        return None
    if can_rename_between(workspace, path):
        return path
    with contextlib.suppress(OSError):
        os.rmdir(path)
    return None


def identity(workspace: str) -> tuple[int, int]:
    """The device and inode of a directory, without following a link; zeros if it does not exist."""
    try:
        found = os.lstat(workspace)
    except OSError:
        return 0, 0
    return found.st_dev, found.st_ino


def can_rename_between(workspace: str, path: str) -> bool:
    """Whether a rename can move a file from one directory to the other. A rename fails between two mounts, even if they
    are mounts of one filesystem and have the same device number: so the mount ids are compared too."""
    try:
        return os.stat(workspace).st_dev == os.stat(path).st_dev and _mount_id(workspace) == _mount_id(path)
    except OSError:
        return False


def _mount_id(path: str) -> int:
    if sys.platform != "linux":
        return 0
    descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        with open(f"/proc/self/fdinfo/{descriptor}", "rb") as file:
            for line in file:
                if line.startswith(b"mnt_id:"):
                    return int(line.split()[1])
    finally:
        os.close(descriptor)
    return 0


def filesystem(path: str) -> str:
    """The kind of filesystem that holds a directory; empty if unknown."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, ValueError):
            number = b"%d" % _mount_id(path)
            with open("/proc/self/mountinfo", "rb") as file:
                for line in file:
                    words = line.split(b" ")
                    if words[0] == number:
                        return words[words.index(b"-") + 1].decode()
    return ""


def mounts_inside(workspace: str) -> list[str]:
    """The mount points inside a workspace."""
    found = []
    with contextlib.suppress(OSError), open("/proc/self/mountinfo", "rb") as file:
        for line in file:
            path = os.fsdecode(line.split(b" ")[4].decode("unicode_escape").encode("latin-1"))
            if path.startswith(workspace.rstrip("/") + "/"):
                found.append(path)
    return found


def boot_id() -> str:
    """The id of the current boot; empty if unknown. If it is the same as before, the power has not failed since."""
    with contextlib.suppress(OSError), open("/proc/sys/kernel/random/boot_id") as file:
        return file.read().strip()
    return ""
