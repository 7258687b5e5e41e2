"""Random sequences of nasty file mutations: the same ones for the same seed and the same tree.

This file is also the program that performs them inside a call: `Script.program` hands over its source, which is why it
uses nothing but Python's own library. What fails is passed over, as in any bad script. Two things are never done:
writing through a link that leads out of the tree, and touching by itself what a call may not touch unasked (hooks and
configuration of nested repositories); those go where their directory goes.
"""

from __future__ import annotations

import errno
import itertools
import os
import random
import shlex
import shutil
import socket
import stat
import struct
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

FILE_MODES = (0o644, 0o600, 0o755, 0o444, 0o400, 0o777, 0o200, 0o111)
DIRECTORY_MODES = (0o755, 0o700, 0o500, 0o711, 0o777, 0o300)
TIMES = (0, 1, 999_999_999, -1, -(10**18), 10**18 + 123_456_789, 4 * 10**18 + 1)
"""Nanoseconds since 1970, before it too."""
LONGEST_PATH = 2000
"""Nothing is done further down: a path that no system call takes would end the test, not the engine."""
NAMES = (
    b"plain", b"other.txt", b"new\nline", b"\n", b"-rf", b"--help", b"with space", b" ", b"quote'\"`$(id)", b"a\\slash",
    b"*", b"~", b"...", b"tab\tbell\x07\x1b[31m", "\N{PILE OF POO}\N{ZERO WIDTH JOINER}".encode(), "\u00e9".encode(),
    "e\u0301".encode(), "\u202etxt".encode(), b"\xff\xfe", b"half \xc3", b"colon:comma,equals=", b".hidden", b".wh.x",
    b"ignored.log", b"#anchor", b"%41", b"con", b"x" * 255, b"\xf0" * 255,
)  # fmt: skip
HANDS_OFF = {b"hooks", b"config", b"config.worktree", b"commondir", b"modules", b"worktrees"}
"""In a repository: what decides which programs run later."""


Wanted = Callable[[os.stat_result], bool]
Mutation = Callable[["Walk", bytes], None]


class Nothing(LookupError):
    """There is no such thing in the tree at the moment."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One way to change a tree."""

    do: Mutation
    of: Wanted | None
    """What it is done to; None: it makes something new."""
    weight: float
    """How often it comes in a script."""
    before: float
    """How often it comes in making the tree that the script finds."""


@dataclass(frozen=True, slots=True)
class Step:
    """What was done, to which path, or why not."""

    kind: str
    path: bytes = b""
    failure: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.path!a} {self.failure}".rstrip()


KINDS: dict[str, Kind] = {}


def kind(
    weight: float, of: Wanted | None = None, *, before: float = 0, name: str = ""
) -> Callable[[Mutation], Mutation]:
    def known(do: Mutation) -> Mutation:
        KINDS[name or do.__name__] = Kind(do, of, weight, before)
        return do

    return known


@dataclass(frozen=True, slots=True)
class Script:
    """A tree and what happens to it."""

    seed: int
    size: int
    only: tuple[str, ...] = ()
    """The kinds to take; empty: all of them."""
    without: tuple[str, ...] = ()
    """The kinds to leave out, in the tree before it too."""

    def populate(self, directory: str | os.PathLike[str]) -> list[Step]:
        """Fill an empty directory with what the script will find."""
        walk = Walk(os.fsencode(directory), f"{self.seed} before")
        for name in (b"src/main.py", b"src/a/b/c.txt", b"doc/read me", b"build/out.log", b"keep"):
            os.makedirs(os.path.dirname(walk.path(name)), exist_ok=True)
            write(walk.path(name), walk.content())
        write(walk.path(b".gitignore"), b"*.log\nbuild/\n")
        os.mkdir(walk.path(b"empty"))
        return walk.go(20, {name: each.before for name, each in KINDS.items() if name not in self.without})

    def perform(self, directory: str | os.PathLike[str]) -> list[Step]:
        """Do in this process what the program does."""
        weights = {name: KINDS[name].weight for name in self.only or KINDS if name not in self.without}
        return Walk(os.fsencode(directory), str(self.seed)).go(self.size, weights)

    def program(self) -> str:
        """Python source that does it in the current directory and prints the steps."""
        with open(__file__, encoding="utf-8") as file:
            return f"{file.read()}\n\nos.umask(0o022)\nfor step in {self!r}.perform('.'):\n    print(step)\n"

    def command(self, python: str = "/usr/bin/python3") -> str:
        """The same as one line for a shell."""
        return f"{python} -I -S -c {shlex.quote(self.program())}"


