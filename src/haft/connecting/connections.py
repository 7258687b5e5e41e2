"""Connects agents and takes connections back.

HAFT_HOME/connections/AGENT.json           what haft wrote into the person's files
HAFT_HOME/connections/AGENT-<digest>.json  what haft wrote into the files of one project             0600
HAFT_HOME/connections/files                the paths of all these files: see config/connected_files.py

A record has the entries, the content that each file had before, and the digest of the content that haft wrote. If a
file still has that digest, taking the connection back writes the old content. Otherwise somebody has changed the file,
and only haft's entries go.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import os
import secrets
from collections.abc import Mapping, Sequence
from typing import Any, Final

from haft.config import note_connected
from haft.connecting.agents.agent import Agent, Scope
from haft.connecting.changes import (
    FileChange,
    FileState,
    lookup,
    read_file,
    stale_values,
    with_entries,
    without_entries,
    write_all,
)
from haft.connecting.entries import Choice, Entry, Launch, Part, entries_for, is_hook_of, is_server_of_haft, trusted
from haft.connecting.launcher import LAUNCHER
from haft.contracts import BadConfig, BadUsage, StorageFailed
from haft.values import dataclass, field, replace
from haft.version import __version__

DIRECTORY: Final = "connections"


@dataclass(slots=True)
class FileRecord:
    """What haft knows about one file that it wrote."""

    before: bytes | None
    """The content without haft's entries; None if haft made the file."""
    after: str | None
    """The digest of the content that haft wrote last."""
    made: list[str] = field(default_factory=list)
    """The directories that haft made for it."""


