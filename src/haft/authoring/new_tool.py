"""Writes new tools: which kinds there are, and in which directory each kind lies.

A kind is an entry of `KINDS` and a template of the same name in `templates`: a file or a folder. A template is a real
program of a tool called `__NAME__`; a new tool is a copy of this template with another name. This module runs nothing,
and replaces existing files only on request. It does not know whether haft searches the directory for tools.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shlex
import shutil
import stat
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Final, Literal

from haft.authoring.directories import make_directories
from haft.contracts import BadUsage, PathEscapes, near_miss
from haft.sources.amp_toolbox import PROJECT

Format = Literal["amp-toolbox", "bash-plugin", "agent-studio"]

PLACEHOLDER: Final = "__NAME__"
LONGEST_NAME: Final = 60
"""The longest name of a new tool. A tool's name may have 64 characters, and haft puts `tb__` before this one."""
_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*")
_NEW_FILE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC

GLOBAL_TOOLBOX: Final = "~/.config/amp/tools"


@dataclass(frozen=True, slots=True)
class ToolKind:
    """A kind of tool that can be made."""

    word: str
    """The name of the option of `haft tools make` for this kind, and of its template."""
    about: str
    format: Format
    home: str
    """The directory for tools of this kind, relative to the workspace."""
    program: str
    """The program that runs tools of this kind."""
    cure: str
    """How to install `program`, in words."""


KINDS: Final = {
    kind.word: kind
    for kind in (
        ToolKind("python", "A toolbox tool in Python.", "amp-toolbox", PROJECT, "python3", "install Python 3"),
        ToolKind("bash", "A toolbox tool in bash.", "amp-toolbox", PROJECT, "bash", "install bash"),
        ToolKind("zsh", "A toolbox tool in zsh.", "amp-toolbox", PROJECT, "zsh", "install the package `zsh`"),
        ToolKind(
            "bun", "A toolbox tool in JavaScript, for bun.", "amp-toolbox", PROJECT, "bun", "`npm install --global bun`"
        ),
        ToolKind("bash-plugin", "A bash plugin.", "bash-plugin", "plugins", "bash", "install bash"),
        ToolKind("studio", "An Agent Studio template.", "agent-studio", "templates", "python3", "install Python 3"),
    )
}
DEFAULT_KIND: Final = "python"


@dataclass(frozen=True, slots=True)
class Made:
    """The result of `make`: where the new tool lies, and what a person should know about it."""

    path: str
    """The path of the tool: a file, or the folder of a template."""
    files: tuple[str, ...]
    warnings: tuple[str, ...]
    """Reasons why the tool may not work, or may not be safe."""


def check_name(name: str) -> None:
    """Raise `BadUsage`, with a proposal for a valid name, if a tool cannot have this name."""
    rule = f"letters, digits, `_` and `-`, at most {LONGEST_NAME}, not beginning with `-`"
    is_good = len(name) <= LONGEST_NAME and _NAME.fullmatch(name) is not None
    if not is_good:
        proposed = cleaned_name(name)
        hint = f"a name has {rule}" + (f"; `{proposed}` is a valid name" if proposed else "")
        raise BadUsage(f"a tool cannot be called `{name[:200]}`", hint=hint)


def cleaned_name(name: str) -> str:
    """The valid name that is nearest to `name`; empty if no character of `name` can be used."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    return re.sub(r"[^A-Za-z0-9_-]+", "_", plain).strip("_-")[:LONGEST_NAME].rstrip("_-")


def global_toolbox(environ: Mapping[str, str]) -> str:
    """The path of the user's own toolbox: the first directory in the variable AMP_TOOLBOX, else the default."""
    directory = next(filter(None, environ.get("AMP_TOOLBOX", "").split(os.pathsep)), GLOBAL_TOOLBOX)
    path = os.path.expanduser(directory)
    if directory.startswith("~") and not os.path.isabs(path):
        raise BadUsage(f"`{directory}` is `{path}`, which is not an absolute path", hint="set HOME")
    return os.path.abspath(path)


def skill_toolbox(skill: str, workspace: str, environ: Mapping[str, str]) -> str:
    """The path of the folder for tools of a skill. Raises `BadUsage` if there is no such skill, or if the skill comes
    with haft."""
    from haft.sources.skills import Skills

    skills = Skills(workspace, env=environ)
    found = skills.found()
    if not any(one.name == skill for one in found):
        near = near_miss(skill[:80], [one.name for one in found if one.is_usable])
        meant = f"did you mean `{near}`? Otherwise " if near else ""
        hint = f"{meant}`haft skills make {shlex.quote(skill[:80])}` makes one"
        raise BadUsage(f"there is no skill called `{skill[:80]}`", hint=hint)
    chosen = skills.get(skill)
    if chosen.provenance == "builtin":
        raise BadUsage(
            f"the skill `{skill}` comes with haft: tools cannot be added to it",
            hint="`haft skills make NAME` makes one",
        )
    try:
        chosen.files().locate("tools")
    except PathEscapes as error:
        folder = os.path.join(chosen.folder, "tools")
        raise BadUsage(
            f"{folder} is a link out of the skill: no tool was made", hint="remove the link, or give `--to DIR`"
        ) from error
    return os.path.join(chosen.folder, "tools")


