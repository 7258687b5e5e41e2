"""The directories that templates lie in: which there are, whose each is, and holding one while it is changed.

Whoever installs or removes holds the lock of the directory, which ends with the process. What lies in it under a
passing name while nobody holds the lock was left behind by someone who was killed.
"""

from __future__ import annotations

import logging
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final

from haft.authoring.directories import make_directories, unmake_directories
from haft.contracts import BadUsage, StorageFailed
from haft.files import locked, shown
from haft.sources.agent_studio import ENTRY, check_template, name_of_folder, read_manifest, slug_of

PASSING: Final = ".haft-templates-"
"""How the name of a folder begins in which something is made ready, or taken apart."""
_PATIENCE: Final = 30.0
_TRIES: Final = 10
_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Placed:
    """A template where it lies."""

    folder: str
    name: str
    workflow: str | None
    """Whose it is; None: everybody's."""
    id: str | None
    """Of one that was installed."""

    @property
    def slug(self) -> str:
        return slug_of(self.name)

    def to_json(self, problems: Sequence[str]) -> dict[str, Any]:
        return {
            "name": self.name,
            "slug": self.slug,
            "workflow": self.workflow,
            "folder": self.folder,
            "id": self.id,
            "problems": list(problems),
        }


def is_template_folder(path: str) -> bool:
    """Whether a folder is a template's, in whatever state."""
    return os.path.isdir(path) and (os.path.lexists(os.path.join(path, ENTRY)) or read_manifest(path) is not None)


def placed(folder: str) -> Placed:
    """The template in a folder."""
    manifest = read_manifest(folder)
    return Placed(
        folder,
        name_of_folder(folder),
        None if manifest is None else manifest.workflow,
        None if manifest is None else manifest.id,
    )


def templates_in(place: str) -> list[Placed]:
    """The templates of a directory, by folder; the directory itself where it is one."""
    if is_template_folder(place):
        return [placed(place)]
    try:
        names = sorted(os.listdir(place))
    except OSError:
        return []
    folders = [os.path.join(place, name) for name in names if not name.startswith(".")]
    return [placed(folder) for folder in folders if is_template_folder(folder)]


def problems_of(template: Placed, others: Sequence[Placed]) -> list[str]:
    """What keeps a template from being used, in words."""
    report = check_template(template.folder)
    found = [f"{each.code}: {each.message}" for each in report.findings if each.level == "error"]
    return [*found, *problems_of_name(template, others)]


def problems_of_name(template: Placed, others: Sequence[Placed]) -> list[str]:
    """The same, as far as it is that others have its name."""
    same = [one for one in others if one.folder != template.folder and is_same(one, template.name, template.workflow)]
    return [f"its name is also that of {one.folder}" for one in same]


def is_same(template: Placed, name: str, workflow: str | None) -> bool:
    """Whether a template has this name where names must differ."""
    return template.slug == slug_of(name) and template.workflow == workflow


@contextmanager
def held(place: str) -> Iterator[None]:
    """Nobody else changes the directory meanwhile. Made where it is missing, and gone again where nothing came."""
    made: list[str] = []
    with ExitStack() as stack:
        for _ in range(_TRIES):
            made += _made(place)
            descriptor = _opened(place)
            if descriptor is None:
                continue
            stack.callback(os.close, descriptor)
            try:
                stack.enter_context(locked(descriptor, _PATIENCE))
            except TimeoutError:
                raise BadUsage(
                    f"another haft is at work in {shown(place)}", hint="wait for it, then try again"
                ) from None
            if _is_at(descriptor, place):  # whoever made it may have taken it away again
                break
        else:
            raise BadUsage(f"{shown(place)} does not stay: someone removes it again and again")
        stack.callback(unmake_directories, made)
        _remove_left_behind(place)
        yield


def _made(place: str) -> list[str]:
    try:
        made = make_directories(place)
    except OSError as error:
        raise BadUsage(f"{shown(place)} cannot be made: {(error.strerror or str(error)).lower()}") from error
    if os.path.lexists(place) and not os.path.isdir(place):
        raise BadUsage(f"{shown(place)} is no directory")
    return made


def _opened(place: str) -> int | None:
    try:
        return os.open(place, _DIRECTORY)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise BadUsage(f"{shown(place)} cannot be opened: {(error.strerror or str(error)).lower()}") from error


def _is_at(descriptor: int, place: str) -> bool:
    with suppress(OSError):
        return os.path.samestat(os.fstat(descriptor), os.stat(place))
    return False


def _remove_left_behind(place: str) -> None:
    with suppress(OSError):
        for name in os.listdir(place):
            if name.startswith(PASSING):
                shutil.rmtree(os.path.join(place, name), ignore_errors=True)


@contextmanager
def passing_folder(place: str) -> Iterator[str]:
    """A hidden folder in a directory that is held; gone afterwards, with what is in it."""
    try:
        folder = tempfile.mkdtemp(prefix=PASSING, dir=place)
        os.chmod(folder, stat.S_IRWXU)
    except OSError as error:
        raise StorageFailed(f"nothing can be changed in {shown(place)}", error) from error
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if os.path.lexists(folder):
            logging.getLogger("haft").warning("%s could not be removed: remove it yourself", folder)
