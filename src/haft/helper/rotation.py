"""Mounts a fresh layer over the workspace while programs that use the workspace go on running.

    stop every process ─► find who has the old layer open ─► (the host applies the layer) ─► replace it ─► resume

`replace_layer` is the only step that mounts. By `pivot_root`, every process whose working directory or root is exactly
the workspace moves to the fresh layer. A process with a deeper working directory, or with open files, keeps the old
layer; its later writes are lost. `holders` finds such processes, except for descriptors in flight in a socket. So the
search is complete only for programs that do not try to evade it. Even a program that evades it cannot change applied
files, because haft copies the files of the old layer, and never moves them.
"""

from __future__ import annotations

import contextlib
import os
import signal
import stat
import time
from collections.abc import Callable, Collection, Iterable, Iterator

from haft.helper import kernel

STOP_SECONDS = 2.0
"""How long processes may take to stop. A process that waits for a child of vfork never stops."""
STILL = "TtZX"
MAX_NAMED = 20
_PLACE = os.O_PATH | os.O_CLOEXEC


class StillRunning(Exception):
    """Some processes could not be stopped."""


class OldLayer:
    """The device and mount numbers by which files in one layer are recognised, even after the layer was unmounted."""

    def __init__(self, place: str, device: int, mounts: frozenset[int]) -> None:
        """`mounts` are the number of the layer's mount at `place`, and the numbers of all mounts below that mount."""
        self.place = place
        self.device = device
        self.mounts = mounts


def stop_all(pids: Callable[[], Iterable[int]]) -> set[int]:
    """Stop every process. Returns the pids of the processes that were not stopped already. Each process is checked
    twice: a process could wake another that was checked already, and then stop itself. Raises `StillRunning` if some
    cannot be stopped."""
    ours: set[int] = set()
    until = time.monotonic() + STOP_SECONDS
    still_for = 0
    while still_for < 2:
        moving = [pid for pid in pids() if not _is_still(pid)]
        still_for = 0 if moving else still_for + 1
        for pid in moving:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGSTOP)
                ours.add(pid)
        if moving:
            if time.monotonic() > until:
                resume(ours)
                raise StillRunning(f"{len(moving)} of its processes could not be stopped")
            time.sleep(0.0002)
    return ours


def resume(pids: Iterable[int]) -> None:
    """Resume processes that `stop_all` stopped."""
    for pid in pids:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGCONT)


def _is_still(pid: int) -> bool:
    """Whether no thread of a process runs."""
    try:
        return all(_state(f"/proc/{pid}/task/{task}/stat") in STILL for task in os.listdir(f"/proc/{pid}/task"))
    except OSError:
        return True  # The process ended.


def _living(pid: int) -> list[int]:
    """The threads of a process that have not ended; the main thread may end before the others."""
    found = []
    with contextlib.suppress(FileNotFoundError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError):
                if _state(f"/proc/{pid}/task/{task}/stat") not in "ZX":
                    found.append(int(task))
    return found


def _state(path: str) -> str:
    with open(path, "rb") as file:
        return file.read().rsplit(b")", 1)[1].split()[0].decode()


def current_layer(place: str) -> OldLayer:
    """The layer that is mounted at a path now."""
    top = os.open(place, _PLACE | os.O_DIRECTORY)
    try:
        device, number = os.fstat(top).st_dev, _mount_of(f"/proc/self/fdinfo/{top}")
    finally:
        os.close(top)
    within = {number}
    with open("/proc/self/mountinfo", "rb") as file:
        known = [tuple(map(int, line.split(b" ", 2)[:2])) for line in file]
    while added := {mount for mount, parent in known if parent in within} - within:
        within |= added
    return OldLayer(place, device, frozenset(within))


def holders(pids: Iterable[int], layers: Collection[OldLayer]) -> list[str]:
    """Descriptions, for people, of the files and directories in these layers that processes keep open. Files open for
    reading, and mapped programs and libraries, are left out: nothing is written through them."""
    found: dict[str, None] = {}
    for pid in pids:
        try:
            for words in _held_by(pid, layers):
                found[words] = None
        except FileNotFoundError:
            continue  # The process ended.
        except PermissionError:
            if _living(pid):
                found[f"process {pid} cannot be inspected"] = None
        if len(found) >= MAX_NAMED:
            break
    return [*found][:MAX_NAMED]


def _held_by(pid: int, layers: Collection[OldLayer]) -> Iterator[str]:
    # By thread: each can have its own directory and descriptors.
    tasks = _living(pid)
    for task in tasks:
        for name, words in (("cwd", "working directory"), ("root", "root directory")):
            link = f"/proc/{pid}/task/{task}/{name}"
            if (layer := _layer_of(link, layers)) is not None and (path := os.readlink(link)) != layer.place:
                yield f"{words} {_within(path, layer)}"  # A process at the top itself moves to the fresh layer.
    looked_at: list[int] = []
    for task in tasks:
        if any(kernel.share_descriptors(task, other) for other in looked_at):
            continue
        looked_at.append(task)
        own = f"/proc/{pid}/task/{task}"
        with contextlib.suppress(FileNotFoundError):
            for number in os.listdir(f"{own}/fd"):
                with contextlib.suppress(FileNotFoundError):
                    yield from _by_descriptor(own, number, layers)
    for task in tasks[:1]:
        yield from _by_mapping(f"/proc/{pid}/task/{task}", layers)