def sequence(seed: int, size: int, *, only: Iterable[str] = (), without: Iterable[str] = ()) -> Script:
    return Script(seed, size, tuple(only), tuple(without))


class Walk:
    """A random walk over the tree as it is at the moment."""

    def __init__(self, base: bytes, seed: str) -> None:
        self.base = base
        self.chance = random.Random(seed)

    def go(self, size: int, weights: dict[str, float]) -> list[Step]:
        return [self._step(name) for name in self.chance.choices(list(weights), list(weights.values()), k=size)]

    def _step(self, name: str) -> Step:
        path, each = b"", KINDS[name]
        try:
            path = self.fresh() if each.of is None else self.pick(each.of)
            each.do(self, path)
            failure = ""
        except Nothing:
            failure = "nothing to do it to"
        except OSError as error:
            failure = errno.errorcode.get(error.errno or 0, str(error))
        return Step(name, os.path.relpath(path, self.base) if path else b"", failure)

    def path(self, name: bytes) -> bytes:
        return os.path.join(self.base, name)

    def pick(self, wanted: Wanted) -> bytes:
        """Something that is `wanted`, found by going down from the top: a crowded directory is as likely as others."""
        for _ in range(25):
            path, status = self.base, None
            while status is None or stat.S_ISDIR(status.st_mode):
                try:
                    names = [name for name in sorted(os.listdir(path)) if not is_protected(os.path.join(path, name))]
                    if not names or len(path) > LONGEST_PATH:
                        break
                    path = os.path.join(path, self.chance.choice(names))
                    status = os.lstat(path)
                except OSError:
                    break
                stays = not stat.S_ISDIR(status.st_mode) or self.chance.random() < 0.4
                if wanted(status) and stays and os.path.basename(path) != b".git":
                    return path
        raise Nothing

    def place(self) -> bytes:
        """A directory to put something into."""
        if self.chance.random() < 0.3:
            return self.base
        try:
            return self.pick(is_directory)
        except Nothing:
            return self.base

    def fresh(self) -> bytes:
        """Where something could be put; now and then something is there already."""
        name = self.chance.choice(NAMES)
        number = self.chance.randrange(4)
        return os.path.join(self.place(), name + (b"%d" % number if number and len(name) < 255 else b""))

    def content(self) -> bytes:
        roll = self.chance.random()
        if roll < 0.1:
            return b""
        if roll < 0.5:
            return b"".join(b"line %d\n" % self.chance.randrange(100) for _ in range(self.chance.randrange(1, 50)))
        return self.chance.randbytes(self.chance.randrange(1, 3000) if roll < 0.97 else 200_000)


def is_file(status: os.stat_result) -> bool:
    return stat.S_ISREG(status.st_mode)


def is_filled(status: os.stat_result) -> bool:
    return is_file(status) and status.st_size > 0


def is_shared(status: os.stat_result) -> bool:
    return is_file(status) and status.st_nlink > 1


def is_directory(status: os.stat_result) -> bool:
    return stat.S_ISDIR(status.st_mode)


def is_no_directory(status: os.stat_result) -> bool:
    return not is_directory(status)


def is_link(status: os.stat_result) -> bool:
    return stat.S_ISLNK(status.st_mode)


def is_no_link(status: os.stat_result) -> bool:
    return not is_link(status)


def is_closed(status: os.stat_result) -> bool:
    return status.st_mode & 0o777 == 0


def is_other(status: os.stat_result) -> bool:
    return stat.S_ISFIFO(status.st_mode) or stat.S_ISSOCK(status.st_mode)


def is_anything(_status: os.stat_result) -> bool:
    return True


def is_protected(path: bytes) -> bool:
    """Whether it belongs to the hooks or the configuration of a repository."""
    parts = path.split(b"/")
    return any(part == b".git" and after in HANDS_OFF for part, after in itertools.pairwise(parts))


# What the mutations are made of.


def opened(path: bytes, flags: int, data: bytes = b"", at: int | None = None) -> None:
    """Write to a file, not through a link, and without waiting where it is a pipe."""
    descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    with open(descriptor, "wb", buffering=0) as file:
        if at is not None:
            file.seek(at)
        file.write(data)


def write(path: bytes, data: bytes) -> None:
    opened(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, data)


def read(path: bytes) -> bytes:
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        return file.read()


def erase(path: bytes) -> None:
    """Remove it with all that is in it, closed directories too."""
    status = os.lstat(path)
    if not is_directory(status):
        os.unlink(path)
        return
    if status.st_mode & 0o700 != 0o700:
        os.chmod(path, 0o700)
    for name in sorted(os.listdir(path)):
        erase(os.path.join(path, name))
    os.rmdir(path)


