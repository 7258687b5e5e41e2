"""Fresh tools: what kinds there are, where they go, and writing them.

A kind is a line of `KINDS` and what lies under its name in `templates`: a file, for a tool that is one, or a folder.
Templates are real programs of a tool called `__NAME__`; making one is copying it under another name. Nothing is run
here, and nothing that exists is touched unless that is asked for. Whether haft looks at the place is not known here.
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
"""A tool's name may have 64 characters, and `tb__` is put before this one."""
_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*")
_PASSING: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC

GLOBAL_TOOLBOX: Final = "~/.config/amp/tools"


@dataclass(frozen=True, slots=True)
class ToolKind:
    """A kind of tool that can be made."""

    word: str
    """What its option and its template are called."""
    about: str
    format: Format
    home: str
    """Where it goes in a workspace."""
    program: str
    """What must be there to run it."""
    cure: str
    """How to come by that."""


KINDS: Final = {
    kind.word: kind
    for kind in (
        ToolKind("python", "A toolbox tool in Python.", "amp-toolbox", PROJECT, "python3", "install Python 3"),
        ToolKind("bash", "A toolbox tool in bash.", "amp-toolbox", PROJECT, "bash", "install bash"),
        ToolKind("zsh", "A toolbox tool in zsh.", "amp-toolbox", PROJECT, "zsh", "install the package `zsh`"),
        ToolKind(
            "bun", "A toolbox tool in JavaScript, for bun.", "amp-toolbox", PROJECT, "bun", "`npm install --global bun`"
        ),
        ToolKind("bash-plugin", "A bash tool plugin.", "bash-plugin", "plugins", "bash", "install bash"),
        ToolKind("studio", "An Agent Studio template.", "agent-studio", "templates", "python3", "install Python 3"),
    )
}
DEFAULT_KIND: Final = "python"


@dataclass(frozen=True, slots=True)
class Made:
    """A tool that was made."""

    path: str
    """The tool: a file, or the folder of a template."""
    files: tuple[str, ...]
    warnings: tuple[str, ...]
    """What may keep it from working or from being safe."""


def check_name(name: str) -> None:
    """`BadUsage` with a better proposal where a tool cannot be called so."""
    rule = f"letters, digits, `_` and `-`, at most {LONGEST_NAME}, not beginning with `-`"
    is_good = len(name) <= LONGEST_NAME and _NAME.fullmatch(name) is not None
    if not is_good:
        proposed = cleaned_name(name)
        hint = f"a name has {rule}" + (f"; `{proposed}` would do" if proposed else "")
        raise BadUsage(f"a tool cannot be called `{name[:200]}`", hint=hint)


def cleaned_name(name: str) -> str:
    """The nearest name that a tool may have; empty where there is nothing to go by."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    return re.sub(r"[^A-Za-z0-9_-]+", "_", plain).strip("_-")[:LONGEST_NAME].rstrip("_-")


def global_toolbox(environ: Mapping[str, str]) -> str:
    """The user's own toolbox: the first directory of AMP_TOOLBOX, or the usual one."""
    named = next(filter(None, environ.get("AMP_TOOLBOX", "").split(os.pathsep)), GLOBAL_TOOLBOX)
    path = os.path.expanduser(named)
    if named.startswith("~") and not os.path.isabs(path):
        raise BadUsage(f"your home directory makes `{named}` to `{path}`, which is no absolute path", hint="set HOME")
    return os.path.abspath(path)


def skill_toolbox(skill: str, workspace: str, environ: Mapping[str, str]) -> str:
    """The folder for tools of a skill. `BadUsage` where there is no such skill, or it is none to add to."""
    from haft.sources.skills import Skills

    skills = Skills(workspace, env=environ)
    found = skills.found()
    if not any(one.name == skill for one in found):
        near = near_miss(skill[:80], [one.name for one in found if one.is_usable])
        meant = f"did you mean `{near}`? Otherwise " if near else ""
        makes = f"{meant}`haft skills make {shlex.quote(skill[:80])}` makes one"
        raise BadUsage(f"there is no skill called `{skill[:80]}`", hint=makes)
    chosen = skills.get(skill)
    if chosen.provenance == "builtin":
        raise BadUsage(f"the skill `{skill}` comes with haft and takes no tools", hint="`haft skills make NAME`")
    try:
        chosen.files().locate("tools")
    except PathEscapes as error:
        folder = os.path.join(chosen.folder, "tools")
        raise BadUsage(
            f"{folder} leads out of the skill: no tool is made there", hint="remove the link, or name a place by `--to`"
        ) from error
    return os.path.join(chosen.folder, "tools")


def project_folder(kind: ToolKind, workspace: str) -> str:
    """Where a tool goes in a workspace. `BadUsage` where that is a link out of it, as a cloned one can hold."""
    from haft.files import Root

    folder = os.path.join(workspace, kind.home)
    try:
        Root(workspace).locate(kind.home)
    except PathEscapes as error:
        raise BadUsage(
            f"{folder} leads out of the workspace: no tool is made there",
            hint="remove the link, or name a place by `--to`",
        ) from error
    return folder


def make(name: str, kind: ToolKind, directory: str, *, force: bool) -> Made:
    """Write a fresh tool into `directory`, which is made where it is missing. With `force`, what is in its way is
    replaced; a link is replaced itself, never what it leads to."""
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
        raise BadUsage(f"{above} is no directory: no tool can be made there")
    make_directories(path)


def _require_free(file: str, *, force: bool) -> None:
    if os.path.isdir(file) and not os.path.islink(file):
        raise BadUsage(f"{file} is a directory: no tool can be made there", hint="choose another name")
    if os.path.lexists(file) and not force:
        raise BadUsage(f"{file} exists already", hint="`--force` replaces it")


def _write(file: str, content: bytes, *, is_program: bool, force: bool) -> None:
    """Whole or not at all. The umask counts, except for what the owner needs."""
    passing = os.path.join(os.path.dirname(file), f".haft-{os.urandom(8).hex()}.tmp")
    descriptor = os.open(passing, _PASSING, 0o755 if is_program else 0o644)
    try:
        with open(descriptor, "wb") as opened:
            opened.write(content)
            opened.flush()
            mode = stat.S_IMODE(os.fstat(descriptor).st_mode)
            os.fchmod(descriptor, mode | (0o700 if is_program else 0o600))
            os.fsync(descriptor)
        if force:
            os.rename(passing, file)
        else:
            _link(passing, file)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(passing)


def _link(passing: str, file: str) -> None:
    """Give it its name, unless somebody took that meanwhile."""
    try:
        os.link(passing, file)
    except FileExistsError:
        raise BadUsage(f"{file} was made meanwhile", hint="`--force` replaces it") from None
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.EMLINK):  # a file system without links
            raise
        os.rename(passing, file)


def _warnings(name: str, kind: ToolKind, directory: str) -> Iterator[str]:
    if shutil.which(kind.program) is None:
        yield f"`{kind.program}` is not on your PATH, and the tool needs it: {kind.cure}"
    mode = os.stat(directory).st_mode
    if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
        yield f"anyone on this machine can replace what lies in {directory}: `chmod o-w` it"
    if kind.format == "agent-studio" and "-" in name:
        plain = name.replace("-", "_")
        yield f"a template's name is of letters, digits and spaces: `{name}` runs and cannot be packed, `{plain}` could"
