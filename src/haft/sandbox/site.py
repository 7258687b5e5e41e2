"""The facts about this machine, this user and this workspace that the sandbox needs.

haft gathers them once for each host process, before it starts the helper, and sends them to the helper. Facts that
differ from call to call are in `helper_requests`.
"""

from __future__ import annotations

import hashlib
import os
import pwd
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from haft.contracts import StandIns
from haft.files import CACHES as CACHES
from haft.files import first_line, interpreter_of, secrets_of_root, shareable_gitconfig
from haft.sandbox.environment import safe_path
from haft.sandbox.neighbours import places_of
from haft.sandbox.toolchains import is_below, outermost, toolchains
from haft.values import dataclass

SCRATCH: Final = (("/tmp", 0o1777), ("/var/tmp", 0o1777), ("/run", 0o755), ("/dev/shm", 0o1777))  # noqa: S108
TMP: Final = os.path.realpath("/tmp")  # noqa: S108  the host's, which calls do not see
HOMES: Final = ("/home", "/root")

SYSTEM: Final = ("/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/proc", "/sbin", "/sys", "/usr")
SEEN: Final = (
    "/bin", "/etc", "/gnu/store", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/sbin", "/usr",
)  # fmt: skip
"""The directories of the system itself, which every call sees."""
PROCESSORS: Final = ("/sys/devices/system/cpu", "/sys/devices/system/node")
"""The parts of `/sys` that every call sees: programs count the processors there, and find nothing else there."""
MAX_SHOWN: Final = 300


@dataclass(frozen=True, slots=True)
class Site:
    """The facts that are the same for all calls of a host process."""

    workspace: str
    """The real path of the workspace, without links."""
    home: str
    hide: tuple[tuple[str, int], ...]
    """Directories that are private and empty for a call, each with its mode."""
    show: tuple[tuple[str, str], ...]
    """Paths inside hidden directories that calls see nevertheless: the real path, and the path at which calls see
    it."""
    view: tuple[tuple[str, str], ...]
    """The paths, in the same form, that a call without approval sees. Of the rest of the host it sees only the
    directories in `SEEN`."""
    mounted: tuple[str, ...]
    """Mount points inside the directories in `SEEN`: they do not belong to the system, so a call without approval does
    not see them."""
    mask: tuple[str, ...]
    """Secrets of the machine that root could read; no call sees them."""
    state_home: str
    files: Mapping[str, str]
    caches: tuple[tuple[str, str], ...]
    repository: str | None
    """The directory of the workspace's repository, if the workspace is a worktree of a repository elsewhere."""
    is_writable: bool
    """Whether the workspace's mount is writable on the host."""
    neighbours: tuple[str, ...] = ()
    """The places of the server's other workspaces: no call sees them."""

    @property
    def hidden(self) -> tuple[str, ...]:
        return tuple(path for path, _mode in self.hide)

    def is_in_view(self, path: str) -> bool:
        """Whether a call without approval or grants sees this path, if something exists there."""
        return _is_system(path, self.mounted) or is_below(path, (self.workspace, *(target for _, target in self.view)))

    def to_json(
        self,
        *,
        scratch_bytes: int,
        required: bool,
        layers: str | None,
        threads: str | None = None,
        stand_ins: StandIns | None = None,
    ) -> dict[str, Any]:
        """The facts as the helper reads them. `threads` is the directory with the `/tmp` of each thread, if threads
        keep one."""
        return {
            "workspace": self.workspace,
            "hide": self.hide,
            "show": self.show,
            "seen": SEEN,
            "view": self.view,
            "mounted": self.mounted,
            "mask": self.mask,
            "private": self._private(layers),
            "layers": layers,
            "threads": threads,
            "tmp": TMP,
            "files": dict(self.files),
            "caches": self.caches,
            "scratch_bytes": scratch_bytes,
            "required": required,
            "programs": None if stand_ins is None else asdict(stand_ins),
        }

    def _private(self, layers: str | None) -> list[str]:
        """haft's own directories, and the server's other workspaces, which no call sees."""
        own = [*self.neighbours]
        own += [self.state_home] if os.path.isdir(self.state_home) else []
        if layers is not None and not is_below(os.path.realpath(layers), (os.path.realpath(self.state_home),)):
            own.append(os.path.dirname(os.path.realpath(layers)))
        return own


def survey(
    workspace: str,
    state_home: str,
    env: Mapping[str, str],
    neighbours: Sequence[str] = (),
    *,
    has_caches: bool = True,
) -> Site:
    """Gather the facts about this machine. `neighbours` are the server's other workspaces. `has_caches`: whether calls
    get the private caches of the workspace."""
    root = os.path.realpath(workspace)
    home = home_of(env)
    homes = [path for path in dict.fromkeys((*HOMES, home, *registered_home())) if can_be_hidden(path)]
    hide = {
        os.path.realpath(path): mode
        for path, mode in (*SCRATCH, *((path, 0o755) for path in homes))
        if os.path.isdir(path)
    }
    hide["/dev/shm"] = 0o1777  # noqa: S108  it always exists in the private /dev of a call
    if home in homes:
        hide[os.path.realpath(home)] = 0o700
    hide.pop(root, None)
    hidden = tuple(hide)
    repository = repository_of(root)
    mounted = tuple(path for path in _mounted_in(SEEN) if not is_below(path, (root,)))
    closed = places_of(neighbours)
    found = toolchains(safe_path(env.get("PATH", ""), root), hidden, homes, lambda path: _is_system(path, mounted))
    found = [path for path in found if not is_below(os.path.realpath(path), closed)]
    if repository is not None and is_below(repository, closed):
        repository = None
    pythons = [path for place in environments_in(root, env) for path in interpreter_of(place, env)]
    own = [path for path in (*needed(root), *pythons, *([repository] if repository else [])) if path != "/"]
    show = _shown([*own, *found], hide, hidden)
    unseen = [each for path in (*own, *found) for each in (path, os.path.realpath(path))]
    view = _shown([root, *outermost(path for path in unseen if not _is_system(path, mounted))], hide)
    return Site(
        workspace=root,
        home=home,
        hide=tuple(hide.items()),
        show=show,
        view=(*view, *((path, path) for path in PROCESSORS if os.path.isdir(path))),
        mounted=mounted,
        mask=tuple(secrets_of_root()),
        state_home=os.path.realpath(state_home),
        files=_files(home, hide, env),
        caches=tuple(_caches(root, state_home, home, hide, show)) if has_caches else (),
        repository=repository,
        is_writable=not os.statvfs(root).f_flag & os.ST_RDONLY,
        neighbours=closed,
    )