def _by_mapping(own: str, layers: Collection[OldLayer]) -> Iterator[str]:
    with open(f"{own}/maps", "rb") as file:
        for line in file:
            columns = line.split(None, 5)
            if len(columns) < 6 or columns[1][3:4] != b"s":
                continue  # Writes to a private mapping reach no file.
            major, minor = (int(word, 16) for word in columns[3].split(b":"))
            path = os.fsdecode(columns[5].strip())
            for layer in layers:
                if os.makedev(major, minor) == layer.device:
                    yield f"mapping of {_within(path, layer)}"


def _by_descriptor(own: str, number: str, layers: Collection[OldLayer]) -> Iterator[str]:
    link = f"{own}/fd/{number}"
    with open(f"{own}/fdinfo/{number}", "rb") as file:
        info = file.read()
    if b"inotify wd:" in info or b"fanotify ino:" in info:
        for line in info.splitlines():
            if b" sdev:" in line:
                encoded = int(line.split(b" sdev:", 1)[1].split()[0], 16)
                if any(os.makedev(encoded >> 20, encoded & 0xFFFFF) == layer.device for layer in layers):
                    yield "a watch for changes (inotify)"
                    return
        return
    mount = _field(info, b"mnt_id:")
    status = os.stat(link)
    layer = next((one for one in layers if mount in one.mounts or status.st_dev == one.device), None)
    if layer is None:
        return
    flags = int(info.split(b"flags:", 1)[1].split(None, 1)[0], 8)
    path = _within(os.readlink(link), layer)
    if stat.S_ISDIR(status.st_mode):
        yield f"directory {path}, open"
    elif flags & os.O_ACCMODE != os.O_RDONLY:
        yield f"{path}, open for writing"


def _layer_of(link: str, layers: Collection[OldLayer]) -> OldLayer | None:
    """The layer that contains the directory behind `link`, which is in `/proc`; None if no layer contains it. The
    directory belongs to a layer if it has the device number of this layer, or the number of one of its mounts."""
    try:
        place = os.open(link, _PLACE)
    except FileNotFoundError:
        return None
    try:
        device, mount = os.fstat(place).st_dev, _mount_of(f"/proc/self/fdinfo/{place}")
    finally:
        os.close(place)
    return next((one for one in layers if mount in one.mounts or device == one.device), None)


def _mount_of(path: str) -> int:
    with open(path, "rb") as file:
        return _field(file.read(), b"mnt_id:")


def _field(info: bytes, name: bytes) -> int:
    return int(info.split(name, 1)[1].split(None, 1)[0])


def _within(path: str, layer: OldLayer) -> str:
    """The path relative to the workspace. Paths in an unmounted layer begin at that layer's top already."""
    if path == layer.place or path.startswith(f"{layer.place.rstrip('/')}/"):
        return os.path.relpath(path, layer.place)
    return path.lstrip("/") or "."


def replace_layer(place: str, cover: Callable[[], None]) -> None:
    """Replace the layer at `place`: `cover` mounts the fresh layer, with everything that belongs in it, over the old
    one. If `cover` fails, the mounts that it made are removed, and the old layer stays. All processes that use the
    layer must have been stopped."""
    old = os.open(place, _PLACE | os.O_DIRECTORY)
    root = os.open("/", _PLACE | os.O_DIRECTORY)
    here = os.open(".", _PLACE | os.O_DIRECTORY)
    try:
        try:
            cover()
        except BaseException:
            _uncover(place, old)
            raise
        fresh = os.open(place, _PLACE | os.O_DIRECTORY)
        try:
            os.fchdir(old)
            os.chroot(".")
            os.fchdir(fresh)
            kernel.pivot_root(".", ".")  # The fresh layer takes the place of the old one, which is now on top of it.
            kernel.unmount(".")
        finally:
            os.fchdir(root)
            os.chroot(".")
            os.close(fresh)
        with contextlib.suppress(OSError):
            os.fchdir(here)
    finally:
        for descriptor in (old, root, here):
            os.close(descriptor)


def _uncover(place: str, old: int) -> None:
    """Unmount everything that is mounted over the old layer."""
    mount = _mount_of(f"/proc/self/fdinfo/{old}")
    while True:
        top = os.open(place, _PLACE | os.O_DIRECTORY)
        is_old = _mount_of(f"/proc/self/fdinfo/{top}") == mount
        os.close(top)
        if is_old:
            return
        kernel.unmount(place)
