"""Puts a fresh layer over the workspace beneath programs that go on running.

    stop every process ─► look who still holds the old layer ─► (the host takes the layer in) ─► replace it ─► go on

`replaced` is the only step that mounts. By `pivot_root`, every process whose working directory or root is exactly the
workspace moves to the fresh layer with it. Whoever stands deeper, or has something open, keeps the old one: what it
writes there reaches nobody. `holders` finds those, but for a descriptor in flight in a socket. So stopping and looking
serve honest programs; the safety lies in taking the old layer in by copy, and never by moving its files.
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
"""How long processes may take to stop. One that waits for the child of a vfork never does."""
STILL = "TtZX"
MOST_NAMED = 20
_PLACE = os.O_PATH | os.O_CLOEXEC


class StillRunning(Exception):
    """Some processes did not stop."""


class Old:
    """How to recognise what lies in one layer, also after it was taken away."""

    def __init__(self, place: str, device: int, mounts: frozenset[int]) -> None:
        """`mounts` are the numbers of its mount at `place`, and of those on it."""
        self.place = place
        self.device = device
        self.mounts = mounts


def stopped(pids: Callable[[], Iterable[int]]) -> set[int]:
    """Stop every process; those that were not stopped before. They are looked at twice: of two that run, one could wake
    the other and stop itself between two looks. `StillRunning` where some go on."""
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
                go_on(ours)
                raise StillRunning(f"{len(moving)} of its processes could not be stopped")
            time.sleep(0.0002)
    return ours


def go_on(pids: Iterable[int]) -> None:
    """Let processes run that were stopped here."""
    for pid in pids:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGCONT)


def _is_still(pid: int) -> bool:
    """Whether no thread of a process runs."""
    try:
        return all(_state(f"/proc/{pid}/task/{task}/stat") in STILL for task in os.listdir(f"/proc/{pid}/task"))
    except OSError:
        return True  # It ended.


def _living(pid: int) -> list[int]:
    """The threads of a process that have not ended; the first one may have, and leave the others."""
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


def old_layer(place: str) -> Old:
    """The layer that lies over a place now."""
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
    return Old(place, device, frozenset(within))


def holders(pids: Iterable[int], layers: Collection[Old]) -> list[str]:
    """Who would go on writing into these layers, or go on looking at them, in words for people. Files that are only
    read, and programs and libraries that are mapped, are left out: nothing is written through those."""
    found: dict[str, None] = {}
    for pid in pids:
        try:
            for words in _held_by(pid, layers):
                found[words] = None
        except FileNotFoundError:
            continue  # It ended.
        except PermissionError:
            if _living(pid):
                found[f"process {pid} cannot be looked into"] = None
        if len(found) >= MOST_NAMED:
            break
    return [*found][:MOST_NAMED]


def _held_by(pid: int, layers: Collection[Old]) -> Iterator[str]:
    # By thread: each can have a directory and descriptors of its own.
    tasks = _living(pid)
    for task in tasks:
        for name, words in (("cwd", "working directory"), ("root", "root directory")):
            link = f"/proc/{pid}/task/{task}/{name}"
            if (layer := _layer_of(link, layers)) is not None and (path := os.readlink(link)) != layer.place:
                yield f"{words} {_within(path, layer)}"  # Whoever stands at the top moves with the layer.
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


def _by_mapping(own: str, layers: Collection[Old]) -> Iterator[str]:
    with open(f"{own}/maps", "rb") as file:
        for line in file:
            columns = line.split(None, 5)
            if len(columns) < 6 or columns[1][3:4] != b"s":
                continue  # A private mapping: what is written to it reaches no file.
            major, minor = (int(word, 16) for word in columns[3].split(b":"))
            path = os.fsdecode(columns[5].strip())
            for layer in layers:
                if os.makedev(major, minor) == layer.device:
                    yield f"mapping of {_within(path, layer)}"


def _by_descriptor(own: str, number: str, layers: Collection[Old]) -> Iterator[str]:
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


def _layer_of(link: str, layers: Collection[Old]) -> Old | None:
    """The layer in which a process stands. Mounts tell it apart where devices do not."""
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


def _within(path: str, layer: Old) -> str:
    """A path as people know it: relative to where the layer lies. A layer that was taken away has no place any more."""
    if path == layer.place or path.startswith(f"{layer.place.rstrip('/')}/"):
        return os.path.relpath(path, layer.place)
    return path.lstrip("/") or "."


def replaced(place: str, cover: Callable[[], None]) -> None:
    """Put a fresh layer where one lies: `cover` mounts it, and all that belongs on it, over the old one. Where that
    fails, what it mounted is taken away again and the old one stays. Everyone concerned must have been stopped."""
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
            kernel.pivot_root(".", ".")  # The fresh one lies where the old one lay, and the old one on it.
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
    """Take away what was mounted over the old layer."""
    mount = _mount_of(f"/proc/self/fdinfo/{old}")
    while True:
        top = os.open(place, _PLACE | os.O_DIRECTORY)
        is_old = _mount_of(f"/proc/self/fdinfo/{top}") == mount
        os.close(top)
        if is_old:
            return
        kernel.unmount(place)