def copy(source: bytes, target: bytes) -> None:
    status = os.lstat(source)
    if is_link(status):
        os.symlink(os.readlink(source), target)
    elif is_file(status):
        shutil.copy2(source, target, follow_symlinks=False)
    elif is_directory(status):
        os.mkdir(target)
        for name in sorted(os.listdir(source)):
            copy(os.path.join(source, name), os.path.join(target, name))
        shutil.copystat(source, target)
    else:
        os.mknod(target, status.st_mode)


def move(source: bytes, target: bytes) -> None:
    """As `mv` does: where a directory cannot be renamed (EXDEV in an overlay, for a user), by copying."""
    try:
        os.rename(source, target)
    except OSError as error:
        if error.errno != errno.EXDEV or os.path.lexists(target):
            raise
        copy(source, target)
        erase(source)


def git(directory: bytes, *words: str) -> None:
    import subprocess  # heavy, and most scripts do without

    names = {f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    dates = {f"GIT_{who}_DATE": "1000000000 +0000" for who in ("AUTHOR", "COMMITTER")}
    own = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "HOME": "/", "LC_ALL": "C"}
    env = {"PATH": os.environ.get("PATH", os.defpath), **names, **dates, **own}
    done = subprocess.run(["git", "-c", "gc.auto=0", *words], cwd=directory, env=env, capture_output=True, check=False)
    if done.returncode:
        raise OSError(f"git {words[0]}: {done.stderr[-200:]!a}")


# Content.


@kind(5, is_file)
def append(walk: Walk, path: bytes) -> None:
    opened(path, os.O_WRONLY | os.O_APPEND, walk.content() or b"more")


@kind(3, is_filled)
def truncate(walk: Walk, path: bytes) -> None:
    os.truncate(path, walk.chance.choice((0, walk.chance.randrange(os.lstat(path).st_size))))


@kind(1, is_file)
def lengthen(walk: Walk, path: bytes) -> None:
    os.truncate(path, os.lstat(path).st_size + walk.chance.randrange(1, 100_000))


@kind(4, is_filled)
def edit_in_place(walk: Walk, path: bytes) -> None:
    data = read(path)
    at = walk.chance.randrange(len(data))
    opened(path, os.O_WRONLY, bytes([data[at] ^ 0x21]), at)


@kind(4, is_filled)
def edit_unseen(walk: Walk, path: bytes) -> None:
    """The same size, and the time put back."""
    status = os.lstat(path)
    edit_in_place(walk, path)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


@kind(3, is_file)
def write_the_same(_walk: Walk, path: bytes) -> None:
    write(path, read(path))


@kind(4, is_file)
def replace(_walk: Walk, path: bytes) -> None:
    """As `sed -i` does."""
    temporary = os.path.join(os.path.dirname(path), b"sedXXXX")
    write(temporary, read(path).replace(b"line", b"LINE") + b"!")
    os.chmod(temporary, stat.S_IMODE(os.lstat(path).st_mode))
    os.rename(temporary, path)


@kind(3, is_file)
def file_anew(_walk: Walk, path: bytes) -> None:
    """Deleted and made again with the same content."""
    data = read(path)
    os.unlink(path)
    write(path, data)


@kind(2, is_file)
def rotate(walk: Walk, path: bytes) -> None:
    os.rename(path, path + b".1")
    write(path, walk.content())


@kind(3, is_no_link, before=2)
def touch(walk: Walk, path: bytes) -> None:
    at = walk.chance.choice((time.time_ns(), *TIMES))
    os.utime(path, ns=(at, at))


@kind(2, is_link)
def write_through_link(walk: Walk, path: bytes) -> None:
    real, base = os.path.realpath(path), os.path.realpath(walk.base)
    if not real.startswith(base + b"/") or is_protected(real) or not os.path.isfile(real):
        raise Nothing
    with open(path, "ab") as file:
        file.write(b"through a link")


# New ones.


@kind(5, before=10)
def make_file(walk: Walk, path: bytes) -> None:
    write(path, walk.content())


@kind(1, before=1)
def make_empty_file(_walk: Walk, path: bytes) -> None:
    write(path, b"")


@kind(1, before=2)
def make_binary_file(walk: Walk, path: bytes) -> None:
    write(path, bytes(range(256)) * walk.chance.randrange(1, 40))


@kind(0.7, before=0.4)
def make_sparse_file(walk: Walk, path: bytes) -> None:
    opened(path, os.O_WRONLY | os.O_CREAT, walk.content() or b"end", walk.chance.choice((5_000_000, 70_000)))


