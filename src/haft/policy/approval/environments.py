"""The programs of the environment that a person has activated inside the workspace, held to what was agreed to.

Calls can write them. So a rule that allows `pytest` means a program of that name that somebody has seen: another file
of the name, or one with other content, asks. Libraries that such a program imports are not held: it runs code of the
workspace anyway, and so it gets nothing that a rule grants.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from haft.contracts import ToolSpec
from haft.files import activated_in, deciding_files, programs_of, state_of
from haft.policy.approval.pins import Pin, difference, held_file
from haft.storage import encode
from haft.values import dataclass

ENVIRONMENT: Final = "environment:"
"""What it is kept under among definitions: no tool can have that name."""
_MOST_NAMED: Final = 8
_PYTHONS: Final = ("python", "pip", "activate", "Activate", "pydoc")


def finds_environment(spec: ToolSpec) -> bool:
    """Whether calls of a tool may find the activated environment: command lines, and what the workspace itself brings.
    Tools that lie elsewhere may have more than the workspace's code may see."""
    return spec.provenance == "workspace" or (spec.provenance == "builtin" and bool(spec.commands))


@dataclass(frozen=True, slots=True)
class Activated:
    """An environment as it is now."""

    place: str
    name: str
    """Its path in the workspace."""
    programs: Mapping[str, str]
    state: str
    """As of when it was looked at."""
    pin: Pin


@dataclass(frozen=True, slots=True)
class Held:
    """What becomes of a call."""

    state: str | None = None
    """Of the environment whose programs are on its PATH; None: they are not."""
    reason: str | None = None
    """Why a person is asked."""
    difference: str | None = None
    to_agree: Pin | None = None
    """What a yes agrees to."""


class Environments:
    """Of one workspace, and of the host's own environment."""

    def __init__(self, workspace: str, host: Mapping[str, str], safe_path: Callable[[str, str], str]) -> None:
        """`safe_path` says what of PATH calls get otherwise."""
        self._workspace = workspace
        self._host = host
        self._safe_path = safe_path

    def current(self) -> Activated | None:
        """The activated environment; None where there is none, or it cannot be looked at."""
        place = activated_in(self._workspace, self._host)
        if place is None:
            return None
        try:
            state, programs = state_of(place), programs_of(place)
            read: dict[str, dict[str, Any]] = {}
            files = {path: self._file(path, read) for path in deciding_files(place) if not os.path.isdir(path)}
        except OSError:
            return None
        return Activated(place, os.path.relpath(place, self._workspace), programs, state, _pin(place, files))

    def _file(self, path: str, read: dict[str, dict[str, Any]]) -> dict[str, Any]:
        """What is there; of a link also where it leads. Where several lead, it is `read` once."""
        real = os.path.realpath(path)
        held = read[real] = read.get(real) or held_file(real)
        if real == path:
            return held
        there = f"leads to {real}: {held['digest']}"
        inside = real.startswith(self._workspace.rstrip("/") + "/")
        return {"digest": there, "text": held["text"] if inside else there}

    def held(
        self,
        agreement: Callable[[], Pin | None],
        names: Iterable[str],
        ruled: Iterable[str],
        *,
        is_asked: bool,
        carries: bool = False,
    ) -> Held:
        """What becomes of a call that starts programs of these `names`, those that are `ruled` since a rule allows it.
        With `is_asked`, a person is asked about it anyway; with `carries`, it has more than calls have."""
        current = self.current()
        if current is None and not ruled:
            return Held()
        agreed = agreement()
        if current is None:
            return self._without(agreed, set(ruled))
        is_agreed = agreed is not None and agreed.digest == current.pin.digest
        if is_agreed and (is_asked or not carries):
            return Held(current.state)
        found = sorted(name for name in (names if is_asked else ruled) if name in current.programs)
        if not found and not is_asked:
            return Held()
        changed = None if agreed is None or is_agreed else difference(agreed, current.pin)
        if found:
            begins = f"`{found[0]}` is a program of the activated environment {current.name}"
        else:
            begins = f"the programs of the activated environment {current.name} come first on its PATH"
        if is_agreed:
            since = "whose libraries calls can write, and a rule would give it more than calls have"
        elif agreed is None:
            since = "and nobody has agreed to these yet"
        else:
            since = "which has changed since somebody agreed to it"
        return Held(current.state, f"{begins}, {since}{self._shadowing(current)}", changed, current.pin)

    def _shadowing(self, current: Activated) -> str:
        """Those that stand before others of their name, but for Python itself."""
        import shutil

        path = self._path()
        found = [name for name in current.programs if not name.startswith(_PYTHONS) and shutil.which(name, path=path)]
        more = f" and {len(found) - _MOST_NAMED} more" if len(found) > _MOST_NAMED else ""
        named = ", ".join(f"`{name}`" for name in found[:_MOST_NAMED])
        return f"; there are others of these names on this machine: {named}{more}" if found else ""

    def _without(self, agreed: Pin | None, ruled: set[str]) -> Held:
        """Where no environment is activated: a name that was agreed to as a program of one is another program now."""
        if agreed is None:
            return Held()
        programs = os.path.join(agreed.definition["place"], "bin")
        known = {
            os.path.basename(path): path for path in agreed.definition["files"] if os.path.dirname(path) == programs
        }
        import shutil

        outside = dict(agreed.definition.get("outside", {}))
        for name in sorted(ruled & set(known)):
            now = shutil.which(name, path=self._path())
            if now is not None and outside.get(name) != now:
                shown = os.path.relpath(known[name], self._workspace)
                reason = f"`{name}` was agreed to as {shown}, whose environment is not activated: it is {now} now"
                definition = {**agreed.definition, "outside": {**outside, name: now}}
                return Held(None, reason, None, Pin(agreed.digest, definition))
        return Held()

    def _path(self) -> str:
        return self._safe_path(self._host.get("PATH", ""), self._workspace)


def _pin(place: str, files: Mapping[str, Mapping[str, Any]]) -> Pin:
    bare = {path: file["digest"] for path, file in files.items()}
    digest = hashlib.sha256(b"haft environment\0" + encode({"place": place, "files": bare})).hexdigest()
    return Pin(digest, {"place": place, "files": {path: dict(file) for path, file in files.items()}})
