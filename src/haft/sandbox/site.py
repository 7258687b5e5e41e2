"""Where calls happen: what of this machine, this person and this workspace the sandbox must know.

Gathered once for each host, before the zygote starts, and told to it. What differs from call to call is in `terms`.
"""

from __future__ import annotations

import hashlib
import os
import pwd
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from haft.files import CACHES as CACHES
from haft.files import first_line, interpreter_of, known_to_git, secrets_of_root
from haft.sandbox.environment import safe_path
from haft.sandbox.toolchains import is_below, outermost, toolchains
from haft.values import dataclass

SCRATCH: Final = (("/tmp", 0o1777), ("/var/tmp", 0o1777), ("/run", 0o755), ("/dev/shm", 0o1777))  # noqa: S108
TMP: Final = os.path.realpath("/tmp")  # noqa: S108  hidden, and each call or thread has its own
HOMES: Final = ("/home", "/root")

SYSTEM: Final = ("/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/proc", "/sbin", "/sys", "/usr")
SEEN: Final = (
    "/bin", "/etc", "/gnu/store", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/sbin", "/usr",
)  # fmt: skip
"""The system itself, which every call sees."""
PROCESSORS: Final = ("/sys/devices/system/cpu", "/sys/devices/system/node")
"""What of `/sys` every call sees: programs count processors there, and nothing there tells of anything else."""
MOST_SHOWN: Final = 300


@dataclass(frozen=True, slots=True)
class Site:
    """The lasting facts."""

    workspace: str
    """As the kernel knows it: no link in it."""
    home: str
    hide: tuple[tuple[str, int], ...]
    """Places that are private and empty, each with its mode."""
    show: tuple[tuple[str, str], ...]
    """What is seen in them all the same: where it lies, and where it is seen."""
    view: tuple[tuple[str, str], ...]
    """The same for a call that nobody approved, which sees nothing of the host but this and what is in `SEEN`."""
    mounted: tuple[str, ...]
    """Directories in `SEEN` that something is mounted on: no part of the system, and such a call does not see them."""
    mask: tuple[str, ...]
    state_home: str
    files: Mapping[str, str]
    caches: tuple[tuple[str, str], ...]
    repository: str | None
    """Where the workspace's repository lies, if it is a worktree of one elsewhere."""
    is_writable: bool
    """Whether the host itself can write to the workspace's mount."""

    @property
    def hidden(self) -> tuple[str, ...]:
        return tuple(path for path, _mode in self.hide)

    def is_in_view(self, path: str) -> bool:
        """Whether a call that nobody approved sees it, were it there, without a grant."""
        return _is_system(path, self.mounted) or is_below(path, (self.workspace, *(target for _, target in self.view)))

    def to_json(
        self, *, scratch_bytes: int, required: bool, layers: str | None, threads: str | None = None
    ) -> dict[str, Any]:
        """`threads`: where the `/tmp` of each thread lies, if they are kept."""
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
        }

    def _private(self, layers: str | None) -> list[str]:
        """What is haft's own: nothing is shown there."""
        own = [self.state_home] if os.path.isdir(self.state_home) else []
        if layers is not None and not is_below(os.path.realpath(layers), (os.path.realpath(self.state_home),)):
            own.append(os.path.dirname(os.path.realpath(layers)))
        return own


def survey(workspace: str, state_home: str, env: Mapping[str, str]) -> Site:
    """Look at this machine."""
    root = os.path.realpath(workspace)
    home = home_of(env)
    homes = [path for path in dict.fromkeys((*HOMES, home, *registered_home())) if can_be_hidden(path)]
    hide = {
        os.path.realpath(path): mode
        for path, mode in (*SCRATCH, *((path, 0o755) for path in homes))
        if os.path.isdir(path)
    }
    hide["/dev/shm"] = 0o1777  # noqa: S108  there in any case: our own /dev has it
    if home in homes:
        hide[os.path.realpath(home)] = 0o700
    hide.pop(root, None)
    hidden = tuple(hide)
    repository = repository_of(root)
    mounted = tuple(path for path in _mounted_in(SEEN) if not is_below(path, (root,)))
    found = toolchains(safe_path(env.get("PATH", ""), root), hidden, homes, lambda path: _is_system(path, mounted))
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
        caches=tuple(_caches(root, state_home, home, hide, show)),
        repository=repository,
        is_writable=not os.statvfs(root).f_flag & os.ST_RDONLY,
    )


