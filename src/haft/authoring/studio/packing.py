"""Packing templates into a ZIP: all of them checked, and the file whole or not there at all.

The order of entries, their modes and their dates depend on nothing but the templates; what is random are the identities
and the ends of folder names, as the format wants them.
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

from haft.authoring.studio.gathering import Piece, Room, gather
from haft.authoring.studio.manifest import FOLDERS, PACK_MANIFEST, Entry, manifest_of
from haft.authoring.studio.unpacking import MOST_DIRECTORY, folded
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
"""What could be made so many times smaller is stored as it is: it would be taken for a bomb where it is installed."""


@dataclass(frozen=True, slots=True)
class Packed:
    """A ZIP that was written."""

    file: str
    templates: tuple[Entry, ...]
    bytes: int
    hidden: tuple[str, ...] = ()
    """Files whose names begin with a dot: people forget what is in them."""

    def to_json(self) -> dict[str, Any]:
        return {
            "file": self.file,
            "bytes": self.bytes,
            "templates": [{"name": entry.name, "folder": entry.folder} for entry in self.templates],
            "hidden": list(self.hidden),
        }


def check_for_packing(folder: str, name: str | None = None) -> Report:
    """The check that a template must pass to be packed, under another name where one is given."""
    report = check_template(folder, packing=True)
    if name is None:
        return report
    check_template_name(name)
    # What the folder is called does not matter then.
    return replace(report, name=name, findings=[each for each in report.findings if each.code not in _ABOUT_NAMES])


def pack(folders: Sequence[str], target: str, *, name: str | None = None, force: bool = False) -> Packed:
    """Write the templates in these folders into a new ZIP. `name` is for a single one; `force` replaces a file."""
    if not folders:
        raise BadUsage("there is nothing to pack")
    if name is not None and len(folders) != 1:
        raise BadUsage(f"a name is for one template, and there are {len(folders)}", hint="pack one at a time")
    target = os.path.abspath(target)
    _require_target(target, folders, force=force)
    entries = _entries(folders, name)
    room = Room()
    gathered = [list(gather(folder, room)) for folder in folders]
    for folder, found in zip(folders, gathered, strict=True):
        _require_apart(folder, found)
    said = json.dumps(manifest_of(entries, entries[0].name if len(entries) == 1 else "Tools"), indent=2) + "\n"
    pieces = [(PACK_MANIFEST, Piece(PACK_MANIFEST, said.encode())), *_arranged(entries, gathered)]
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
        raise BadUsage(f"{shown(above)} is no directory: nothing is packed")
    if os.path.isdir(target) and not os.path.islink(target):
        raise BadUsage(f"{shown(target)} is a directory: nothing is packed", hint="name a file: `--to templates.zip`")
    if os.path.lexists(target) and not force:
        raise _is_there(target)
    for folder in folders:
        if f"{os.path.realpath(above)}/".startswith(f"{os.path.realpath(folder).rstrip('/')}/"):
            raise BadUsage(f"{shown(target)} lies in the template that is to be packed", hint="name another place")


def _is_there(target: str) -> BadUsage:
    return BadUsage(f"{shown(target)} is there already: nothing is packed", hint="`--force` replaces it")


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


def _require_apart(folder: str, pieces: Sequence[Piece]) -> None:
    """Names that differ in case only are one name on other machines: nobody could install them."""
    seen: dict[str, str] = {}
    for piece in pieces:
        other = seen.setdefault(folded(piece.path), piece.path)
        if other != piece.path:
            raise BadUsage(
                f"`{shown(other)}` and `{shown(piece.path)}` in `{shown(folder)}` are one name on other machines: "
                "nothing is packed",
                hint="rename one of them",
            )


def _arranged(entries: Sequence[Entry], gathered: Sequence[Sequence[Piece]]) -> list[tuple[str, Piece]]:
    return [
        (f"{entry.folder}/{piece.path}", piece)
        for entry, pieces in zip(entries, gathered, strict=True)
        for piece in pieces
    ]


def _write(target: str, pieces: Sequence[tuple[str, Piece]], *, force: bool) -> int:
    """Beside it first; then into place, where nobody ever sees half of it."""
    passing = os.path.join(os.path.dirname(target), f".haft-{os.urandom(8).hex()}.tmp")
    try:
        descriptor = os.open(passing, _NEW, 0o666)
        try:
            with os.fdopen(descriptor, "w+b") as file:
                with zipfile.ZipFile(file, "w") as archive:
                    for path, piece in pieces:
                        _put(archive, path, piece)
                file.flush()
                os.fsync(file.fileno())
                size = os.fstat(file.fileno()).st_size
            _into_place(passing, target, force=force)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(passing)
    except OSError as error:
        raise StorageFailed(f"{shown(target)} was not written", error) from error
    return size


def _into_place(passing: str, target: str, *, force: bool) -> None:
    if force:
        os.rename(passing, target)
        return
    try:
        os.link(passing, target)  # Unlike a rename, it replaces nothing.
    except FileExistsError:
        raise _is_there(target) from None
    except OSError:  # a file system without hard links
        if os.path.lexists(target):
            raise _is_there(target) from None
        os.rename(passing, target)


def _put(archive: ZipFile, path: str, piece: Piece) -> None:
    if piece.content is None:
        info = zipfile.ZipInfo(f"{path}/", _WHEN)
        info.external_attr = (0o40755 << 16) | 0x10
        archive.writestr(info, b"")
        return
    info = zipfile.ZipInfo(path, _WHEN)
    info.create_system = 3  # Unix: whose modes these are
    info.external_attr = (0o100755 if piece.is_executable else 0o100644) << 16
    smaller = len(zlib.compress(piece.content, 6))
    is_worth_it = smaller < len(piece.content) <= smaller * _MOST_SQUEEZED
    archive.writestr(info, piece.content, zipfile.ZIP_DEFLATED if is_worth_it else zipfile.ZIP_STORED)
