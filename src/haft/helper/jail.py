"""The sandbox itself: mounts and namespaces, in three steps.

- `Template`: once, in the zygote. Everything is read-only, `/dev` is a small one of our own, secrets are masked.
- `furnish`: in each init, ahead of its call. Its own processes, network and scratch places; what lies in a hidden place
  and must be seen is bound back.
- `open_up`: when the call is known. The workspace becomes writable where it may, but for what is protected in it.

Mount namespaces are copied from the step before, so each does only what the one before could not know. Descriptors of
the host never come in here: through one of its directories a command would be outside again.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import stat
from collections.abc import Callable, Iterable
from typing import Any

from haft.helper import kernel
from haft.helper.host_sockets import HostSockets
from haft.helper.kept import THREADS, Kept
from haft.helper.kernel import ATTR_NODEV, ATTR_NOSUID, ATTR_RDONLY, MS_NODEV, MS_NOEXEC, MS_NOSUID, MS_RDONLY
from haft.helper.paths import WrittenFile, identity, walked, walked_from_top
from haft.helper.protect import protect

DEVICES = {"null": (1, 3), "zero": (1, 5), "full": (1, 7), "random": (1, 8), "urandom": (1, 9), "tty": (5, 0)}
LINKS = {"fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2", "ptmx": "pts/ptmx"}
LAYERS = "/dev/.layers"
"""Where calls find their layers; taken away before a command starts."""
NOTHING = "/dev/.nothing"
"""An empty directory, to be shown where one is masked."""
OWN_ROOT = "/dev/shm/root"  # noqa: S108  in the scratch place of the room
"""Where the root of a call that nobody approved is put together."""
HOST = "/.host"
"""Where the host's files are, in such a root, until everything was bound."""
SCRATCH_FILES = 1_000_000
"""How many files all scratch places of a call may hold: names take memory too."""


FIRST_TO_GO = 500
"""How much sooner the kernel kills commands, of a thousand: small ones too go before the process that watches them."""


def opened(path: str, flags: int = os.O_PATH) -> int | None:
    """A descriptor to bind from; None where there is nothing."""
    try:
        return os.open(path, flags | os.O_CLOEXEC)
    except OSError:
        return None


def opened_as_meant(path: str, rest: list[Any]) -> int | None:
    """The same, where the host said which file it meant: another one in its place is not shown."""
    if len(rest) < 2:
        return opened(path)
    place = walked_from_top(path)
    if place is None or identity(place) != rest[1]:
        raise WrittenFile(path)
    return place


class Template:
    """What all calls of a host have in common."""

    def __init__(self, site: dict[str, Any], *, in_user_namespace: bool, filters: dict[bool, bytes]) -> None:
        self.site = site
        self.filters = filters
        """For system calls, by whether nobody approved the call."""
        self.workspace: str = site["workspace"]
        self.in_user_namespace = in_user_namespace
        self.open_mounts: list[tuple[str, list[int]]] = []
        """The mounts at and below the workspace that the host can write to, by their path in it, and which they are."""
        self.root: list[int] = []
        """Which directory the workspace is."""

    def enter(self) -> None:
        """Leave the host's mounts for a copy that nothing can be written to."""
        kernel.unshare(kernel.CLONE_NEWNS, "mounts")
        kernel.mount(None, "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
        place = os.open(self.workspace, os.O_PATH | os.O_CLOEXEC | os.O_DIRECTORY)
        self.root = identity(place)
        kernel.bind(place, self.workspace)
        os.close(place)
        for path in writable_mounts(self.workspace):
            if (mounted := walked_from_top(path)) is not None:
                self.open_mounts.append((os.path.relpath(path, self.workspace), identity(mounted)))
                os.close(mounted)
        devices = {name: opened(f"/dev/{name}") for name in DEVICES}
        kernel.set_mount("/", add=ATTR_RDONLY | ATTR_NOSUID | ATTR_NODEV, recursive=True)
        self._build_devices(devices)
        self.mask()

    def mask(self) -> None:
        """Show nothing where secrets lie that no file mode keeps from root."""
        for path in self.site["mask"]:
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                found = os.lstat(path)
                over = NOTHING if stat.S_ISDIR(found.st_mode) else "/dev/null"
                if not os.path.samestat(found, os.stat(over)):
                    kernel.mount(over, path, None, kernel.MS_BIND)

    def _build_devices(self, devices: dict[str, int | None]) -> None:
        kernel.mount("haft", "/dev", "tmpfs", MS_NOSUID | MS_NOEXEC, "mode=0755,size=64k,nr_inodes=64")
        for name, descriptor in devices.items():
            if descriptor is None:
                continue
            path = f"/dev/{name}"
            if not self._make_device(path, name):
                os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666))
                kernel.bind(descriptor, path, recursive=False)
                kernel.set_mount(path, clear=ATTR_NODEV)  # A device can be written to on a read-only mount.
            os.close(descriptor)
        for name, target in LINKS.items():
            os.symlink(target, f"/dev/{name}")
        for directory in ("/dev/shm", "/dev/pts", NOTHING, LAYERS, THREADS):  # noqa: S108  made here, in a /dev of our own
            os.mkdir(directory, 0o755)
        kernel.set_mount("/dev", add=ATTR_RDONLY)
        for path, place in self.brought():
            kernel.mount(path, place, None, kernel.MS_BIND)
            kernel.set_mount(place, clear=ATTR_RDONLY)

    def brought(self) -> list[tuple[str, str]]:
        """What of haft's own is there until a call begins: where it lies, and where it is found."""
        own = (self.site["layers"], LAYERS), (self.site["threads"], THREADS)
        return [(path, place) for path, place in own if path is not None]

    def _make_device(self, path: str, name: str) -> bool:
        """False in a user namespace, ours or that of a container: there the host's own is shown."""
        if self.in_user_namespace:
            return False
        try:
            os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(*DEVICES[name]))
        except PermissionError:
            return False
        os.chmod(path, 0o666)  # noqa: S103  as devices for everyone have it
        return True