def environments_in(workspace: str, env: Mapping[str, str]) -> Iterator[str]:
    """The virtual environments that calls may use: those whose programs are on PATH, wherever they are, and those of
    the workspace that have the usual names."""
    yield from (
        os.path.dirname(os.path.normpath(each)) for each in env.get("PATH", "").split(":") if os.path.isabs(each)
    )
    yield from (os.path.join(workspace, name) for name in (".venv", "venv"))


def _shown(
    paths: Iterable[str], hide: Mapping[str, int], hidden: Iterable[str] = ("/",)
) -> tuple[tuple[str, str], ...]:
    """Those of some paths that lie in hidden places: where each lies, and where it is seen."""
    kept = [path for path in dict.fromkeys(paths) if is_below(path, hidden) and os.path.exists(path)]
    return tuple((os.path.realpath(path), path) for path in kept if path not in hide)[:MOST_SHOWN]


def _is_system(path: str, mounted: Iterable[str]) -> bool:
    return is_below(path, SEEN) and not is_below(path, mounted)


def _mounted_in(places: Iterable[str]) -> list[str]:
    """The directories in some places that something is mounted on."""
    try:
        with open("/proc/self/mountinfo", "rb") as file:
            lines = file.read().splitlines()
    except OSError:
        return []
    paths = (os.fsdecode(line.split(b" ")[4].decode("unicode_escape").encode("latin-1")) for line in lines)
    return sorted({path for path in paths if path not in places and is_below(path, places) and os.path.isdir(path)})


def repository_of(workspace: str) -> str | None:
    """The repository that the workspace is a worktree of, where both say so: a workspace alone could name anything."""
    try:
        named = first_line(os.path.join(workspace, ".git"))
        own = os.path.realpath(os.path.join(workspace, named.removeprefix("gitdir: ")))
        back = os.path.realpath(first_line(os.path.join(own, "gitdir")))
        common = os.path.realpath(os.path.join(own, first_line(os.path.join(own, "commondir"))))
    except OSError:
        return None
    agreed = named.startswith("gitdir: ") and back == os.path.join(workspace, ".git")
    return common if agreed and os.path.dirname(own) == os.path.join(common, "worktrees") else None


def registered_home() -> list[str]:
    """The home of whoever runs this, whatever HOME says."""
    try:
        return [os.path.normpath(pwd.getpwuid(os.getuid()).pw_dir)]
    except KeyError:
        return []


def can_be_hidden(path: str) -> bool:
    """Whether a home can be empty without taking the system with it."""
    return os.path.isdir(path) and not is_below(path, SYSTEM) and path != "/"


def home_of(env: Mapping[str, str]) -> str:
    """The home directory, as programs will look for it."""
    home = env.get("HOME", "")
    if not os.path.isabs(home):
        try:
            home = pwd.getpwuid(os.getuid()).pw_dir
        except KeyError:
            home = "/"
    return os.path.normpath(home)


def needed(workspace: str) -> Iterator[str]:
    """What no call can do without: the workspace, Python as it runs here, and the way to look up names."""
    yield workspace
    yield from (sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix)
    yield os.path.dirname(os.path.realpath(sys.executable))
    yield os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    yield os.path.realpath("/etc/resolv.conf")


def _files(home: str, hide: Mapping[str, int], env: Mapping[str, str]) -> dict[str, str]:
    if os.path.realpath(home) not in hide:
        return {}
    words = known_to_git(home, env)
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
            continue  # Python itself may run from there.
        try:
            os.makedirs(source, mode=0o700, exist_ok=True)
        except OSError:
            return  # A call can do without.
        yield source, target
