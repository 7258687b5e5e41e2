"""Packs templates into a ZIP. All of them are checked first, and the file is written in one step.

The order of entries, their modes and their dates depend only on the templates; only the ids and the ends of folder
names are random, as the format requires.
"""

from __future__ import annotations

import json
import os
import zipfile
import zlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from haft.authoring.studio.manifest import FOLDERS, PACK_MANIFEST, Entry, manifest_of
from haft.authoring.studio.template_files import PackBudget, TemplateEntry, template_entries
from haft.authoring.studio.unpacker import MOST_DIRECTORY, fold_path
from haft.contracts import BadUsage, StorageFailed
from haft.files import shown
from haft.sources.agent_studio import check_template, check_template_name, name_of_folder, new_folder_name, slug_of
from haft.sources.checks import Report

if TYPE_CHECKING:
    from zipfile import ZipFile

_WHEN: Final = (1980, 1, 1, 0, 0, 0)
_NEW: Final = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_ABOUT_NAMES: Final = ("studio-name", "studio-pack-name")
_MOST_SQUEEZED: Final = 50
"""If compressing would shrink a file to less than a fiftieth, it is not compressed, because an installer would take it
for a ZIP bomb."""


@dataclass(frozen=True, slots=True)
class Packed:
    """A ZIP that was written."""

    file: str
    templates: tuple[Entry, ...]
    bytes: int
    hidden: tuple[str, ...] = ()
    """The packed files whose names begin with a dot. They are reported, because people forget that such files may
    contain secrets."""

    def to_json(self) -> dict[str, Any]:
        return {
            "file": self.file,
            "bytes": self.bytes,
            "templates": [{"name": entry.name, "folder": entry.folder} for entry in self.templates],
            "hidden": list(self.hidden),
        }


def check_for_packing(folder: str, name: str | None = None) -> Report:
    """Check whether a template can be packed, and return the report. If `name` is given, the template would be packed
    under this name."""
    report = check_template(folder, packing=True)
    if name is None:
        return report
    check_template_name(name)
    # With a given name, problems with the name of the folder do not matter.
    return replace(report, name=name, findings=[each for each in report.findings if each.code not in _ABOUT_NAMES])


def pack(folders: Sequence[str], target: str, *, name: str | None = None, force: bool = False) -> Packed:
    """Write the templates in these folders into a new ZIP. `name` gives a single template another name. With `force`,
    an existing file `target` is replaced."""
    if not folders:
        raise BadUsage("there is nothing to pack")
    if name is not None and len(folders) != 1:
        raise BadUsage(f"a name is for one template, but there are {len(folders)}", hint="pack one at a time")
    target = os.path.abspath(target)
    _require_target(target, folders, force=force)
    entries = _entries(folders, name)
    budget = PackBudget()
    gathered = [list(template_entries(folder, budget)) for folder in folders]
    for folder, found in zip(folders, gathered, strict=True):
        _require_apart(folder, found)
    manifest = json.dumps(manifest_of(entries, entries[0].name if len(entries) == 1 else "Tools"), indent=2) + "\n"
    pieces = [(PACK_MANIFEST, TemplateEntry(PACK_MANIFEST, manifest.encode())), *_archive_entries(entries, gathered)]
    if sum(64 + len(path.encode()) for path, _ in pieces) > MOST_DIRECTORY:
        raise BadUsage("the names of all files together are too long: nothing is packed")
    size = _write(target, pieces, force=force)
    hidden = [
        os.path.join(folder, piece.path)
        for folder, found in zip(folders, gathered, strict=True)
        for piece in found
        if piece.content is not None and any(name.startswith(".") for name in piece.path.split("/"))
    ]
    return Packed(target, tuple(entries), size, tuple(hidden))


def _require_target(target: str, folders: Sequence[str], *, force: bool) -> None:
    above = os.path.dirname(target)
    if not os.path.isdir(above):
        raise BadUsage(f"{shown(above)} is not a directory: nothing is packed")
    if os.path.isdir(target) and not os.path.islink(target):
        raise BadUsage(f"{shown(target)} is a directory: nothing is packed", hint="name a file: `--to templates.zip`")
    if os.path.lexists(target) and not force:
        raise _is_there(target)
    for folder in folders:
        if f"{os.path.realpath(above)}/".startswith(f"{os.path.realpath(folder).rstrip('/')}/"):
            raise BadUsage(f"{shown(target)} is inside the template to pack", hint="give another path with `--to`")