def project_folder(kind: ToolKind, workspace: str) -> str:
    """The directory for tools of this kind in a workspace. Raises `BadUsage` if a link in its path leads out of the
    workspace, because a cloned workspace could contain such a link."""
    from haft.files import Root

    folder = os.path.join(workspace, kind.home)
    try:
        Root(workspace).locate(kind.home)
    except PathEscapes as error:
        raise BadUsage(
            f"{folder} is a link out of the workspace: no tool was made",
            hint="remove the link, or give `--to DIR`",
        ) from error
    return folder


def make(name: str, kind: ToolKind, directory: str, *, force: bool) -> Made:
    """Write a new tool into `directory`, which is created if it is missing. With `force`, an existing file is replaced.
    If the existing file is a link, the link is replaced, not its target."""
    check_name(name)
    directory = os.path.abspath(directory)
    path = os.path.join(directory, name)
    template = resources.files(__package__).joinpath("templates", kind.word)
    if template.is_dir():
        if os.path.islink(path):
            raise BadUsage(f"{path} is a link: no tool can be made there", hint="remove it, or choose another name")
        sources = {os.path.join(path, one.name): one for one in template.iterdir() if one.is_file()}
    else:
        sources = {path: template}
    try:
        _make_directory(os.path.dirname(next(iter(sources))))
        for file in sources:
            _require_free(file, force=force)
        for file, source in sources.items():
            content = source.read_text(encoding="utf-8").replace(PLACEHOLDER, name)
            _write(file, content.encode(), is_program=not template.is_dir(), force=force)
    except OSError as error:
        raise BadUsage(f"{error.filename or path} cannot be made: {error.strerror}") from error
    return Made(path, tuple(sorted(sources)), tuple(_warnings(name, kind, directory)))


def _make_directory(path: str) -> None:
    above = path
    while not os.path.lexists(above):
        above = os.path.dirname(above)
    if not os.path.isdir(above):
        raise BadUsage(f"{above} is not a directory: no tool can be made there")
    make_directories(path)


def _require_free(file: str, *, force: bool) -> None:
    if os.path.isdir(file) and not os.path.islink(file):
        raise BadUsage(f"{file} is a directory: no tool can be made there", hint="choose another name")
    if os.path.lexists(file) and not force:
        raise BadUsage(f"{file} exists already", hint="`--force` replaces it")


def _write(file: str, content: bytes, *, is_program: bool, force: bool) -> None:
    """Write a file in one step. The umask applies, but the owner always gets the rights that the file needs."""
    temporary = os.path.join(os.path.dirname(file), f".haft-{os.urandom(8).hex()}.tmp")
    descriptor = os.open(temporary, _NEW_FILE, 0o755 if is_program else 0o644)
    try:
        with open(descriptor, "wb") as opened:
            opened.write(content)
            opened.flush()
            mode = stat.S_IMODE(os.fstat(descriptor).st_mode)
            os.fchmod(descriptor, mode | (0o700 if is_program else 0o600))
            os.fsync(descriptor)
        if force:
            os.rename(temporary, file)
        else:
            _link(temporary, file)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)


def _link(temporary: str, file: str) -> None:
    """Give a temporary file its final name `file`; raises `BadUsage` if there is a file with that name by now."""
    try:
        os.link(temporary, file)
    except FileExistsError:
        raise BadUsage(f"another process has just made {file}", hint="`--force` replaces it") from None
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.EMLINK):  # These mean: no hard links here.
            raise
        os.rename(temporary, file)


def _warnings(name: str, kind: ToolKind, directory: str) -> Iterator[str]:
    if shutil.which(kind.program) is None:
        yield f"`{kind.program}` is not on your PATH, and the tool needs it: {kind.cure}"
    mode = os.stat(directory).st_mode
    if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
        yield f"anyone on this machine can replace the files in {directory}: run `chmod o-w` on it"
    if kind.format == "agent-studio" and "-" in name:
        plain = name.replace("-", "_")
        yield f"`{name}` works but cannot be packed: a packed name has no `-`, such as `{plain}`"