@kind(3, before=4)
def make_directory(_walk: Walk, path: bytes) -> None:
    os.mkdir(path)


@kind(1, before=1)
def make_ignored_files(walk: Walk, path: bytes) -> None:
    os.mkdir(path)
    for name, data in ((b".gitignore", b"*.log\n.env\n"), (b"today.log", walk.content()), (b".env", walk.content())):
        write(os.path.join(path, name), data)


@kind(1, before=0.6)
def make_deep_tree(walk: Walk, path: bytes) -> None:
    os.mkdir(path)  # not in one go with the rest, which could go through a link
    for level in range(40):
        os.mkdir(path := os.path.join(path, b"d%d" % level))
    write(os.path.join(path, b"bottom"), walk.content())


def make_files(path: bytes, number: int) -> None:
    os.mkdir(path)
    for each in range(number):
        write(os.path.join(path, b"%d" % each), b"%d" % each)


@kind(0.5, before=0.1)
def make_many_files(_walk: Walk, path: bytes) -> None:
    make_files(path, 200)


@kind(0.02)
def make_ten_thousand_files(_walk: Walk, path: bytes) -> None:
    make_files(path, 10_000)


@kind(0.5, before=0.3)
def make_repository(walk: Walk, path: bytes) -> None:
    os.mkdir(path)
    git(path, "init", "-q")
    write(os.path.join(path, b"untracked"), walk.content())


@kind(0.5, before=0.3)
def make_repository_with_commit(walk: Walk, path: bytes) -> None:
    make_repository(walk, path)
    write(os.path.join(path, b"tracked"), walk.content())
    git(path, "add", "tracked")
    git(path, "commit", "-q", "-m", "first")
    git(path, "read-tree", "HEAD")  # an index without times and inodes is the same every time


@kind(1, before=0.5)
def make_fifo(_walk: Walk, path: bytes) -> None:
    os.mkfifo(path)


@kind(1, before=0.5)
def make_socket(_walk: Walk, path: bytes) -> None:
    directory = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY)
    try:
        with socket.socket(socket.AF_UNIX) as made:  # the whole path of a socket must be short
            made.bind(b"/proc/self/fd/%d/%b" % (directory, os.path.basename(path)[:80]))
    finally:
        os.close(directory)


# Names.


@kind(4, is_no_directory, name="rename_file")
@kind(4, is_directory, name="rename_directory")
def rename(walk: Walk, path: bytes) -> None:
    move(path, walk.fresh())


@kind(3, is_file)
def rename_over(walk: Walk, path: bytes) -> None:
    os.rename(path, walk.pick(is_no_directory))


@kind(2, is_directory)
def rename_directory_over(walk: Walk, path: bytes) -> None:
    """Over an empty one."""
    os.mkdir(target := walk.fresh())
    try:
        os.rename(path, target)
    except OSError:
        os.rmdir(target)
        move(path, target)


@kind(2, is_anything)
def move_into(walk: Walk, path: bytes) -> None:
    """Under its own name, into another directory."""
    move(path, os.path.join(walk.place(), os.path.basename(path)))


@kind(2, is_anything)
def swap(walk: Walk, path: bytes) -> None:
    other = walk.pick(is_anything)
    if (path + b"/").startswith(other + b"/") or (other + b"/").startswith(path + b"/"):
        raise Nothing
    aside = os.path.join(os.path.dirname(path), b"aside")
    move(path, aside)
    move(other, path)
    move(aside, other)


# One thing in place of another.


@kind(2, is_directory, name="directory_to_file")
@kind(2, is_link, name="link_to_file")
def to_file(walk: Walk, path: bytes) -> None:
    erase(path)
    write(path, walk.content())


@kind(2, is_file, name="file_to_directory")
@kind(2, is_link, name="link_to_directory")
def to_directory(walk: Walk, path: bytes) -> None:
    os.unlink(path)
    os.mkdir(path)
    write(os.path.join(path, b"inside"), walk.content())


@kind(2, is_directory)
def directory_to_link(_walk: Walk, path: bytes) -> None:
    """To where its content now is."""
    move(path, os.path.join(os.path.dirname(path), b"moved"))
    os.symlink(b"moved", path)


@kind(2, is_directory)
def directory_anew(walk: Walk, path: bytes) -> None:
    """Removed and made again, with one of its old names in it."""
    names = [name for name in sorted(os.listdir(path)) if name != b".git" and not is_protected(path + b"/" + name)]
    erase(path)
    os.mkdir(path)
    write(os.path.join(path, walk.chance.choice(names or [b"first"])), walk.content())


