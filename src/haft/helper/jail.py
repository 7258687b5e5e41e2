"""The sandbox itself: mounts and namespaces, in three steps.

- `Template`: once, when the helper starts. Makes everything read-only, mounts a small `/dev`, and masks secrets.
- `build`: in each init, ahead of its call. Makes namespaces for processes and network, and the scratch directories;
  hides directories, and shows again the paths in them that the call must see.
- `open_for_call`: when the call is known. Makes the workspace writable if the call may write, except protected paths.

Each step starts with a copy of the mounts of the step before, and adds only what that step could not know. Descriptors
of the host's directories never enter the sandbox: through such a descriptor, a command could leave the sandbox.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import socket
import stat
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from haft.helper import kernel, local_network
from haft.helper.host_sockets import HostSockets
from haft.helper.kernel import ATTR_NODEV, ATTR_NOSUID, ATTR_RDONLY, MS_NODEV, MS_NOEXEC, MS_NOSUID, MS_RDONLY
from haft.helper.paths import Replaced, identity, open_path_without_links, open_without_links
from haft.helper.protect import protect
from haft.helper.thread_tmp import THREADS, ThreadTmp

DEVICES = {"null": (1, 3), "zero": (1, 5), "full": (1, 7), "random": (1, 8), "urandom": (1, 9), "tty": (5, 0)}
LINKS = {"fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2", "ptmx": "pts/ptmx"}
LAYERS = "/dev/.layers"
"""The directory with the layers of calls; unmounted before a command starts."""
PROGRAMS = "/dev/.programs"
"""The directory with program stubs, in tests; the same path as `STAND_INS` in the contracts."""
NOTHING = "/dev/.nothing"
"""An empty directory, mounted over directories that are masked."""
OWN_ROOT = "/dev/shm/root"  # noqa: S108  in the private scratch directory of the call
"""Where the root directory of a call without approval is put together."""
HOST = "/.host"
"""Where the root directory of a call without approval shows the host's files, until everything is bound."""
BY_HOST = ("hosts", "asks")
"""The kinds of network in which the egress process decides about each connection: with granted hosts, and with none."""
SCRATCH_FILES = 1_000_000
"""How many files all scratch directories of a call may contain: file names take memory too."""


FIRST_TO_GO = 500
"""Added to the OOM score of commands, which goes up to 1000: so the kernel kills even small commands before their
supervisor."""


def open_or_none(path: str, flags: int = os.O_PATH) -> int | None:
    """A descriptor of the source of a bind mount; None if the path cannot be opened."""
    try:
        return os.open(path, flags | os.O_CLOEXEC)
    except OSError:
        return None


def open_checked(path: str, rest: list[Any]) -> int | None:
    """If `rest` has no second item, the same as `open_or_none`. A second item is the identity that the file must have:
    then raise `Replaced` if the file has another identity, or cannot be opened without following links."""
    if len(rest) < 2:
        return open_or_none(path)
    place = open_path_without_links(path)
    if place is None or identity(place) != rest[1]:
        raise Replaced(path)
    return place


