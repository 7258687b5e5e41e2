"""What becomes of the changes that an agent made to its own files in a private copy. Logins, history and the like are
carried back to the originals. Changes to what runs later, such as settings, hooks and MCP servers, are held: a person
applies or drops them.
"""

from __future__ import annotations

import contextlib
import fnmatch
import json
import os
import shutil
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, Final

from haft import changes
from haft.changes import Owner, Transactions
from haft.contracts import HaftError
from haft.service.programs.private_home import CopiedPlace, PrivateHome, original_of
from haft.service.programs.program import CarriedBack

RECORDS: Final = ("last", "history", "example", "projectOnboarding", "hasCompletedProjectOnboarding")
"""How the keys begin, in a table for each project, that only record what happened."""
MOST_PROBLEMS: Final = 3
"""How many problems are told."""
MOST_NAMED: Final = 5
"""How many files that could not be held are named."""
REASON: Final = "they change what {} runs later"


class CarryBack:
    """Carries the changes of one run back."""

    def __init__(
        self,
        private: PrivateHome,
        owner: Owner,
        open_transactions: Callable[[str], AbstractContextManager[Transactions]],
    ) -> None:
        """`open_transactions` opens the change sets of a directory. `owner` names the change set of what is held."""
        self._private = private
        self._owner = owner
        self._open = open_transactions
        self._carried: list[str] = []
        self._held: list[str] = []
        self._problems: list[str] = []
        self._staging = os.path.join(private.directory, "held")

    def run(self) -> CarriedBack:
        """Carry back what may be carried back, and hold the rest."""
        held_by = None
        for place, below, path in list(self._private.changed()):
            try:
                self._settle(place, below, path)
            except OSError as error:  # The other files, such as a refreshed login, are carried back all the same.
                self._problems.append(str(error))
        try:
            held_by = self._hold() if self._held else None
        except (OSError, HaftError) as error:
            self._problems.append(str(error))
        problem = "; ".join(self._problems[:MOST_PROBLEMS]) or None
        return CarriedBack(tuple(self._carried), tuple(self._held), held_by, problem)

    def _settle(self, place: CopiedPlace, below: str, path: str) -> None:
        name, agent = self._private.usual_name(place, below), self._private.agent
        if matches(name, agent.dropped):
            return
        is_carried = matches(name, agent.carried) and not matches(name, agent.not_carried)
        if name in agent.deciding_keys and not os.path.islink(path):
            self._settle_keys(place, below, path, agent.deciding_keys[name])
        elif not os.path.lexists(path):
            if is_carried:
                if self._private.is_original_unchanged(place, below, path):
                    with contextlib.suppress(OSError):
                        os.unlink(original_of(place, below))
                    self._carried.append(name)
            elif (relative := self._below_home(place, below)) is not None:
                self._held.append(relative)
        elif is_carried and not os.path.islink(path):
            self._carry(place, below, path)
            self._carried.append(name)
        else:
            self._stage(place, below, path)

    def _carry(self, place: CopiedPlace, below: str, path: str) -> None:
        """Write one file back. If another process changed the original meanwhile: lines that were added to a list of
        lines are added there too, else the newer file counts."""
        original = original_of(place, below)
        with open(path, "rb") as file:
            content = file.read()
        if not self._private.is_original_unchanged(place, below, path) and os.path.exists(original):
            with open(original, "rb") as file:
                now = file.read()
            size = self._private.size_before(path)
            if path.endswith(".jsonl") and now[:size] == content[:size]:
                content = now + content[size:]
            elif os.stat(original).st_mtime_ns > os.stat(path).st_mtime_ns:
                return
        write_whole(original, content, os.stat(path).st_mode & 0o777)

    def _settle_keys(self, place: CopiedPlace, below: str, path: str, deciding: tuple[str, ...]) -> None:
        """Carry back the keys that only record something, and hold the file if a key changed that decides."""
        name, original = self._private.usual_name(place, below), original_of(place, below)
        before = parsed(self._private.content_before(place, below))
        with contextlib.suppress(OSError):
            with open(path, "rb") as file:
                after = parsed(file.read())
            try:
                with open(original, "rb") as file:
                    now = parsed(file.read())
            except FileNotFoundError:
                now = {}
            if before is None:
                before = {}
            if after is not None and now is not None:
                altered = [key for key in {*before, *after} if before.get(key) != after.get(key)]
                changed = [key for key in altered if _decisive(before.get(key)) != _decisive(after.get(key))]
                decided = [key for key in changed if key in deciding]
                carried = _with_keys(now, after, [key for key in altered if key not in decided])
                if carried != now:
                    write_whole(original, _text(carried), os.stat(path).st_mode & 0o777)
                    self._carried.append(name)
                if decided:
                    with open(path, "wb") as file:
                        file.write(_text(_with_keys(carried, after, decided)))
                    self._stage(place, below, path)
                return
        self._stage(place, below, path)

    def _stage(self, place: CopiedPlace, below: str, path: str) -> None:
        """Remember that a file is held."""
        relative = self._below_home(place, below)
        if relative is None:
            return
        target = os.path.join(self._staging, relative)
        os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            shutil.copy2(path, target, follow_symlinks=False)
        self._held.append(relative)

    def _below_home(self, place: CopiedPlace, below: str) -> str | None:
        """The path of the original below the home directory; None, with a message, if it is elsewhere, where nothing
        can be held."""
        original = original_of(place, below)
        relative = os.path.relpath(original, self._private.home)
        if relative.startswith("../"):
            self._problems.append(f"{original} is outside the home directory, so its change was not held")
            return None
        return relative

    def _hold(self) -> str | None:
        """Hold the files as one change set of the home directory. Returns its id; None if nothing differs."""
        os.makedirs(self._staging, mode=0o700, exist_ok=True)
        with self._open(self._private.home) as transactions:
            reason = REASON.format(self._private.agent.title)
            result = changes.hold_files(transactions, self._owner, self._staging, self._held, reason)
        found = result.changes
        self._held[:] = [each.path for each in found.files if each.kind != "directory"]
        if result.error is not None:
            self._problems.append(f"{', '.join(self._held[:MOST_NAMED])}: {result.error.message}")
        return self._owner.run if found.state == "held" else None