@kind(2, is_file)
def file_to_link(walk: Walk, path: bytes) -> None:
    os.unlink(path)
    os.symlink(walk.chance.choice((b"/etc/passwd", b"../outside", b"nowhere", b".")), path)


@kind(1, is_link)
def link_elsewhere(_walk: Walk, path: bytes) -> None:
    target = os.readlink(path) + b"2"
    os.unlink(path)
    os.symlink(target, path)


# Links.


@kind(2, before=2)
def link_inside(walk: Walk, path: bytes) -> None:
    os.symlink(os.path.relpath(walk.pick(is_anything), os.path.dirname(path)), path)


@kind(1, before=1)
def link_absolute(walk: Walk, path: bytes) -> None:
    os.symlink(os.path.abspath(walk.pick(is_anything)), path)


@kind(2, before=2)
def link_outside(walk: Walk, path: bytes) -> None:
    os.symlink(walk.chance.choice((b"..", b"/", b"/etc/passwd", b"../../outside", b"/dev/null")), path)


@kind(1, before=1)
def link_dangling(walk: Walk, path: bytes) -> None:
    os.symlink(walk.chance.choice((b"nowhere", b"/nowhere", b"\xff\n", os.path.basename(path), b"n" * 3000)), path)


@kind(3, is_file, before=3)
def hard_link(walk: Walk, path: bytes) -> None:
    os.link(path, walk.fresh())


@kind(3, is_shared)
def write_one_name(_walk: Walk, path: bytes) -> None:
    opened(path, os.O_WRONLY | os.O_APPEND, b"seen under the other name")


# Modes.


@kind(2, is_file, before=2)
def chmod_file(walk: Walk, path: bytes) -> None:
    os.chmod(path, walk.chance.choice(FILE_MODES))


@kind(2, is_directory, before=1)
def chmod_directory(walk: Walk, path: bytes) -> None:
    os.chmod(path, walk.chance.choice(DIRECTORY_MODES))


@kind(2, is_file, before=1, name="close_file")
@kind(1.5, is_directory, before=0.7, name="close_directory")
def close(_walk: Walk, path: bytes) -> None:
    os.chmod(path, 0)


@kind(2, is_closed)
def reopen(_walk: Walk, path: bytes) -> None:
    os.chmod(path, 0o755)


# Extended attributes.


@kind(3, is_file, before=2, name="set_attribute_of_file")
@kind(2, is_directory, before=1, name="set_attribute_of_directory")
def set_attribute(walk: Walk, path: bytes) -> None:
    name = walk.chance.choice((b"user.a", b"user.a.longer name", b"user.\xff"))
    os.setxattr(path, name, walk.chance.randbytes(walk.chance.choice((0, 5, 900))), follow_symlinks=False)


@kind(2, is_file, before=1, name="remove_attributes_of_file")
@kind(1, is_directory, name="remove_attributes_of_directory")
def remove_attributes(_walk: Walk, path: bytes) -> None:
    for name in os.listxattr(path, follow_symlinks=False):
        if name.startswith(("user.a", "system.posix_acl")):
            os.removexattr(path, name, follow_symlinks=False)


@kind(2, is_file, before=1, name="set_access_list_of_file")
@kind(1, is_directory, before=0.5, name="set_access_list_of_directory")
def set_access_list(walk: Walk, path: bytes) -> None:
    nobody, group = 0xFFFFFFFF, walk.chance.choice((4, 5, 6))
    rows = [(1, 6, nobody), (4, 4, nobody), (8, group, os.getgid()), (16, 7, nobody), (32, 4, nobody)]
    words = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *row) for row in rows)
    kinds = ["access", "default"] if is_directory(os.lstat(path)) else ["access"]
    os.setxattr(path, f"system.posix_acl_{walk.chance.choice(kinds)}", words, follow_symlinks=False)


# Deletions.


@kind(3, is_file, name="delete_file")
@kind(2, is_shared, name="delete_one_name")
@kind(1, is_link, name="delete_link")
@kind(1, is_other, name="delete_other")
@kind(2, is_directory, name="delete_directory")
def delete(_walk: Walk, path: bytes) -> None:
    erase(path)


@kind(4, is_directory)
def remove_empty_directory(_walk: Walk, path: bytes) -> None:
    os.rmdir(path)


@kind(0.4, is_anything)
def delete_everything(walk: Walk, _path: bytes) -> None:
    for name in sorted(os.listdir(walk.base)):
        erase(walk.path(name))