class Template:
    """The mounts that all calls of a host process share."""

    def __init__(self, site: dict[str, Any], *, in_user_namespace: bool, filters: dict[bool, bytes]) -> None:
        self.site = site
        self.filters = filters
        """The seccomp filters, by whether the call runs without approval."""
        self.workspace: str = site["workspace"]
        self.in_user_namespace = in_user_namespace
        self.open_mounts: list[tuple[str, list[int]]] = []
        """The mounts at and below the workspace that are writable on the host: their paths relative to it, and their
        identities."""
        self.root: list[int] = []
        """The identity of the workspace: device and inode."""

    def enter(self) -> None:
        """Move this process from the host's mounts to a read-only copy of them."""
        kernel.unshare(kernel.CLONE_NEWNS, "mounts")
        kernel.mount(None, "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
        place = os.open(self.workspace, os.O_PATH | os.O_CLOEXEC | os.O_DIRECTORY)
        self.root = identity(place)
        kernel.bind(place, self.workspace)
        os.close(place)
        for path in writable_mounts(self.workspace):
            if (mounted := open_path_without_links(path)) is not None:
                self.open_mounts.append((os.path.relpath(path, self.workspace), identity(mounted)))
                os.close(mounted)
        devices = {name: open_or_none(f"/dev/{name}") for name in DEVICES}
        stubs = self._cover_programs()
        kernel.set_mount("/", add=ATTR_RDONLY | ATTR_NOSUID | ATTR_NODEV, recursive=True)
        self._build_devices(devices, stubs)
        self.mask()

    def mask(self) -> None:
        """Cover the secrets of the machine: file modes do not keep root from reading them."""
        for path in self.site["mask"]:
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                found = os.lstat(path)
                over = NOTHING if stat.S_ISDIR(found.st_mode) else "/dev/null"
                if not os.path.samestat(found, os.stat(over)):
                    kernel.mount(over, path, None, kernel.MS_BIND)

    def _cover_programs(self) -> int | None:
        """Mount the program stubs of a test over the programs for which they stand. Returns a descriptor of the
        directory of the stubs; None if there are none."""
        stubs = self.site["programs"]
        if stubs is None:
            return None
        directory = os.open(stubs["directory"], os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        for path, stub in stubs["covers"]:
            # A program that is only named by a test is first on PATH too.
            ignored = () if stubs["needs_sandbox"] else (OSError,)
            with contextlib.suppress(*ignored):
                cover_file(path, directory, stub)
        return directory

    def _build_devices(self, devices: dict[str, int | None], stubs: int | None) -> None:
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
        if stubs is not None:
            os.mkdir(PROGRAMS, 0o755)
            kernel.bind(stubs, PROGRAMS)
            kernel.set_mount(PROGRAMS, add=ATTR_RDONLY | ATTR_NOSUID | ATTR_NODEV)
            os.close(stubs)
        kernel.set_mount("/dev", add=ATTR_RDONLY)
        for path, place in self.private_mounts():
            kernel.mount(path, place, None, kernel.MS_BIND)
            kernel.set_mount(place, clear=ATTR_RDONLY)

    def private_mounts(self) -> list[tuple[str, str]]:
        """The directories of haft that are mounted only until a call begins: for each, its path outside the sandbox,
        and its mount point."""
        own = (self.site["layers"], LAYERS), (self.site["threads"], THREADS)
        return [(path, place) for path, place in own if path is not None]

    def _make_device(self, path: str, name: str) -> bool:
        """Make a device file. Returns False in a user namespace, which forbids device files; then the host's device is
        bound instead."""
        if self.in_user_namespace:
            return False
        try:
            os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(*DEVICES[name]))
        except PermissionError:
            return False
        os.chmod(path, 0o666)  # noqa: S103  as devices for everyone have it
        return True


def cover_file(path: str, directory: int, name: str) -> None:
    """Mount the file `name` of an open directory over the file at `path`."""
    place = os.open(name, os.O_PATH | os.O_CLOEXEC, dir_fd=directory)
    try:
        onto = os.open(path, os.O_PATH | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            kernel.cover(place, onto)
        finally:
            os.close(onto)
    finally:
        os.close(place)


def writable_mounts(root: str) -> list[str]:
    """The writable mounts at and below `root`."""
    found = []
    with open("/proc/self/mountinfo", "rb") as file:
        for line in file:
            words = line.split(b" ")  # Only spaces separate the fields: a path may contain other whitespace.
            path = os.fsdecode(words[4].decode("unicode_escape").encode("latin-1"))
            if (path == root or path.startswith(root.rstrip("/") + "/")) and b"rw" in words[5].split(b","):
                found.append(path)
    return list(dict.fromkeys(found))


def mounts_below(root: str) -> list[tuple[str, bytes]]:
    """The mounts at and below `root`, oldest first, each with its file system type."""
    found = []
    with open("/proc/self/mountinfo", "rb") as file:
        for line in file:
            left, _, right = line.partition(b" - ")
            path = os.fsdecode(left.split(b" ")[4].decode("unicode_escape").encode("latin-1"))
            if path == root or path.startswith(root.rstrip("/") + "/"):
                found.append((path, right.split(b" ", 1)[0]))
    return found


Bound = tuple[str, int | None, bool]
"""A file or directory that a call sees: its path there, a descriptor of it (None if it does not exist), and whether the
call may write it."""


def _depth(path: str) -> tuple[int, str]:
    return path.rstrip("/").count("/"), path


class CallSandbox:
    """The mounts and namespaces of one call, from `build` to its end."""

    def __init__(
        self,
        template: Template,
        *,
        network: bool | str,
        extra: list[list[Any]],
        links: list[list[str]],
        sealed: bool,
        unasked: bool,
        scoped: bool = False,
        sockets: Sequence[str] = (),
    ) -> None:
        self._template = template
        self._unasked = unasked
        """Whether the call runs without approval: then it has its own root, with only a part of the host in it."""
        self._scoped = scoped
        """Whether this is a nested call that only reads, and sees the workspace with the changes of the call that made
        it: then it needs layers too."""
        self._open_sockets = sockets
        """The paths in `_extra` with a socket to which the call may connect."""
        self.share: socket.socket | None = None
        """The socket on which the host waits for a view of the workspace as the call sees it."""
        self._devices: int | None = None
        self._sealed = sealed or template.site["required"]
        """Whether a protection that was available at the start must be available now. If the kernel refuses such a
        protection, because some resource is used up, the call fails instead of running without it."""
        self._site = template.site
        self._network = network
        """Whether the call shares the host's network; one of `BY_HOST` if its connections are decided by host."""
        self._network_sockets: list[tuple[str, socket.socket]] = []
        """The sockets of the call's network, each with its role, until the egress process has them."""
        self.egress: socket.socket | None = None
        """The socket to the egress process. The process ends the call's connections when this socket closes."""
        self._extra = extra
        """The paths shown to this call alone: source, target, and whether the call may write there."""
        self._links = links
        """Symbolic links through which the call finds the paths in `_extra`: the path of each link, and its target."""
        self._caches: list[tuple[int, str]] = []
        self._own_proc: int | None = None
        """The call's `/proc`; commands see only a read-only mount of it."""
        self._opened: list[int] = []
        self._lower: int | None = None
        """A descriptor of the workspace itself, opened before the first layer covers it; needed if another layer
        replaces that one."""
        self._detached: dict[str, int] = {}
        """If several calls use this sandbox: by mount point, the detached mounts that are attached for each call."""
        self._is_bare = False
        """Whether the layer of the last call was unmounted already."""
        self.thread_tmp: ThreadTmp | None = None
        """The `/tmp` of the call's thread, if the call sees it."""
        self.scratch: int | None = None
        """A descriptor of the directory that contains all scratch directories."""
        self._sockets = HostSockets()
        self.has_proc = False
        self.has_network = True
        """Whether the call shares the host's network."""

    @property
    def workspace(self) -> str:
        return self._template.workspace

    @property
    def tmp(self) -> str:
        """The real path of `/tmp`."""
        tmp: str = self._site["tmp"]
        return tmp

    def build(self) -> None:
        """Build everything in the sandbox that does not depend on the call."""
        kernel.unshare(kernel.CLONE_NEWNS | kernel.CLONE_NEWIPC, "mounts, ipc")
        if self._network is not True:
            self._leave_network()
        bound, scratch = self._open_sources()
        if self._unasked:
            self._leave_host()
        self._mount_proc()
        self._bind_and_hide(bound, scratch)
        if self._network in BY_HOST:
            self._cover_name_files()
        if self._unasked:
            for _path, place in () if self._scoped else self._template.private_mounts():
                kernel.unmount(place)  # The call writes nothing, so it needs no layer, and it has its own /tmp.
            kernel.unmount(HOST)
            os.rmdir(HOST)
            kernel.set_mount("/", add=ATTR_RDONLY)
        self._cover_sockets(everywhere=False)

    def _leave_network(self) -> None:
        """Enter a network namespace. If connections are decided by host, prepare its sockets for the egress
        process."""
        try:
            kernel.unshare(kernel.CLONE_NEWNET, "network")
            if self._network in BY_HOST:
                self._network_sockets = local_network.prepare(with_hosts=self._network == "hosts")
            else:
                kernel.raise_loopback()
            self.has_network = False
        except OSError:
            if self._sealed or self._network in BY_HOST:
                raise

    @property
    def idle_network(self) -> list[socket.socket]:
        """The sockets that show the first use of the network, if the egress process need not be joined before that."""
        is_idle = self._network == "asks" and self.egress is not None
        return [end for _role, end in self._network_sockets] if is_idle else []

    def join_egress(self) -> bool:
        """Give the sockets of the call's network to the egress process. If hosts are granted, return when the process
        listens on the sockets. Returns False if the process has ended. Raises `OSError` if it cannot listen as the
        grants say."""
        if self.egress is None:
            return True
        wait = self._network == "hosts"
        roles = json.dumps([role for role, _end in self._network_sockets])
        try:
            socket.send_fds(self.egress, [roles.encode()], [end.fileno() for _role, end in self._network_sockets])
            answer = self.egress.recv(1 << 14) if wait else b"{}"
        except (BrokenPipeError, ConnectionResetError):
            return False
        for _role, end in self._network_sockets:
            end.close()
        self._network_sockets.clear()
        if not answer:
            return False
        if problem := json.loads(answer).get("problem"):
            raise OSError(0, f"the network of the call: {problem}")
        return True

    def _cover_name_files(self) -> None:
        """Replace the files with which programs look up names: the only name server is that of the egress process."""
        files = {
            "/etc/resolv.conf": "nameserver 127.0.0.1\nsearch .\n",
            "/etc/hosts": f"127.0.0.1 localhost\n::1 localhost\n127.0.1.1 {os.uname().nodename}\n",
        }
        for number, (path, words) in enumerate(files.items()):
            own = f"/dev/shm/names-{number}"  # noqa: S108  private to the call
            with open(own, "x") as file:
                file.write(words)
            os.chmod(own, 0o644)
            real = os.path.realpath(path)
            place = os.open(own, os.O_PATH | os.O_CLOEXEC)
            with contextlib.suppress(OSError):  # Without the file, programs ask the same name server.
                make_place(real, place)
                onto = os.open(real, os.O_PATH | os.O_CLOEXEC | os.O_NOFOLLOW)
                kernel.cover(place, onto, add=ATTR_RDONLY)
                os.close(onto)
            os.close(place)
            os.unlink(own)

    def _open_sources(self) -> tuple[list[Bound], set[str]]:
        """Open all files and directories that will be bound in the sandbox, while the whole machine is still visible.
        Returns them, and the paths where scratch directories will be mounted."""
        site = self._site
        granted = {target for _source, target, *_rest in self._extra}
        hide: dict[str, int] = {path: mode for path, mode in site["hide"] if path not in granted}
        shown = [*site["view" if self._unasked else "show"], *self._extra]
        bound = [(target, open_checked(source, rest), bool(rest and rest[0])) for source, target, *rest in shown]
        # A call without approval only reads, so it leaves nothing behind, not even in caches.
        caches = () if self._unasked else site["caches"]
        self._caches = [(place, target) for source, target in caches if (place := open_or_none(source)) is not None]
        devices = os.open("/dev", os.O_PATH | os.O_CLOEXEC)
        self._devices = kernel.clone_mounts(devices) if self._unasked else None
        os.close(devices)
        kernel.mount(
            "haft", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV,  # noqa: S108  a new one
            f"mode=0700,size={site['scratch_bytes']},nr_inodes={SCRATCH_FILES}",
        )  # fmt: skip
        self.scratch = os.open("/dev/shm", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)  # noqa: S108
        for number, (path, mode) in enumerate(hide.items()):
            os.mkdir(f"/dev/shm/{number}")  # noqa: S108
            os.chmod(f"/dev/shm/{number}", mode)  # noqa: S108
            bound.append((path, open_or_none(f"/dev/shm/{number}"), True))  # noqa: S108
        targets = [target for _source, target, *_rest in shown]
        closed = list(site["private"])
        if self._unasked:
            closed += [path for path in site["mounted"] if path not in targets and not _is_below(path, targets)]
        for number, path in enumerate(closed):
            empty = NOTHING
            if any(_is_below(target, (path,)) for target in targets):
                empty = f"/dev/shm/closed-{number}"  # noqa: S108  writable, to hold mount points of paths shown below
                os.mkdir(empty, 0o755)
            bound.append((path, open_or_none(empty), False))
        return bound, set(hide)

    def _leave_host(self) -> None:
        """Give the call a root directory of its own, which contains only the parts of the machine that every call
        sees."""
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
            # A container may forbid this mount. The host's /proc would show the host's processes, so the call gets no
            # /proc. Binding still needs the host's /proc, so it is covered only after that.
            if self._sealed:
                raise
            self.has_proc = False
            if self._unasked:
                kernel.mount(f"{HOST}/proc", "/proc", None, kernel.MS_BIND | kernel.MS_REC)

    def _bind_and_hide(self, bound: list[Bound], scratch: set[str]) -> None:
        """Mount scratch directories over the hidden directories, and bind in these the paths that the call must see.
        Outer paths come before inner paths."""
        for target, place, writable in sorted(bound, key=lambda step: _depth(step[0])):
            if place is None:
                continue
            if target in scratch:
                # Errors must not be ignored here: a directory that is not covered is not hidden.
                if self._unasked or os.path.lexists(target) or _is_below(target, scratch):
                    make_place(target, place)
                    kernel.bind(place, target)
            else:
                with contextlib.suppress(FileNotFoundError, NotADirectoryError, FileExistsError):
                    make_place(target, place)
                # By descriptor: another call may be able to change the path.
                onto = open_path_without_links(target)
                if onto is not None:
                    kernel.cover(place, onto, clear=ATTR_RDONLY if writable else 0)
                    os.close(onto)
                elif target in self._site_hides():
                    # What should cover a directory to hide it is not there, so the directory would be visible.
                    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), target)
            os.close(place)
        for path, target in self._links:
            with contextlib.suppress(OSError):  # Works only where neither the host nor the workspace is visible.
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

    def _site_hides(self) -> set[str]:
        return {path for path, _mode in self._site["hide"]}

    def _cover_sockets(self, *, everywhere: bool) -> None:
        """Cover the visible sockets of the host: a process can connect to a socket even on a read-only mount."""
        if self._unasked and self._template.filters[self._unasked]:
            return  # The call's seccomp filter refuses every socket that could connect to one.
        for path in self._sockets.paths(everywhere=everywhere):
            if path in self._open_sockets or _is_below(path, self._open_sockets):
                continue
            # By descriptor: another process may replace the path by a link at this moment.
            place = open_or_none(path, os.O_PATH | os.O_NOFOLLOW)
            if place is not None:
                with contextlib.suppress(OSError):
                    if stat.S_ISSOCK(os.fstat(place).st_mode):
                        kernel.mount("/dev/null", f"/proc/self/fd/{place}", None, kernel.MS_BIND)
                os.close(place)

    def kill_commands_first(self) -> Callable[[], None] | None:
        """From now on, if memory runs out, have the kernel kill this process, and the processes that it will start,
        before all others. Returns a function that restores the usual order for this process alone; None if there is no
        `/proc`."""
        if self._own_proc is None:
            return None
        file = os.open("self/oom_score_adj", os.O_RDWR | os.O_CLOEXEC, dir_fd=self._own_proc)
        before = os.read(file, 16)
        os.write(file, str(min(int(before) + FIRST_TO_GO, 1000)).encode())

        def back() -> None:
            with contextlib.suppress(OSError):
                os.write(file, before)

        return back

    def write_own_proc(self, name: str, words: str) -> None:
        """Write one of this process's own files in `/proc`."""
        if self._own_proc is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
        file = os.open(f"self/{name}", os.O_WRONLY | os.O_CLOEXEC, dir_fd=self._own_proc)
        try:
            os.write(file, words.encode())
        finally:
            os.close(file)

    def detach_layers(self) -> None:
        """Detach the directory of layers, for a sandbox that serves several calls: from now on, the directory is
        visible only while a layer is being mounted. Raises `OSError` if there are no layers."""
        if self._site["layers"] is None:
            raise FileNotFoundError(errno.ENOENT, "there are no layers")
        for _path, name in self._template.private_mounts():
            place = os.open(name, os.O_PATH | os.O_CLOEXEC)
            self._detached[name] = kernel.clone_mounts(place)
            os.close(place)
            kernel.unmount(name)

    def keep_lower(self) -> None:
        """Keep the workspace itself open, for a sandbox in which one layer replaces another."""
        self._lower = os.open(self._template.workspace, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)

    def release_layer(self) -> None:
        """Close the descriptors that this process has in the layer."""
        for place in self._opened:
            os.close(place)
        self._opened.clear()

    def _attach_layers(self) -> None:
        for name, tree in self._detached.items():
            onto = os.open(name, os.O_PATH | os.O_CLOEXEC)
            kernel.attach(tree, onto)
            os.close(onto)
            self._detached[name] = kernel.clone_mounts(tree)
            os.close(tree)

    def open_for_call(self, confinement: dict[str, Any]) -> None:
        """Remount the paths that this call may write as writable, except protected paths."""
        self._attach_layers()
        if confinement["scratch"] is not None and not self._unasked:
            self.thread_tmp = ThreadTmp(
                self.tmp, confinement["scratch"]
            )  # Before the layer: the workspace may be in /tmp.
        self._open_workspace(confinement)
        if not self._unasked or self._scoped:
            for _path, place in self._template.private_mounts():
                kernel.unmount(place)  # The layers of other calls are there too.
        if not self.has_proc:
            kernel.mount("haft", "/proc", "tmpfs", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, "size=4k")

    def close_host_sockets(self) -> None:
        """Close the descriptors of the host's `/proc`, in a sandbox that serves no other call."""
        self._sockets.close()

    def _open_workspace(self, confinement: dict[str, Any]) -> None:
        # Cover the sockets that were bound since `build`. In a user namespace we may not read the namespaces of other
        # users.
        self._cover_sockets(everywhere=not self._template.in_user_namespace)
        self._template.mask()  # Again, since a file that the host replaced meanwhile is no longer masked.
        if confinement["profile"] != "workspace":
            for _place, target in self._caches:
                kernel.unmount(target)  # Calls that only read leave nothing behind, not even in caches.
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
        """Mount a layer over the workspace. The layer also covers the mounts in the workspace, so the mounts that hide
        paths are mounted once more, on top of the layer."""
        covered = self._cloned_in_workspace()
        self._mount_layer(layer)
        for path, tree in covered:
            if (onto := open_path_without_links(path)) is not None:
                kernel.attach(tree, onto)
                os.close(onto)
            os.close(tree)
        self._template.mask()

    def _cloned_in_workspace(self) -> list[tuple[str, int]]:
        """For each hidden path in the workspace: the path, and a descriptor of a copy of the mount that hides it, with
        all mounts below that mount."""
        found = []
        for path in (*(path for path, _mode in self._site["hide"]), *self._site["private"]):
            if _is_below(path, (self._template.workspace,)) and (place := open_path_without_links(path)) is not None:
                found.append((path, kernel.clone_mounts(place)))
                os.close(place)
        return sorted(found, key=lambda each: _depth(each[0]))

    def _mount_layer(self, layer: dict[str, Any]) -> None:
        """Mount an overlay: at the bottom the workspace and, for a nested call, the finished layers of the calls around
        it; on top a layer that receives every change, or none if the call only reads. The options name descriptors,
        since a path could contain the characters that separate options."""
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
            os.mkdir(layer["work"], 0o700, dir_fd=place)  # A new directory each time: the kernel refuses a used one.
            options += f",upperdir=/proc/self/fd/{upper},workdir=/proc/self/fd/{place}/{layer['work']}"
            opened += [place, upper]
        kernel.mount("haft", f"/proc/self/fd/{onto}", "overlay", flags, f"{options},{layer['options']}")
        for descriptor in opened:
            os.close(descriptor)
        top = os.open(workspace, kind)
        self._opened.append(top)
        if self.share is not None:
            view = kernel.clone_mounts(top)
            socket.send_fds(self.share, [b"v"], [view])
            os.close(view)
            self.share.close()
            self.share = None

    def _layer_place(self, name: str, which: list[int] | None = None) -> int:
        """A descriptor of a directory in `LAYERS`. Raises `Replaced` if its identity is not `which`, the identity that
        the host means."""
        place = open_path_without_links(f"{LAYERS}/{name}")
        if place is None or (which is not None and identity(place) != which):
            raise Replaced(f"{self._site['layers']}/{name}")
        return place

    def _open_mounts(self) -> None:
        """Make the mounts of the workspace writable. They are opened by descriptor, not by path, since a call may have
        replaced a directory by a link."""
        top = os.open(self._template.workspace, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        for name, which in self._template.open_mounts:
            place = os.dup(top) if name == "." else open_without_links(top, name)
            if place is not None and identity(place) == which:
                kernel.open_mount(place)
                self._opened.append(place)
        os.close(top)

    def _open_parts(self, paths: list[str]) -> None:
        """Make parts of a read-only workspace writable. They are opened by descriptor, not by path, since a call may
        have replaced a directory by a link."""
        workspace = self._template.workspace
        top = os.open(workspace, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        for path in paths:
            name = os.path.relpath(path, workspace)
            place = open_without_links(top, name)
            if place is not None:
                kernel.cover(place, clear=ATTR_RDONLY)
                os.close(place)
            place = open_without_links(top, name)
            if place is not None:
                self._opened.append(place)
        os.close(top)

    def close_after_call(self) -> None:
        """Unmount the layer of a call. Raises `OSError` with EBUSY if some process still has something open in it."""
        self.release_layer()
        if not self._is_bare:
            self._unmount_layer()
            self._is_bare = True
        if self.thread_tmp is not None:
            self.thread_tmp.unmount()
            self.thread_tmp = None
        self._is_bare = False

    def _unmount_layer(self) -> None:
        workspace = self._template.workspace
        below = mounts_below(workspace)
        layer = max((number for number, one in enumerate(below) if one == (workspace, b"overlay")), default=None)
        if layer is None:
            raise FileNotFoundError(errno.ENOENT, "there is no layer")
        for path, _kind in reversed(below[layer + 1 :]):
            kernel.unmount(path)
        kernel.unmount(workspace, idle=True)

    def outside(self, *, keeps: bool) -> list[str | int]:
        """The paths below which Landlock must allow writes, for a process that starts before its first call. The layers
        of its calls will be mounted below these paths. If `keeps` is true, the `/tmp` of its thread will be mounted
        there, too."""
        # Not all of `/dev`: the layers of other calls are visible there for a moment.
        devices = self._device_places()
        hidden = [path for path, _mode in self._site["hide"]]
        caches = [target for _place, target in self._caches]
        kept = [os.path.dirname(self.tmp)] if keeps else []
        return [*devices, *hidden, *caches, *kept, os.path.dirname(self._template.workspace)]

    def _device_places(self) -> list[str]:
        """The paths in `/dev` that a call may write: of the program stubs of a test, only the pipe for their
        reports."""
        places = [*(f"/dev/{name}" for name in DEVICES), "/dev/shm", "/dev/pts"]  # noqa: S108  its own
        stubs = self._site["programs"]
        return places if stubs is None else [*places, f"{PROGRAMS}/{stubs['reports']}"]

    def stub_places(self) -> list[str]:
        """The files that are executed in place of real programs, and the directory in which they are."""
        stubs = self._site["programs"]
        return [PROGRAMS, *(path for path, _stub in stubs["covers"])] if stubs is not None else []

    def lasting_places(self) -> list[str | int]:
        """The paths below which Landlock must allow writes, for a program that outlives its calls: the paths that
        `outside` returns, and the paths outside the workspace that were granted to the program."""
        granted = [target for _source, target, *rest in self._extra if rest and rest[0]]
        return [*self.outside(keeps=False), *granted]

    def disk_places(self, confinement: dict[str, Any]) -> list[str]:
        """The writable paths on disk, whose files stay after the call."""
        places = [target for _source, target, *rest in self._extra if rest and rest[0]]
        if confinement["profile"] == "workspace":
            places += [self._template.workspace, *(target for _place, target in self._caches)]
        return places

    def writable_places(self, confinement: dict[str, Any]) -> list[str | int]:
        """The paths and descriptors below which Landlock lets the call write."""
        devices = ["/dev"] if self._site["programs"] is None else self._device_places()
        places: list[str | int] = [*devices, *(path for path, _mode in self._site["hide"])]
        places += [target for _source, target, *rest in self._extra if rest and rest[0]]
        if confinement["profile"] == "workspace":
            places += self._opened
            places += [target for _place, target in self._caches]
        return places


def make_place(target: str, descriptor: int) -> None:
    """Make a mount point, if it is missing: a directory if the source `descriptor` is one, else an empty file."""
    if os.path.lexists(target):
        return
    if stat.S_ISDIR(os.fstat(descriptor).st_mode):
        os.makedirs(target, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644))


def _is_below(path: str, places: Iterable[str]) -> bool:
    return any(path.startswith(place.rstrip("/") + "/") for place in places)