def writable_mounts(root: str) -> list[str]:
    """The mounts at and below `root` that can be written to."""
    found = []
    with open("/proc/self/mountinfo", "rb") as file:
        for line in file:
            words = line.split(b" ")  # Only these stand between the fields: a path may hold other blanks.
            path = os.fsdecode(words[4].decode("unicode_escape").encode("latin-1"))
            if (path == root or path.startswith(root.rstrip("/") + "/")) and b"rw" in words[5].split(b","):
                found.append(path)
    return list(dict.fromkeys(found))


def mounts_below(root: str) -> list[tuple[str, bytes]]:
    """The mounts at and below `root`, the first made first, each with its kind."""
    found = []
    with open("/proc/self/mountinfo", "rb") as file:
        for line in file:
            left, _, right = line.partition(b" - ")
            path = os.fsdecode(left.split(b" ")[4].decode("unicode_escape").encode("latin-1"))
            if path == root or path.startswith(root.rstrip("/") + "/"):
                found.append((path, right.split(b" ", 1)[0]))
    return found


Bound = tuple[str, int | None, bool]
"""Where something is to be seen, a descriptor of it where there is something, and whether it may be written."""


def _depth(path: str) -> tuple[int, str]:
    return path.rstrip("/").count("/"), path


class Room:
    """One call's place, from `furnish` to its end."""

    def __init__(
        self,
        template: Template,
        *,
        network: bool,
        extra: list[list[Any]],
        links: list[list[str]],
        sealed: bool,
        unasked: bool,
        scoped: bool = False,
    ) -> None:
        self._template = template
        self._unasked = unasked
        """Whether nobody approved the call: then it has a root of its own, with a part of the host in it."""
        self._scoped = scoped
        """Whether a call that only reads sees the workspace with what its caller has changed: it needs layers too."""
        self.share: socket.socket | None = None
        """Where the host waits for a view of what lies under the call's layer and in it."""
        self._devices: int | None = None
        self._sealed = sealed or template.site["required"]
        """Whether what could be had at the start must be had now: that it is used up opens nothing."""
        self._site = template.site
        self._network = network
        self._extra = extra
        """What is granted to this call alone: source, target, and whether it may be written."""
        self._links = links
        """Names by which this call looks for what it is shown: each with where it leads."""
        self._caches: list[tuple[int, str]] = []
        self._own_proc: int | None = None
        """The call's `/proc`, of which commands only see a copy that cannot be written."""
        self._opened: list[int] = []
        self._lower: int | None = None
        """The workspace itself, where its layer is exchanged: below the first one nothing else leads there."""
        self._away: dict[str, int] = {}
        """What is brought for each call, attached nowhere, where several calls follow each other in this room."""
        self._is_bare = False
        """Whether the layer of the last call was taken away already."""
        self.kept: Kept | None = None
        """The `/tmp` of the call's thread, where it sees that."""
        self.scratch: int | None = None
        """What all scratch places lie in."""
        self._sockets = HostSockets()
        self.has_proc = False
        self.has_network = True
        """Whether it shares the host's network."""

    @property
    def workspace(self) -> str:
        return self._template.workspace

    @property
    def tmp(self) -> str:
        """Where `/tmp` really is."""
        tmp: str = self._site["tmp"]
        return tmp

    def furnish(self) -> None:
        """Everything that does not depend on the call."""
        kernel.unshare(kernel.CLONE_NEWNS | kernel.CLONE_NEWIPC, "mounts, ipc")
        if not self._network:
            try:
                kernel.unshare(kernel.CLONE_NEWNET, "network")
                kernel.raise_loopback()
                self.has_network = False
            except OSError:
                if self._sealed:
                    raise
        bound, scratch = self._opened_sources()
        if self._unasked:
            self._leave_host()
        self._mount_proc()
        self._bind_and_hide(bound, scratch)
        if self._unasked:
            for _path, place in () if self._scoped else self._template.brought():
                kernel.unmount(place)  # It writes nothing that a layer could take in, and has a /tmp of its own.
            kernel.unmount(HOST)
            os.rmdir(HOST)
            kernel.set_mount("/", add=ATTR_RDONLY)
        self._cover_sockets(everywhere=False)

    def _opened_sources(self) -> tuple[list[Bound], set[str]]:
        """What will be bound, opened while all of the host can be seen; and which of it are scratch places."""
        site = self._site
        granted = {target for _source, target, *_rest in self._extra}
        hide: dict[str, int] = {path: mode for path, mode in site["hide"] if path not in granted}
        shown = [*site["view" if self._unasked else "show"], *self._extra]
        bound = [(target, opened_as_meant(source, rest), bool(rest and rest[0])) for source, target, *rest in shown]
        # A call that nobody approved only reads, and what only reads leaves nothing behind, not even in caches.
        caches = () if self._unasked else site["caches"]
        self._caches = [(place, target) for source, target in caches if (place := opened(source)) is not None]
        devices = os.open("/dev", os.O_PATH | os.O_CLOEXEC)
        self._devices = kernel.cloned(devices) if self._unasked else None
        os.close(devices)
        kernel.mount(
            "haft", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV,  # noqa: S108  a new one
            f"mode=0700,size={site['scratch_bytes']},nr_inodes={SCRATCH_FILES}",
        )  # fmt: skip
        self.scratch = os.open("/dev/shm", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)  # noqa: S108
        for number, (path, mode) in enumerate(hide.items()):
            os.mkdir(f"/dev/shm/{number}")  # noqa: S108
            os.chmod(f"/dev/shm/{number}", mode)  # noqa: S108
            bound.append((path, opened(f"/dev/shm/{number}"), True))  # noqa: S108
        targets = [target for _source, target, *_rest in shown]
        closed = list(site["private"])
        if self._unasked:
            closed += [path for path in site["mounted"] if path not in targets and not _is_below(path, targets)]
        for number, path in enumerate(closed):
            empty = NOTHING
            if any(_is_below(target, (path,)) for target in targets):
                empty = f"/dev/shm/closed-{number}"  # noqa: S108  where what is shown below it can be put
                os.mkdir(empty, 0o755)
            bound.append((path, opened(empty), False))
        return bound, set(hide)

    def _leave_host(self) -> None:
        """Have a root of its own, in which only those parts of the host are that everyone may see."""
        os.mkdir(OWN_ROOT, 0o755)
        kernel.mount(OWN_ROOT, OWN_ROOT, None, kernel.MS_BIND)
        for path in self._site["seen"]:
            target = OWN_ROOT + path
            if os.path.islink(path):
                os.symlink(os.readlink(path), target)
            elif os.path.isdir(path):
                os.makedirs(target)
                kernel.mount(path, target, None, kernel.MS_BIND | kernel.MS_REC)
        for name in ("/dev", "/proc", HOST):
            os.mkdir(OWN_ROOT + name, 0o755)
        onto = os.open(f"{OWN_ROOT}/dev", os.O_PATH | os.O_CLOEXEC)
        assert self._devices is not None
        kernel.attach(self._devices, onto)
        os.close(onto)
        os.close(self._devices)
        kernel.pivot_root(OWN_ROOT, OWN_ROOT + HOST)
        os.chdir("/")

    def _mount_proc(self) -> None:
        flags = MS_NOSUID | MS_NODEV | MS_NOEXEC
        try:
            kernel.mount("proc", "/proc", "proc", flags)
            self._own_proc = os.open("/proc", os.O_PATH | os.O_CLOEXEC)
            kernel.mount("proc", "/proc", "proc", flags | MS_RDONLY)
            self.has_proc = True
        except OSError:
            # A container may not let us. The host's would show the host's processes: better none at all. What is
            # bound is found through it, so it is covered last of all.
            if self._sealed:
                raise
            self.has_proc = False
            if self._unasked:
                kernel.mount(f"{HOST}/proc", "/proc", None, kernel.MS_BIND | kernel.MS_REC)

    def _bind_and_hide(self, bound: list[Bound], scratch: set[str]) -> None:
        """Scratch places over what is hidden, and back into them what must be seen, outermost first."""
        for target, place, writable in sorted(bound, key=lambda step: _depth(step[0])):
            if place is None:
                continue
            if target in scratch:
                # Nothing may go wrong here unseen: what is not covered is not hidden.
                if self._unasked or os.path.lexists(target) or _is_below(target, scratch):
                    make_place(target, place)
                    kernel.bind(place, target)
            else:
                with contextlib.suppress(FileNotFoundError, NotADirectoryError, FileExistsError):
                    make_place(target, place)
                # By descriptor: what was shown before it may be in the hands of another call.
                onto = walked_from_top(target)
                if onto is not None:
                    kernel.cover(place, onto, clear=ATTR_RDONLY if writable else 0)
                    os.close(onto)
            os.close(place)
        for path, target in self._links:
            with contextlib.suppress(OSError):  # Only where nothing of the host is seen, nor of the workspace.
                os.makedirs(os.path.dirname(path), exist_ok=True)
                os.symlink(target, path)
        for place, target in self._caches:
            make_place(target, place)
            kernel.bind(place, target)
            kernel.set_mount(target, clear=ATTR_RDONLY)
            os.close(place)
        for path, words in self._site["files"].items():
            with contextlib.suppress(OSError), open(path, "x") as file:
                file.write(words)
        kernel.mount("devpts", "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620")

    def _cover_sockets(self, *, everywhere: bool) -> None:
        """Those of the host that are in sight: a read-only mount does not keep anyone from connecting."""
        if self._unasked and self._template.filters[self._unasked]:
            return  # It is refused any socket that it could connect.
        for path in self._sockets.paths(everywhere=everywhere):
            # By descriptor: in the workspace someone may be putting a link in its place right now.
            place = opened(path, os.O_PATH | os.O_NOFOLLOW)
            if place is not None:
                with contextlib.suppress(OSError):
                    if stat.S_ISSOCK(os.fstat(place).st_mode):
                        kernel.mount("/dev/null", f"/proc/self/fd/{place}", None, kernel.MS_BIND)
                os.close(place)

    def let_commands_go_first(self) -> Callable[[], None] | None:
        """Have what this process starts from now on killed before anything else where memory runs out. What is returned
        puts the process itself back to where it was."""
        if self._own_proc is None:
            return None
        file = os.open("self/oom_score_adj", os.O_RDWR | os.O_CLOEXEC, dir_fd=self._own_proc)
        before = os.read(file, 16)
        os.write(file, str(min(int(before) + FIRST_TO_GO, 1000)).encode())

        def back() -> None:
            with contextlib.suppress(OSError):
                os.write(file, before)

        return back

    def tell_kernel(self, name: str, words: str) -> None:
        """Write one of this process's own files in `/proc`."""
        if self._own_proc is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
        file = os.open(f"self/{name}", os.O_WRONLY | os.O_CLOEXEC, dir_fd=self._own_proc)
        try:
            os.write(file, words.encode())
        finally:
            os.close(file)

    def put_layers_away(self) -> None:
        """For calls that follow each other: nobody sees where the layers lie but while one is put over the workspace.
        `OSError` where there are none."""
        if self._site["layers"] is None:
            raise FileNotFoundError(errno.ENOENT, "there are no layers")
        for _path, name in self._template.brought():
            place = os.open(name, os.O_PATH | os.O_CLOEXEC)
            self._away[name] = kernel.cloned(place)
            os.close(place)
            kernel.unmount(name)

    def keep_lower(self) -> None:
        """For a layer that is exchanged: hold the workspace itself."""
        self._lower = os.open(self._template.workspace, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)

    def let_go(self) -> None:
        """Hold nothing in the layer any more."""
        for place in self._opened:
            os.close(place)
        self._opened.clear()

    def _bring_layers(self) -> None:
        for name, tree in self._away.items():
            onto = os.open(name, os.O_PATH | os.O_CLOEXEC)
            kernel.attach(tree, onto)
            os.close(onto)
            self._away[name] = kernel.cloned(tree)
            os.close(tree)

    def open_up(self, confinement: dict[str, Any]) -> None:
        """What this call may write, and what it may not although it lies there."""
        self._bring_layers()
        if confinement["scratch"] is not None and not self._unasked:
            self.kept = Kept(self.tmp, confinement["scratch"])  # Before the layer: the workspace may lie in it.
        self._let_write(confinement)
        if not self._unasked or self._scoped:
            for _path, place in self._template.brought():
                kernel.unmount(place)  # Those of other calls lie there too.
        if not self.has_proc:
            kernel.mount("haft", "/proc", "tmpfs", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, "size=4k")

    def forget_host(self) -> None:
        """Where no other call follows in this room: nothing of the host is open in it any more."""
        self._sockets.close()

    def _let_write(self, confinement: dict[str, Any]) -> None:
        # Those that were bound since; in a user namespace nobody lets us look into others.
        self._cover_sockets(everywhere=not self._template.in_user_namespace)
        self._template.mask()  # A file that the host replaced since has come off its mask.
        if confinement["profile"] != "workspace":
            for _place, target in self._caches:
                kernel.unmount(target)  # What only reads leaves nothing behind, not even there.
            if confinement["layer"] is not None:
                self._cover(confinement["layer"])
            return
        if confinement["layer"] is not None:
            self._cover(confinement["layer"])
            if confinement["opened"]:
                kernel.set_mount(self._template.workspace, add=ATTR_RDONLY)
        elif confinement["writable"]:
            self._open_mounts()
        self._open_parts(confinement["opened"])
        protect(self._template.workspace, confinement["protected"], confinement["spared"])

    def _cover(self, layer: dict[str, Any]) -> None:
        """Put a layer over the workspace. It covers what is mounted below it: what is hidden there must lie above."""
        covered = self._cloned_in_workspace()
        self._mount_layer(layer)
        for path, tree in covered:
            if (onto := walked_from_top(path)) is not None:
                kernel.attach(tree, onto)
                os.close(onto)
            os.close(tree)
        self._template.mask()

    def _cloned_in_workspace(self) -> list[tuple[str, int]]:
        """Copies of what hides places in the workspace, with what is shown in them."""
        found = []
        for path in (*(path for path, _mode in self._site["hide"]), *self._site["private"]):
            if _is_below(path, (self._template.workspace,)) and (place := walked_from_top(path)) is not None:
                found.append((path, kernel.cloned(place)))
                os.close(place)
        return sorted(found, key=lambda each: _depth(each[0]))

    def _mount_layer(self, layer: dict[str, Any]) -> None:
        """The workspace as it is, with the finished layers of whoever makes the call, under a layer that takes in every
        change; without one, where the call only reads. Descriptors stand for paths: these could hold the letters that
        separate options."""
        workspace, kind = self._template.workspace, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
        onto = os.open(workspace, kind)
        lower = onto if self._lower is None else self._lower
        finished = [self._layer_place(name, which) for name, *which in layer["lowers"]]
        opened = [*finished, onto]
        options = "lowerdir=" + ":".join(f"/proc/self/fd/{each}" for each in (*finished, lower))
        flags = MS_NOSUID | MS_NODEV
        if layer["work"] is None:
            flags |= MS_RDONLY
        else:
            place = self._layer_place(layer["name"])
            upper = self._layer_place(f"{layer['name']}/upper", layer["upper"])
            os.mkdir(layer["work"], 0o700, dir_fd=place)  # A new one each time: one that was used is refused.
            options += f",upperdir=/proc/self/fd/{upper},workdir=/proc/self/fd/{place}/{layer['work']}"
            opened += [place, upper]
        kernel.mount("haft", f"/proc/self/fd/{onto}", "overlay", flags, f"{options},{layer['options']}")
        for descriptor in opened:
            os.close(descriptor)
        top = os.open(workspace, kind)
        self._opened.append(top)
        if self.share is not None:
            view = kernel.cloned(top)
            socket.send_fds(self.share, [b"v"], [view])
            os.close(view)
            self.share.close()
            self.share = None

    def _layer_place(self, name: str, which: list[int] | None = None) -> int:
        """A directory among the layers, where it is the one that the host meant."""
        place = walked_from_top(f"{LAYERS}/{name}")
        if place is None or (which is not None and identity(place) != which):
            raise WrittenFile(f"{self._site['layers']}/{name}")
        return place

    def _open_mounts(self) -> None:
        """By descriptor: a call may have moved a directory of the workspace and put a link in its place."""
        top = os.open(self._template.workspace, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        for name, which in self._template.open_mounts:
            place = os.dup(top) if name == "." else walked(top, name)
            if place is not None and identity(place) == which:
                kernel.open_mount(place)
                self._opened.append(place)
        os.close(top)

    def _open_parts(self, paths: list[str]) -> None:
        """What may be written in a workspace that else is read-only; by descriptor, as above."""
        workspace = self._template.workspace
        top = os.open(workspace, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        for path in paths:
            name = os.path.relpath(path, workspace)
            place = walked(top, name)
            if place is not None:
                kernel.cover(place, clear=ATTR_RDONLY)
                os.close(place)
            place = walked(top, name)
            if place is not None:
                self._opened.append(place)
        os.close(top)

    def close_again(self) -> None:
        """Take the layer of a call away. `OSError` with EBUSY where anyone still holds something in it."""
        self.let_go()
        if not self._is_bare:
            self._take_layer_away()
            self._is_bare = True
        if self.kept is not None:
            self.kept.take_away()
            self.kept = None
        self._is_bare = False

    def _take_layer_away(self) -> None:
        workspace = self._template.workspace
        below = mounts_below(workspace)
        layer = max((number for number, one in enumerate(below) if one == (workspace, b"overlay")), default=None)
        if layer is None:
            raise FileNotFoundError(errno.ENOENT, "there is no layer")
        for path, _kind in reversed(below[layer + 1 :]):
            kernel.unmount(path)
        kernel.unmount(workspace, idle=True)

    def outside(self, *, keeps: bool) -> list[str | int]:
        """Where the second layer must let write what is there before any call: calls have their layer below it, and
        where a thread `keeps` its `/tmp`, that is mounted there too."""
        # Not all of `/dev`: the layers of other calls are there for a moment.
        devices = [*(f"/dev/{name}" for name in DEVICES), "/dev/shm", "/dev/pts"]  # noqa: S108  its own
        hidden = [path for path, _mode in self._site["hide"]]
        caches = [target for _place, target in self._caches]
        kept = [os.path.dirname(self.tmp)] if keeps else []
        return [*devices, *hidden, *caches, *kept, os.path.dirname(self._template.workspace)]

    def lasting_places(self) -> list[str | int]:
        """The same for a program above a layer that is exchanged, with what was granted to it elsewhere."""
        granted = [target for _source, target, *rest in self._extra if rest and rest[0]]
        return [*self.outside(keeps=False), *granted]

    def disk_places(self, confinement: dict[str, Any]) -> list[str]:
        """Where what it writes stays."""
        places = [target for _source, target, *rest in self._extra if rest and rest[0]]
        if confinement["profile"] == "workspace":
            places += [self._template.workspace, *(target for _place, target in self._caches)]
        return places

    def writable_places(self, confinement: dict[str, Any]) -> list[str | int]:
        """Where the second layer lets it write."""
        places: list[str | int] = ["/dev", *(path for path, _mode in self._site["hide"])]
        places += [target for _source, target, *rest in self._extra if rest and rest[0]]
        if confinement["profile"] == "workspace":
            places += self._opened
            places += [target for _place, target in self._caches]
        return places


def make_place(target: str, descriptor: int) -> None:
    """Somewhere to bind to: a directory or an empty file, as it is at the source."""
    if os.path.lexists(target):
        return
    if stat.S_ISDIR(os.fstat(descriptor).st_mode):
        os.makedirs(target, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644))


def _is_below(path: str, places: Iterable[str]) -> bool:
    return any(path.startswith(place.rstrip("/") + "/") for place in places)