def environments_in(workspace: str, env: Mapping[str, str]) -> Iterator[str]:
    """The virtual environments that calls may use: those on PATH, and those in the workspace that have the usual
    names."""
    yield from (
        os.path.dirname(os.path.normpath(each)) for each in env.get("PATH", "").split(":") if os.path.isabs(each)
    )
    yield from (os.path.join(workspace, name) for name in (".venv", "venv"))


def _shown(
    paths: Iterable[str], hide: Mapping[str, int], hidden: Iterable[str] = ("/",)
) -> tuple[tuple[str, str], ...]:
    """The paths among `paths` that exist and are inside `hidden` directories. Each is a pair: the real path, and the
    path at which calls see it."""
    kept = [path for path in dict.fromkeys(paths) if is_below(path, hidden) and os.path.exists(path)]
    return tuple((os.path.realpath(path), path) for path in kept if path not in hide)[:MAX_SHOWN]


def _is_system(path: str, mounted: Iterable[str]) -> bool:
    return is_below(path, SEEN) and not is_below(path, mounted)


def _mounted_in(places: Iterable[str]) -> list[str]:
    """The directories below `places` that are mount points."""
    try:
        with open("/proc/self/mountinfo", "rb") as file:
            lines = file.read().splitlines()
    except OSError:
        return []
    paths = (os.fsdecode(line.split(b" ")[4].decode("unicode_escape").encode("latin-1")) for line in lines)
    return sorted({path for path in paths if path not in places and is_below(path, places) and os.path.isdir(path)})


def repository_of(workspace: str) -> str | None:
    """The repository of which the workspace is a worktree; None if the workspace is not a worktree. The `.git` of a
    workspace could name any directory, so the repository must also name the workspace."""
    try:
        named = first_line(os.path.join(workspace, ".git"))
        own = os.path.realpath(os.path.join(workspace, named.removeprefix("gitdir: ")))
        back = os.path.realpath(first_line(os.path.join(own, "gitdir")))
        common = os.path.realpath(os.path.join(own, first_line(os.path.join(own, "commondir"))))
    except OSError:
        return None
    is_mutual = named.startswith("gitdir: ") and back == os.path.join(workspace, ".git")
    return common if is_mutual and os.path.dirname(own) == os.path.join(common, "worktrees") else None


def registered_home() -> list[str]:
    """The home directory that the user database has for the current user, whatever HOME says. The list is empty if the
    database does not have the user."""
    try:
        return [os.path.normpath(pwd.getpwuid(os.getuid()).pw_dir)]
    except KeyError:
        return []


def can_be_hidden(path: str) -> bool:
    """Whether a home can be hidden without hiding parts of the system."""
    return os.path.isdir(path) and not is_below(path, SYSTEM) and path != "/"


def home_of(env: Mapping[str, str]) -> str:
    """The home directory that programs will use."""
    home = env.get("HOME", "")
    if not os.path.isabs(home):
        try:
            home = pwd.getpwuid(os.getuid()).pw_dir
        except KeyError:
            home = "/"
    return os.path.normpath(home)


def needed(workspace: str) -> Iterator[str]:
    """The paths that every call needs: the workspace, the Python that runs haft, and the DNS configuration."""
    yield workspace
    yield from (sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix)
    yield os.path.dirname(os.path.realpath(sys.executable))
    yield os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    yield os.path.realpath("/etc/resolv.conf")


def _files(home: str, hide: Mapping[str, int], env: Mapping[str, str]) -> dict[str, str]:
    if os.path.realpath(home) not in hide:
        return {}
    words = shareable_gitconfig(home, env)
    return {os.path.join(home, ".gitconfig"): words} if words else {}


def _caches(
    workspace: str, state_home: str, home: str, hide: Mapping[str, int], show: Iterable[tuple[str, str]]
) -> Iterator[tuple[str, str]]:
    if os.path.realpath(home) not in hide:
        return
    digest = hashlib.sha256(os.fsencode(workspace)).hexdigest()[:16]
    for name, place in CACHES.items():
        source = os.path.join(os.path.realpath(state_home), "caches", digest, name)
        target = os.path.join(home, place)
        if any(is_below(shown, (target,)) for _source, shown in show):
            continue  # The Python that runs haft may be in this cache.
        try:
            os.makedirs(source, mode=0o700, exist_ok=True)
        except OSError:
            return  # Calls work without caches.
        yield source, target
