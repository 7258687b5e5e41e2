"""Compares one path before and after a call, for a person: a patch if lines can be shown, otherwise a short text.

Files and links become patches in git's format. Directories become a line such as `create directory x`, which git does
not know and ignores. Other kinds, such as devices, become a text. `difference` decides which paths belong together as a
rename.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from typing import Final, Literal

from haft.changes.commit.attributes import differing_names, names_in
from haft.changes.commit.entry import UNREADABLE, Entry
from haft.changes.diff.patches import Hunks, git_mode, hunks, patch, quoted, replaced
from haft.changes.diff.text_content import Content, Open, content_of, describe_trouble
from haft.files import shown
from haft.values import dataclass

_SPECIAL: Final = stat.S_ISUID | stat.S_ISGID | stat.S_ISVTX | stat.S_IWOTH
"""Mode bits that a patch does not show, and that a person wants to know about if a new file has them."""


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a comparison: the state of a path, and how to read its content."""

    path: str
    entry: Entry
    read: Open


@dataclass(frozen=True, slots=True)
class PathComparison:
    """The difference of one path: a patch, a note, and how many lines were added and removed."""

    text: str | None = None
    note: str | None = None
    added: int = 0
    removed: int = 0
    binary: bool = False


def compare(old: Side | None, new: Side | None, similarity: int = 100) -> PathComparison:
    """Compare `old` with `new`; None means that the path does not exist. If the two paths differ, they are shown as a
    rename with `similarity` percent."""
    if old is not None and new is not None and _kind_name(old.entry) != _kind_name(new.entry):
        return _compare_kinds(old, new)
    side = new or old
    assert side is not None
    if side.entry.kind == "directory":
        return _directories(old, new)
    if side.entry.kind == "other":
        return _others(old, new)
    return _files(old, new, similarity)


def _compare_kinds(old: Side, new: Side) -> PathComparison:
    """The difference if one kind of file was replaced by another: a deletion, then a creation."""
    gone, came = compare(old, None), compare(None, new)
    notes = [each.note for each, side in ((gone, old), (came, new)) if side.entry.kind == "file"]
    text = None if gone.text is None or came.text is None else gone.text + came.text
    if text is None:
        notes.insert(0, f"{_kind_name(old.entry)} replaced by {_kind_name(new.entry)}")
    return PathComparison(text, _joined(notes), came.added, gone.removed, gone.binary or came.binary)


def _directories(old: Side | None, new: Side | None) -> PathComparison:
    if old is not None and new is not None:
        return PathComparison(note=_joined(_facts(old.entry, new.entry)))
    if new is not None:
        notes = [_special(new.entry, stat.S_ISVTX), _attributes(None, new.entry)]
        return PathComparison(f"create directory {quoted(new.path)}\n", _joined(notes))
    assert old is not None
    return PathComparison(f"delete directory {quoted(old.path)}\n")


def _others(old: Side | None, new: Side | None) -> PathComparison:
    if old is not None and new is not None:
        return PathComparison(note=_joined(_facts(old.entry, new.entry)))
    if new is not None:
        return PathComparison(note=f"{_kind_name(new.entry)} created")
    assert old is not None
    return PathComparison(note=f"{_kind_name(old.entry)} deleted")


def _files(old: Side | None, new: Side | None, similarity: int) -> PathComparison:
    before, after = (None if side is None else side.entry for side in (old, new))
    if old is not None and new is not None and _same_content(old.entry, new.entry):
        return _unchanged(old, new)
    contents = [Content() if side is None else content_of(side.entry, side.read) for side in (old, new)]
    why = describe_trouble(before, after, *contents)
    found = _lines(*contents)
    if why is None and found.text is None:
        why = f"large change ({found.removed:,} lines replaced by {found.added:,}): not shown line by line"
    if why is not None:
        binary = why.startswith(("binary", "not UTF-8"))
        return PathComparison(None, _joined([why, *_facts(before, after)]), found.added, found.removed, binary)
    text = patch(_named(old), _named(new), found.text or "", similarity)
    return PathComparison(text, _joined(_facts(before, after, "mode in patch")), found.added, found.removed)


def _lines(before: Content, after: Content) -> Hunks:
    if before.trouble is None and after.trouble is None:
        return hunks(before.lines, after.lines)
    counted = all(content.lines or content.trouble is None for content in (before, after))
    return replaced(before.lines, after.lines) if counted else Hunks(None, 0, 0)


def _unchanged(old: Side, new: Side) -> PathComparison:
    """The difference between two files with equal content: their paths, modes, owners, times or hard links differ."""
    if old.path == new.path and git_mode(old.entry) == git_mode(new.entry):
        note = _joined(_facts(old.entry, new.entry))
        if note is None and old.entry.mtime_ns == new.entry.mtime_ns:
            note = "only which names are one file with it (hard links) changed"
        return PathComparison(note=note or "only its time changed")
    note = _joined(_facts(old.entry, new.entry, "mode in patch"))
    return PathComparison(patch(_named(old), _named(new), "", 100), note)


def _named(side: Side | None) -> tuple[str, Entry] | None:
    return None if side is None else (side.path, side.entry)


def _same_content(old: Entry, new: Entry) -> bool:
    if old.content is None or UNREADABLE in (old.content, new.content):
        return (old.content, old.size, old.mtime_ns) == (new.content, new.size, new.mtime_ns)
    return old.content == new.content


def _facts(old: Entry | None, new: Entry | None, mode_shown: Literal["mode in patch"] | None = None) -> Iterator[str]:
    """Texts about changes that a patch does not show: in attributes, mode and owner. A patch shows only whether a file
    may be executed."""
    if new is not None:
        yield from filter(None, [_attributes(old, new)])
    if new is not None and old is None:
        yield from filter(None, [_special(new, _SPECIAL)])
    if old is None or new is None:
        return
    modes = stat.S_IMODE(old.mode), stat.S_IMODE(new.mode)
    if modes[0] != modes[1] and not (mode_shown and set(modes) == {0o644, 0o755}):
        yield f"mode {modes[0]:04o} → {modes[1]:04o}"
    if (old.uid, old.gid) != (new.uid, new.gid):
        yield f"owner {old.uid}:{old.gid} → {new.uid}:{new.gid}"


def _attributes(old: Entry | None, new: Entry) -> str | None:
    """A text that names the changed extended attributes, which a patch does not show; None if there are none."""
    names = differing_names("" if old is None else old.attributes, new.attributes)
    if not names:
        return None
    had = set() if old is None else set(names_in(old.attributes))
    has = set(names_in(new.attributes))
    words = {name: "changed" if name in had and name in has else "set" if name in has else "removed" for name in names}
    return ", ".join(f"attribute {shown(name)} {word}" for name, word in words.items())


def _special(entry: Entry, bits: int) -> str | None:
    return f"mode {stat.S_IMODE(entry.mode):04o}" if entry.kind != "link" and entry.mode & bits else None


def _kind_name(entry: Entry) -> str:
    """The name of an entry's kind; for a device, with its number."""
    if entry.kind != "other":
        return entry.kind
    if stat.S_ISFIFO(entry.mode):
        return "fifo"
    if stat.S_ISSOCK(entry.mode):
        return "socket"
    number = int(entry.content or 0)
    which = f"{os.major(number)}:{os.minor(number)}"
    if stat.S_ISCHR(entry.mode):
        return f"character device {which}"
    return f"block device {which}" if stat.S_ISBLK(entry.mode) else "special file"


def _joined(notes: Iterable[str | None]) -> str | None:
    return "; ".join(note for note in notes if note) or None