def _is_there(target: str) -> BadUsage:
    return BadUsage(f"{shown(target)} exists already: nothing is packed", hint="`--force` replaces it")


def _entries(folders: Sequence[str], name: str | None) -> list[Entry]:
    found: dict[str, tuple[str, str]] = {}
    for folder in folders:
        report = check_for_packing(folder, name)
        if not report.ok:
            codes = ", ".join(dict.fromkeys(each.code for each in report.findings if each.level == "error"))
            raise BadUsage(
                f"`{shown(folder)}` cannot be packed: {codes}", hint=f"`haft templates check --packing {shown(folder)}`"
            )
        called = name_of_folder(folder) if name is None else name
        check_template_name(called)
        other = found.setdefault(slug_of(called), (called, folder))
        if other[1] is not folder:
            raise BadUsage(
                f"`{shown(other[1])}` and `{shown(folder)}` are both called `{called}`: nothing is packed",
                hint="rename one of the folders",
            )
    return [Entry(called, f"{FOLDERS}/{new_folder_name(called)}") for called, _ in found.values()]


def _require_apart(folder: str, pieces: Sequence[TemplateEntry]) -> None:
    """Raise `BadUsage` if two paths differ only in case: on some machines, they would be the same file."""
    seen: dict[str, str] = {}
    for piece in pieces:
        other = seen.setdefault(fold_path(piece.path), piece.path)
        if other != piece.path:
            raise BadUsage(
                f"`{shown(other)}` and `{shown(piece.path)}` in `{shown(folder)}` are the same name on other machines: "
                "nothing is packed",
                hint="rename one of them",
            )


def _archive_entries(
    entries: Sequence[Entry], gathered: Sequence[Sequence[TemplateEntry]]
) -> list[tuple[str, TemplateEntry]]:
    return [
        (f"{entry.folder}/{piece.path}", piece)
        for entry, pieces in zip(entries, gathered, strict=True)
        for piece in pieces
    ]


def _write(target: str, pieces: Sequence[tuple[str, TemplateEntry]], *, force: bool) -> int:
    """Write a temporary file beside the target and rename it, so that nobody ever sees half a file. Returns the size in
    bytes."""
    temporary = os.path.join(os.path.dirname(target), f".haft-{os.urandom(8).hex()}.tmp")
    try:
        descriptor = os.open(temporary, _NEW, 0o666)
        try:
            with os.fdopen(descriptor, "w+b") as file:
                with zipfile.ZipFile(file, "w") as archive:
                    for path, piece in pieces:
                        _put(archive, path, piece)
                file.flush()
                os.fsync(file.fileno())
                size = os.fstat(file.fileno()).st_size
            _into_place(temporary, target, force=force)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(temporary)
    except OSError as error:
        raise StorageFailed(f"{shown(target)} was not written", error) from error
    return size


def _into_place(temporary: str, target: str, *, force: bool) -> None:
    if force:
        os.rename(temporary, target)
        return
    try:
        os.link(temporary, target)  # Unlike a rename, a link never replaces a file.
    except FileExistsError:
        raise _is_there(target) from None
    except OSError:  # The file system has no hard links.
        if os.path.lexists(target):
            raise _is_there(target) from None
        os.rename(temporary, target)


def _put(archive: ZipFile, path: str, piece: TemplateEntry) -> None:
    if piece.content is None:
        info = zipfile.ZipInfo(f"{path}/", _WHEN)
        info.external_attr = (0o40755 << 16) | 0x10
        archive.writestr(info, b"")
        return
    info = zipfile.ZipInfo(path, _WHEN)
    info.create_system = 3  # Unix, so that the modes count.
    info.external_attr = (0o100755 if piece.is_executable else 0o100644) << 16
    smaller = len(zlib.compress(piece.content, 6))
    is_worth_it = smaller < len(piece.content) <= smaller * _MOST_SQUEEZED
    archive.writestr(info, piece.content, zipfile.ZIP_DEFLATED if is_worth_it else zipfile.ZIP_STORED)