def matches(name: str, patterns: tuple[str, ...]) -> bool:
    """Whether a path matches one of the patterns. `/**` at the end means everything below; `*` does not match a
    slash."""
    words = name.split("/")
    for pattern in patterns:
        parts = pattern.removesuffix("/**").split("/")
        fits = len(words) > len(parts) if pattern.endswith("/**") else len(words) == len(parts)
        if fits and all(map(fnmatch.fnmatchcase, words, parts)):
            return True
    return False


def write_whole(path: str, content: bytes, mode: int) -> None:
    """Replace a file in one step. If the path is a link, the file that it leads to is replaced."""
    real = os.path.realpath(path)
    os.makedirs(os.path.dirname(real), mode=0o700, exist_ok=True)
    temporary = f"{real}.haft-{os.getpid()}"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        os.replace(temporary, real)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


def parsed(content: bytes | None) -> dict[str, Any] | None:
    """A JSON object; None if the content is none."""
    with contextlib.suppress(ValueError, RecursionError):
        found = json.loads(content) if content is not None else None
        return found if isinstance(found, dict) else None
    return None


def _text(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, indent=2, ensure_ascii=False).encode("utf-8", "surrogatepass")


def _with_keys(onto: Mapping[str, Any], source: Mapping[str, Any], keys: list[str]) -> dict[str, Any]:
    """The object `onto`, with these keys as they are in `source`."""
    found = {key: value for key, value in onto.items() if key not in keys or key in source}
    return {**found, **{key: source[key] for key in keys if key in source}}


def _decisive(value: Any) -> Any:
    """The part of a value that can decide what runs later: of a table for each project, without the records and without
    empty values."""
    if not isinstance(value, dict):
        return value
    found = {}
    for key, each in value.items():
        if isinstance(each, dict) and key.startswith("/"):
            inner = {name: one for name, one in each.items() if one and not name.startswith(RECORDS)}
            if inner:
                found[key] = inner
        else:
            found[key] = each
    return found or None
