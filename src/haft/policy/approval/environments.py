"""Compares the programs of an activated environment, such as a Python virtual environment inside the workspace, with
the programs that a person approved.

Calls can write these programs. So a rule that allows `pytest` means only the file that a person approved: if another
file has this name now, or the file's content changed, the call needs approval. Libraries that such a program imports
are not compared. Because calls can write these libraries, a call of such a program gets the grants of a rule only if a
person approves the call.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from haft.contracts import ToolSpec
from haft.files import activated_in, deciding_files, programs_of, state_of
from haft.policy.approval.pins import Pin, difference, file_state
from haft.storage import encode
from haft.values import dataclass

ENVIRONMENT: Final = "environment:"
"""The name under which the approved environment is stored among the definitions of tools. No tool can have this
name."""
_MOST_NAMED: Final = 8
_PYTHONS: Final = ("python", "pip", "activate", "Activate", "pydoc")


def may_use_environment(spec: ToolSpec) -> bool:
    """Whether calls of a tool may use the activated environment: only built-in tools that run command lines, and tools
    from the workspace itself, may. In any other tool, programs of the environment, which are code of the
    workspace, would get the access of that tool."""
    return spec.provenance == "workspace" or (spec.provenance == "builtin" and bool(spec.commands))


@dataclass(frozen=True, slots=True)
class ActivatedEnvironment:
    """The virtual environment inside the workspace that a person has activated, as it is now."""

    place: str
    name: str
    """The path of the environment, relative to the workspace."""
    programs: Mapping[str, str]
    state: str
    """A fingerprint of the environment when it was read."""
    pin: Pin


@dataclass(frozen=True, slots=True)
class EnvironmentCheck:
    """The effect of the activated environment on the decision about a call."""

    state: str | None = None
    """The `state` of the environment whose programs are on the call's PATH; None if no environment is on it."""
    reason: str | None = None
    """Why the call needs approval because of the environment; None if it does not."""
    difference: str | None = None
    to_approve: Pin | None = None
    """The definition of the environment that a person approves together with the call; None if nothing new is
    approved."""


class Environments:
    """The activated environment of one workspace, according to the host's variables."""

    def __init__(self, workspace: str, host: Mapping[str, str], safe_path: Callable[[str, str], str]) -> None:
        """`safe_path` gets the host's PATH and the workspace, and returns the PATH that calls get without the
        environment."""
        self._workspace = workspace
        self._host = host
        self._safe_path = safe_path

    def current(self) -> ActivatedEnvironment | None:
        """The activated environment; None if no environment is activated, or if it cannot be read."""
        place = activated_in(self._workspace, self._host)
        if place is None:
            return None
        try:
            state, programs = state_of(place), programs_of(place)
            read: dict[str, dict[str, Any]] = {}
            files = {path: self._file(path, read) for path in deciding_files(place) if not os.path.isdir(path)}
        except OSError:
            return None
        return ActivatedEnvironment(place, os.path.relpath(place, self._workspace), programs, state, _pin(place, files))

    def _file(self, path: str, read: dict[str, dict[str, Any]]) -> dict[str, Any]:
        """The digest and text of a file. For a link: the digest and text of the link's target, and the path of this
        target. `read` caches the states of files by their real path."""
        real = os.path.realpath(path)
        state = read[real] = read.get(real) or file_state(real)
        if real == path:
            return state
        there = f"leads to {real}: {state['digest']}"
        inside = real.startswith(self._workspace.rstrip("/") + "/")
        return {"digest": there, "text": state["text"] if inside else there}

    def check(
        self,
        approved_pin: Callable[[], Pin | None],
        names: Iterable[str],
        ruled: Iterable[str],
        *,
        is_asked: bool,
        carries: bool = False,
    ) -> EnvironmentCheck:
        """How the environment affects a call that starts the programs `names`. The programs in `ruled` are allowed by a
        rule.

        `is_asked` says whether the call needs approval anyway. `carries` says whether the call has grants.
        """
        current = self.current()
        if current is None and not ruled:
            return EnvironmentCheck()
        approved = approved_pin()
        if current is None:
            return self._without(approved, set(ruled))
        is_approved = approved is not None and approved.digest == current.pin.digest
        if is_approved and (is_asked or not carries):
            return EnvironmentCheck(current.state)
        found = sorted(name for name in (names if is_asked else ruled) if name in current.programs)
        if not found and not is_asked:
            return EnvironmentCheck()
        changed = None if approved is None or is_approved else difference(approved, current.pin)
        if found:
            begins = f"`{found[0]}` is a program of the activated environment {current.name}"
        else:
            begins = f"the programs of the activated environment {current.name} come first on its PATH"
        if is_approved:
            since = "whose libraries calls can write, and a rule would grant it more than calls have"
        elif approved is None:
            since = "and nobody has approved them yet"
        else:
            since = "which has changed since you approved it"
        return EnvironmentCheck(current.state, f"{begins}, {since}{self._shadowing(current)}", changed, current.pin)

    def _shadowing(self, current: ActivatedEnvironment) -> str:
        """A text that lists the programs of the environment, except Python, that hide programs of the machine with the
        same name."""
        import shutil

        path = self._path()
        found = [name for name in current.programs if not name.startswith(_PYTHONS) and shutil.which(name, path=path)]
        more = f" and {len(found) - _MOST_NAMED} more" if len(found) > _MOST_NAMED else ""
        named = ", ".join(f"`{name}`" for name in found[:_MOST_NAMED])
        return f"; they hide other programs of this machine with the same names: {named}{more}" if found else ""

    def _without(self, approved: Pin | None, ruled: set[str]) -> EnvironmentCheck:
        """The result of `check` if no environment is activated any more. Then the name of a program that a person
        approved in the environment may mean another program, outside of the environment."""
        if approved is None:
            return EnvironmentCheck()
        programs = os.path.join(approved.definition["place"], "bin")
        known = {
            os.path.basename(path): path for path in approved.definition["files"] if os.path.dirname(path) == programs
        }
        import shutil

        outside = dict(approved.definition.get("outside", {}))
        for name in sorted(ruled & set(known)):
            now = shutil.which(name, path=self._path())
            if now is not None and outside.get(name) != now:
                shown = os.path.relpath(known[name], self._workspace)
                reason = f"`{name}` was approved as {shown}, but that environment is not activated, so it is {now} now"
                definition = {**approved.definition, "outside": {**outside, name: now}}
                return EnvironmentCheck(None, reason, None, Pin(approved.digest, definition))
        return EnvironmentCheck()

    def _path(self) -> str:
        return self._safe_path(self._host.get("PATH", ""), self._workspace)


def _pin(place: str, files: Mapping[str, Mapping[str, Any]]) -> Pin:
    bare = {path: file["digest"] for path, file in files.items()}
    digest = hashlib.sha256(b"haft environment\0" + encode({"place": place, "files": bare})).hexdigest()
    return Pin(digest, {"place": place, "files": {path: dict(file) for path, file in files.items()}})
