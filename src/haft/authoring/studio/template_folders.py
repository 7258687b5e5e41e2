"""Finds the folders of templates, and locks a directory of templates while it is changed.

A process that installs or removes templates holds the lock of the directory; the lock ends with the process. A staging
folder in a directory that nobody has locked was left by a process that was killed.
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

STAGING: Final = ".haft-templates-"
"""The beginning of the name of a staging folder, for templates that are being installed or removed."""
_PATIENCE: Final = 30.0
_TRIES: Final = 10
_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class TemplateFolder:
    """A template and its folder."""

    folder: str
    name: str
    workflow: str | None
    """The workflow that the template belongs to; None if it belongs to all."""
    id: str | None
    """The id of an installed template; None for others."""

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
    """Whether a folder is a template, valid or not."""
    return os.path.isdir(path) and (os.path.lexists(os.path.join(path, ENTRY)) or read_manifest(path) is not None)


def read_template_folder(folder: str) -> TemplateFolder:
    """The template in a folder."""
    manifest = read_manifest(folder)
    return TemplateFolder(
        folder,
        name_of_folder(folder),
        None if manifest is None else manifest.workflow,
        None if manifest is None else manifest.id,
    )


def templates_in(place: str) -> list[TemplateFolder]:
    """The templates of a directory, sorted by folder; the directory itself if it is a template."""
    if is_template_folder(place):
        return [read_template_folder(place)]
    try:
        names = sorted(os.listdir(place))
    except OSError:
        return []
    folders = [os.path.join(place, name) for name in names if not name.startswith(".")]
    return [read_template_folder(folder) for folder in folders if is_template_folder(folder)]


def problems_of(template: TemplateFolder, others: Sequence[TemplateFolder]) -> list[str]:
    """The problems that keep a template from being used, in words."""
    report = check_template(template.folder)
    found = [f"{each.code}: {each.message}" for each in report.findings if each.level == "error"]
    return [*found, *problems_of_name(template, others)]


def problems_of_name(template: TemplateFolder, others: Sequence[TemplateFolder]) -> list[str]:
    """A sentence for each other template with the same name."""
    same = [one for one in others if one.folder != template.folder and is_same(one, template.name, template.workflow)]
    return [f"{one.folder} has the same name" for one in same]


def is_same(template: TemplateFolder, name: str, workflow: str | None) -> bool:
    """Whether a template has this name in this workflow. Two templates of one workflow must not have the same name."""
    return template.slug == slug_of(name) and template.workflow == workflow


@contextmanager
def lock_place(place: str) -> Iterator[None]:
    """Lock a directory of templates, so that no other process changes it. The directory is created if it is missing,
    and removed again if it stays empty."""
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
                    f"another haft process is changing {shown(place)}", hint="wait for its end, then try again"
                ) from None
            if _is_at(descriptor, place):  # If not, the process that created the directory has removed it again.
                break
        else:
            raise BadUsage(f"{shown(place)} cannot be used: another process removes it again and again")
        stack.callback(unmake_directories, made)
        _remove_left_behind(place)
        yield


def _made(place: str) -> list[str]:
    try:
        made = make_directories(place)
    except OSError as error:
        raise BadUsage(f"{shown(place)} cannot be made: {(error.strerror or str(error)).lower()}") from error
    if os.path.lexists(place) and not os.path.isdir(place):
        raise BadUsage(f"{shown(place)} is not a directory")
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
            if name.startswith(STAGING):
                shutil.rmtree(os.path.join(place, name), ignore_errors=True)


@contextmanager
def staging_folder(place: str) -> Iterator[str]:
    """A hidden folder in a locked directory; removed afterwards with its content."""
    try:
        folder = tempfile.mkdtemp(prefix=STAGING, dir=place)
        os.chmod(folder, stat.S_IRWXU)
    except OSError as error:
        raise StorageFailed(f"nothing can be changed in {shown(place)}", error) from error
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if os.path.lexists(folder):
            logging.getLogger("haft").warning("%s could not be removed: remove it yourself", folder)