@dataclass(slots=True)
class Record:
    """What haft wrote for one agent, for the person or for one project."""

    agent: str
    scope: Scope
    workspace: str | None
    entries: list[Entry] = field(default_factory=list)
    files: dict[str, FileRecord] = field(default_factory=dict)
    old: dict[tuple[str, tuple[str, ...]], Any] = field(default_factory=dict)
    """The values that haft replaced, by file and keys."""
    token: str | None = None
    """The name of the token that was made for this connection."""
    version: str = __version__

    def parts(self) -> set[Part]:
        return {entry.part for entry in self.entries}

    def to_json(self) -> dict[str, Any]:
        return {
            "agent": self.agent,
            "scope": self.scope,
            "workspace": self.workspace,
            "version": self.version,
            "token": self.token,
            "entries": [entry.to_json() for entry in self.entries],
            "files": {
                path: {
                    "before": None if one.before is None else base64.b64encode(one.before).decode(),
                    "after": one.after,
                    "made": one.made,
                }
                for path, one in self.files.items()
            },
            "old": [[file, list(keys), value] for (file, keys), value in self.old.items()],
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Record:
        files = {
            path: FileRecord(
                None if one["before"] is None else base64.b64decode(one["before"]), one["after"], one["made"]
            )
            for path, one in value["files"].items()
        }
        old = {(file, tuple(keys)): was for file, keys, was in value["old"]}
        entries = [Entry.from_json(each) for each in value["entries"]]
        return cls(
            value["agent"], value["scope"], value["workspace"], entries, files, old, value["token"], value["version"]
        )


@dataclass(frozen=True, slots=True)
class Plan:
    """What would change. `Connections.carry_out` does it."""

    agent: Agent
    choice: Choice
    changes: list[FileChange]
    record: Record | None
    """What haft remembers afterwards; None if the connection is gone."""
    was_recorded: bool = True

    @property
    def is_change(self) -> bool:
        return any(change.is_change for change in self.changes)


class Connections:
    """The connections that one state home remembers."""

    def __init__(self, home: str | os.PathLike[str], env: Mapping[str, str]) -> None:
        self._home = os.fspath(home)
        self._directory = os.path.join(self._home, DIRECTORY)
        self._env = env

    def plan(self, agent: Agent, choice: Choice, launch: Launch, token: str | None = None) -> Plan:
        """What connecting the agent changes. Parts that are connected already stay. Raises `BadConfig` if a file of the
        agent is broken, and `BadUsage` if the agent cannot do what is asked."""
        record = self.record(agent, choice) or Record(agent.id, choice.scope, choice.workspace)
        parts = record.parts()
        choice = replace(choice, hooks=choice.hooks or "hooks" in parts, replace=choice.replace or "replace" in parts)
        wanted = entries_for(agent, choice, launch, self._env)
        states: dict[str, FileState] = {}
        contents: dict[str, bytes | None] = {}
        bases: dict[str, bytes | None] = {}
        old = dict(record.old)
        for file in dict.fromkeys(entry.file for entry in wanted):
            states[file] = read_file(file)
            own = [entry for entry in wanted if entry.file == file]
            bases[file] = self._base(agent, record, file, states[file].content, own)
            for keys, value in stale_values(file, bases[file], own).items():
                old[file, keys] = value
            contents[file] = with_entries(
                file, self._without_old_rules(record, wanted, states[file], agent), own, agent
            )
        for entry in self._trust(agent, choice, wanted, contents):
            wanted.append(entry)
        for file in dict.fromkeys(entry.file for entry in wanted if entry.part == "trust"):
            gone = [
                each
                for each in record.entries
                if each.part == "trust" and each.file == file and each not in wanted and contents[file] is not None
            ]
            current = contents[file]
            if gone and current is not None:
                current = without_entries(file, current, gone, agent, {}, current)
            own = [entry for entry in wanted if entry.file == file and entry.part == "trust"]
            contents[file] = with_entries(file, current, own, agent)
        changes = [FileChange(states[file], contents[file]) for file in states]
        files = {file: FileRecord(bases[file], _digest(contents[file]), self._made(record, file)) for file in contents}
        kept = [entry for entry in wanted if not self._was_there(entry, bases[entry.file])]
        others = {path: one for path, one in record.files.items() if path not in files}
        after = Record(agent.id, choice.scope, choice.workspace, kept, {**others, **files}, old, token or record.token)
        return Plan(agent, choice, changes, after)

    def plan_removal(self, agent: Agent, choice: Choice, launch: Launch) -> Plan:
        """What taking the connection back changes. With `choice.hooks` or `choice.replace`, only that part is taken
        back."""
        record = self.record(agent, choice)
        if record is None:
            return self._plan_unrecorded(agent, choice, launch)
        only: set[Part] = set()
        if choice.hooks:
            only |= {"hooks", "rules", "trust"}
        if choice.replace:
            only |= {"replace"}
        gone = [entry for entry in record.entries if not only or entry.part in only]
        left = [entry for entry in record.entries if entry not in gone]
        changes = []
        files = dict(record.files)
        for file, known in record.files.items():
            state = read_file(file)
            own = [entry for entry in gone if entry.file == file]
            if state.content is None or not own:
                continue
            if not left and _digest(state.content) == known.after:
                after = known.before
            else:
                old = {keys: value for (path, keys), value in record.old.items() if path == file}
                after = without_entries(file, state.content, own, agent, old, known.before)
            changes.append(FileChange(state, after))
            files[file] = replace(known, after=_digest(after))
        rest = replace(record, entries=left, files=files) if left else None
        return Plan(agent, choice, changes, rest)

    def carry_out(self, plan: Plan) -> None:
        """Write the files, and remember what was written."""
        made = write_all(plan.changes, is_private=plan.choice.scope == "user")
        before = self.record(plan.agent, plan.choice)
        path = self._path(plan.agent, plan.choice)
        if plan.record is None:
            directories = {each for one in (before.files.values() if before else ()) for each in one.made}
            for directory in sorted(directories, key=len, reverse=True):
                with contextlib.suppress(OSError):  # Something else is in it by now.
                    os.rmdir(directory)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
            self._note_files()
            return
        for file, one in plan.record.files.items():
            one.made += [each for each in made if os.path.realpath(file).startswith(f"{each}/")]
        try:
            _write_private(path, json.dumps(plan.record.to_json()).encode())
        except OSError as error:
            raise StorageFailed("haft could not remember this connection", error) from error
        self._note_files()

    def _note_files(self) -> None:
        """Keep the list of connected files, which are protected paths."""
        note_connected(self._home, [path for record in self.records() for path in record.files])

    def record(self, agent: Agent, choice: Choice) -> Record | None:
        """What haft remembers of a connection; None if there is none."""
        try:
            with open(self._path(agent, choice), "rb") as file:
                return Record.from_json(json.loads(file.read()))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise BadConfig(
                f"{self._path(agent, choice)} is damaged: {error}",
                hint="remove that file, and haft's entries from the agent's configuration by hand",
            ) from error

    def records(self) -> list[Record]:
        """Everything that haft remembers. Damaged records are left out."""
        found = []
        with contextlib.suppress(FileNotFoundError):
            for name in sorted(each for each in os.listdir(self._directory) if each.endswith(".json")):
                path = os.path.join(self._directory, name)
                with contextlib.suppress(OSError, ValueError, KeyError, TypeError), open(path, "rb") as file:
                    found.append(Record.from_json(json.loads(file.read())))
        return found

    def _path(self, agent: Agent, choice: Choice) -> str:
        if choice.scope == "user":
            return os.path.join(self._directory, f"{agent.id}.json")
        assert choice.workspace is not None
        digest = hashlib.sha256(os.path.realpath(choice.workspace).encode("utf-8", "surrogateescape")).hexdigest()[:16]
        return os.path.join(self._directory, f"{agent.id}-{digest}.json")

    def _base(
        self, agent: Agent, record: Record, file: str, content: bytes | None, wanted: Sequence[Entry]
    ) -> bytes | None:
        """The content of a file without haft's entries."""
        known = record.files.get(file)
        if content is None:
            return None
        if known is not None and _digest(content) == known.after:
            return known.before
        entries = [entry for entry in record.entries if entry.file == file]
        if known is None:
            entries = [entry for entry in wanted if _is_ours(entry, file, content, agent)]
        if not entries:
            return content
        old = {keys: value for (path, keys), value in record.old.items() if path == file}
        return without_entries(file, content, entries, agent, old, None if known is None else known.before)

    @staticmethod
    def _without_old_rules(record: Record, wanted: Sequence[Entry], state: FileState, agent: Agent) -> bytes | None:
        """The content of a file without rules that haft does not write today, such as for another state home."""
        gone = [each for each in record.entries if each.part == "rules" and each.file == state.path]
        gone = [each for each in gone if each not in wanted]
        if state.content is None or not gone:
            return state.content
        return without_entries(state.path, state.content, gone, agent, {}, state.content)

    @staticmethod
    def _made(record: Record, file: str) -> list[str]:
        known = record.files.get(file)
        return [] if known is None else list(known.made)

    @staticmethod
    def _was_there(entry: Entry, base: bytes | None) -> bool:
        """Whether an entry is the person's own: haft then leaves it there."""
        if base is None or entry.kind == "file":
            return False
        found = lookup(entry.file, base, entry.keys)
        if entry.kind == "item":
            return isinstance(found, list) and entry.value in found
        return found == entry.value or (entry.keys == ("version",) and found is not None)

    def _trust(
        self, agent: Agent, choice: Choice, wanted: Sequence[Entry], contents: dict[str, bytes | None]
    ) -> list[Entry]:
        hooks = next((entry.file for entry in wanted if entry.part == "hooks"), None)
        text = contents.get(hooks) if hooks is not None else None
        return [] if text is None else trusted(agent, choice, wanted, text.decode(), self._env)

    def _plan_unrecorded(self, agent: Agent, choice: Choice, launch: Launch) -> Plan:
        """Without a record, haft takes out what it recognizes: its MCP server and its hooks."""
        launch = replace(launch, url=None)
        wanted = []
        for hooks in (True, False):
            with contextlib.suppress(BadUsage):
                wanted = entries_for(agent, replace(choice, hooks=hooks, replace=False), launch, self._env)
                break
        changes = []
        for file in dict.fromkeys(entry.file for entry in wanted):
            state = read_file(file)
            if state.content is None:
                continue
            content = state.content
            own = [entry for entry in wanted if entry.file == file and _is_ours(entry, file, content, agent)]
            if own:
                changes.append(FileChange(state, without_entries(file, content, own, agent, {}, content)))
        return Plan(agent, choice, changes, None, was_recorded=False)


def _is_ours(entry: Entry, file: str, content: bytes, agent: Agent) -> bool:
    """Whether this entry, or one of another version of haft in its place, is in a file."""
    if entry.kind == "file":
        return b"haft connect" in content
    found = lookup(file, content, entry.keys)
    if entry.part == "server":
        return is_server_of_haft(found)
    if entry.part == "hooks":
        return is_hook_of(found, agent)
    return entry.part == "rules" and LAUNCHER in entry.keys[-1] and found == entry.value


def _digest(content: bytes | None) -> str | None:
    return None if content is None else hashlib.sha256(content).hexdigest()


def _write_private(path: str, content: bytes) -> None:
    """Write a file that only its owner can read, as a whole."""
    directory = os.path.dirname(path)
    os.makedirs(directory, mode=0o700, exist_ok=True)
    temporary = os.path.join(directory, f".{secrets.token_hex(8)}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
