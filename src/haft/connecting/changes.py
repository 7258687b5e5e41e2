"""The changes to the files of an agent: what each file would contain, writing it, and taking it back.

A file is replaced as a whole or not at all. A link is followed: the file that it leads to is replaced. A file that
nobody may write stays as it is, also for root, because somebody made it so.
"""

from __future__ import annotations

import contextlib
import difflib
import os
import stat
import tomllib
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from haft.config import with_key, with_table, without_key, without_table
from haft.connecting.agents.agent import Agent
from haft.connecting.entries import Entry, is_hook_of, is_server_of_haft
from haft.connecting.json_text import BrokenJson, parse, value_at, with_item, with_value, without_items, without_value
from haft.contracts import BadConfig, BadUsage, Conflict, HaftError, StorageFailed
from haft.files import Root
from haft.values import dataclass

_OUR_KEYS: Final = frozenset(
    {
        "args", "bearer_token_env_var", "command", "env", "environment", "headers", "http_headers", "httpUrl", "oauth",
        "serverUrl", "type", "url",
    }
)  # fmt: skip
"""The keys of an MCP server that haft writes. Other keys are the person's, such as a time limit."""


@dataclass(frozen=True, slots=True)
class FileState:
    """A file as it was when it was read."""

    path: str
    content: bytes | None
    """None if there is no file."""
    identity: Any = None


@dataclass(frozen=True, slots=True)
class FileChange:
    """What becomes of one file."""

    before: FileState
    after: bytes | None
    """None if the file is removed."""

    @property
    def path(self) -> str:
        return self.before.path

    @property
    def is_change(self) -> bool:
        return self.before.content != self.after

    def difference(self, masked: Sequence[str] = ()) -> list[str]:
        """The lines that change, as a patch. `masked` texts are not shown."""

        def lines(content: bytes | None) -> list[str]:
            text = "" if content is None else content.decode("utf-8", "backslashreplace")
            for secret in masked:
                text = text.replace(secret, "…")
            return text.splitlines()

        return list(difflib.unified_diff(lines(self.before.content), lines(self.after), lineterm="", n=2))[2:]


def read_file(path: str) -> FileState:
    """The state of a file. Raises `BadConfig` if it cannot be read."""
    real = os.path.realpath(path)
    if not os.path.lexists(real):
        return FileState(path, None)
    try:
        root = Root(os.path.dirname(real))
        identity = root.identity(os.path.basename(real))
        with root.open(os.path.basename(real)) as file:
            return FileState(path, file.read(), identity)
    except HaftError as error:
        raise BadConfig(f"{path} cannot be read: {error.message}") from error
    except OSError as error:
        raise BadConfig(f"{path} cannot be read: {error.strerror}") from error


def with_entries(path: str, content: bytes | None, entries: Sequence[Entry], agent: Agent) -> bytes:
    """The content of a file with haft's entries in it, in place of haft's older ones."""

    def change(text: str) -> str:
        for entry in entries:
            text = entry.value if entry.kind == "file" else _put(text, entry, agent)
        return text

    return _changed(path, content, change)


def without_entries(
    path: str,
    content: bytes,
    entries: Sequence[Entry],
    agent: Agent,
    old: dict[tuple[str, ...], Any],
    first: bytes | None,
) -> bytes | None:
    """The content of a file without haft's entries; None if nothing is left of a file that haft made. `old` are the
    values that haft replaced. `first` is the content before haft's first entry, None if there was no file: objects and
    lists that were not there before haft and are empty now go with the entries."""

    def change(text: str) -> str:
        for entry in entries:
            text = _take(text, entry, agent, old, path)
        text = (_without_empty_tables if path.endswith(".toml") else _without_empty)(text, entries, first)
        for keys, value in sorted(old.items(), key=lambda each: -len(each[0])):
            if isinstance(value, str) and value_at(text, keys) == {"*": value}:
                text = with_value(text, keys, value)
        return text

    if any(entry.kind == "file" for entry in entries):
        return None
    left = _changed(path, content, change)
    is_empty = left.decode("utf-8-sig").strip() in ("", "{}")  # With a comment, it is not empty.
    return None if first is None and is_empty else left


def stale_values(path: str, content: bytes | None, entries: Sequence[Entry]) -> dict[tuple[str, ...], Any]:
    """The values at the places of haft's entries that are not haft's: haft replaces them, and puts them back later."""
    if content is None or any(entry.kind == "file" for entry in entries):
        return {}
    found = {}
    for entry in entries:
        if entry.kind == "value" and entry.part in ("replace", "hooks", "rules"):
            value = lookup(path, content, entry.keys)
            for length in range(1, len(entry.keys)):
                above = lookup(path, content, entry.keys[:length])
                if isinstance(above, str):
                    found[entry.keys[:length]] = above  # One word for all tools or commands, see `_put`.
            if value is not None and value != entry.value:
                found[entry.keys] = value
    return found


def lookup(path: str, content: bytes, keys: Sequence[str]) -> Any:
    """The value at a path of keys in a file; None if there is none."""
    value = _loaded(_text(path, content), path)
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def write(change: FileChange, *, is_private: bool) -> list[str]:
    """Write or remove one file. Returns the directories that were made. Raises `BadUsage` if the file is read-only, and
    `Conflict` if it changed since it was read."""
    real = os.path.realpath(change.path)
    _check_writable(change.path, real)
    try:
        if change.after is None:
            if read_file(change.path).identity != change.before.identity:
                raise Conflict(f"{change.path} changed meanwhile; it was left as it is", hint="try again")
            os.unlink(real)
            return []
        made = _make_directories(os.path.dirname(real), 0o700 if is_private else 0o777)
        root = Root(os.path.dirname(real))
        if change.before.content is None and os.path.lexists(real):
            raise Conflict(f"{change.path} was created meanwhile", hint="try again")
        before = os.umask(0o077) if is_private and change.before.content is None else None
        try:
            root.replace(os.path.basename(real), change.after, expect=change.before.identity)
        finally:
            if before is not None:
                os.umask(before)
    except OSError as error:
        raise StorageFailed(f"{change.path} could not be written", error) from error
    except Conflict:
        raise
    except HaftError as error:
        raise BadUsage(
            f"{change.path} was left as it is: {error.message}", hint=error.hint or f"make it writable. {_BY_HAND}"
        ) from error
    return made


def write_all(changes: Iterable[FileChange], *, is_private: bool) -> list[str]:
    """Write several files. If one fails, those before it get their old content back."""
    done: list[FileChange] = []
    made: list[str] = []
    changes = [change for change in changes if change.is_change]
    for change in changes:
        _check_writable(change.path, os.path.realpath(change.path))
    try:
        for change in changes:
            made += write(change, is_private=is_private)
            done.append(change)
    except BaseException:
        for change in reversed(done):
            with contextlib.suppress(HaftError):
                write(FileChange(read_file(change.path), change.before.content), is_private=is_private)
        raise
    return made


def _put(text: str, entry: Entry, agent: Agent) -> str:
    if entry.file.endswith(".toml"):
        return _put_toml(text, entry)
    if entry.kind == "item":
        found = value_at(text, entry.keys)
        if isinstance(found, list):
            if entry.value in found:
                return text
            text = without_items(text, entry.keys, [each for each in found if is_hook_of(each, agent)])
        return with_item(text, entry.keys, entry.value)
    _check_ours(value_at(text, entry.keys), entry)
    _check_own_list(text, entry, agent)
    if agent.id == "opencode" and entry.part in ("replace", "rules"):
        if entry.part == "rules" and "deny" in (value_at(text, entry.keys[:1]), value_at(text, entry.keys[:2])):
            return text  # The person has switched the shell off.
        for above in (entry.keys[:length] for length in range(1, len(entry.keys))):
            if isinstance(value_at(text, above), str):
                # One word for all tools or commands: the same for each of them, except those that haft names.
                text = with_value(text, above, {"*": value_at(text, above)})
    if entry.keys == ("version",) and value_at(text, entry.keys) is not None:
        return text
    return with_value(text, entry.keys, _merged(value_at(text, entry.keys), entry))


def _put_toml(text: str, entry: Entry) -> str:
    found: Any = tomllib.loads(text)
    for key in entry.keys:
        found = found.get(key, {}) if isinstance(found, dict) else {}
    if not isinstance(entry.value, dict):
        return (
            text
            if found == entry.value and found != {}
            else with_key(text, entry.keys[:-1], entry.keys[-1], entry.value)
        )
    _check_ours(found or None, entry)
    value = _merged(found, entry)
    if found == value:
        return text
    if found:
        text = without_table(text, entry.keys)
    return with_table(text, entry.keys, value)


def _merged(found: Any, entry: Entry) -> Any:
    """The value of an entry, with what the person or the agent has added to haft's older one."""
    if not isinstance(found, dict) or entry.part not in ("server", "trust"):
        return entry.value
    own = {name: value for name, value in found.items() if name not in _OUR_KEYS and name not in entry.value}
    merged = {**entry.value, **own}
    for name in ("env", "environment"):
        added = {key: value for key, value in dict(found.get(name) or {}).items() if key != "HAFT_HOME"}
        if added and "command" in entry.value:
            merged[name] = {**entry.value.get(name, {}), **added}
    return merged


def _check_ours(found: Any, entry: Entry) -> None:
    if entry.part == "server" and found is not None and not is_server_of_haft(found):
        raise BadUsage(
            f"{entry.file} has an MCP server `{entry.keys[-1]}` that is not haft",
            hint="give that server another name, then try again",
        )


def _check_own_list(text: str, entry: Entry, agent: Agent) -> None:
    """Raise `BadUsage` if the person has a list of allowed tools: haft's list could allow more."""
    found = value_at(text, entry.keys)
    if entry.part == "replace" and isinstance(entry.value, list) and isinstance(found, list):
        off = [] if agent.replacing is None else [each for each in agent.replacing.tools if each in found]
        if "mcp_*" not in found:
            taken = f" and take out {', '.join(off)}" if off else ""
            raise BadUsage(
                f"{entry.file} has a list of your own, `{'.'.join(entry.keys)}`, which haft does not change",
                hint=f"add `mcp_haft_*` to the list{taken}; then connect without `--replace`",
            )


def _take(text: str, entry: Entry, agent: Agent, old: dict[tuple[str, ...], Any], path: str) -> str:
    found = _loaded(text, path)
    for key in entry.keys:
        found = found.get(key) if isinstance(found, dict) else None
    if found is None:
        return text
    if entry.kind == "item":
        ours = [each for each in found if each == entry.value or (entry.part == "hooks" and is_hook_of(each, agent))]
        return without_items(text, entry.keys, ours)
    if entry.part == "server" and not is_server_of_haft(found):
        return text
    if entry.part in ("replace", "rules") and found != entry.value:
        return text  # Somebody has changed it since.
    if entry.file.endswith(".toml"):
        if isinstance(found, dict):
            return without_table(text, entry.keys)
        if entry.keys in old:
            return with_key(text, entry.keys[:-1], entry.keys[-1], old[entry.keys])
        return without_key(text, entry.keys[:-1], entry.keys[-1])
    if entry.keys in old:
        return with_value(text, entry.keys, old[entry.keys])
    return without_value(text, entry.keys)


def _without_empty_tables(text: str, entries: Sequence[Entry], first: bytes | None) -> str:
    for keys in dict.fromkeys(entry.keys[:-1] for entry in entries):
        was = None if first is None else lookup(".toml", first, keys)
        if was is None and lookup(".toml", text.encode(), keys) == {}:
            with contextlib.suppress(BadUsage):  # It is not written with a header of its own.
                text = without_table(text, keys)
    return text


def _without_empty(text: str, entries: Sequence[Entry], first: bytes | None) -> str:
    before = "{}" if first is None else first.decode("utf-8-sig", "replace")
    for entry in entries:
        for length in range(len(entry.keys), 0, -1):
            keys = entry.keys[:length]
            with contextlib.suppress(BadConfig):
                if value_at(before, keys) is not None:
                    break
            if value_at(text, keys) in ({}, []):
                text = without_value(text, keys)
    return text


def _changed(path: str, content: bytes | None, change: Callable[[str], str]) -> bytes:
    text = "" if content is None else _text(path, content)
    try:
        return change(text).encode()
    except BrokenJson as error:
        raise BadConfig(f"{path} is not valid JSON, and was left as it is: {error.message}", hint=_MEND) from error
    except BadConfig as error:
        raise BadConfig(f"{path} was left as it is: {error.message}", hint=error.hint or _MEND) from error
    except BadUsage as error:
        if error.message.startswith(path):
            raise
        raise BadConfig(f"{path} was left as it is: {error.message}", hint=error.hint) from error
    except ValueError as error:
        raise BadConfig(f"{path} is not valid TOML, and was left as it is: {error}", hint=_MEND) from error


_MEND = "mend the file, then try again"


def _text(path: str, content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise BadConfig(f"{path} is not UTF-8, and was left as it is", hint=_MEND) from error


def _loaded(text: str, path: str) -> Any:
    if path.endswith(".toml"):
        try:
            return tomllib.loads(text)
        except ValueError as error:
            raise BadConfig(f"{path} is not valid TOML: {error}", hint=_MEND) from error
    try:
        return parse(text).value
    except BrokenJson as error:
        raise BadConfig(f"{path} is not valid JSON: {error.message}", hint=_MEND) from error


_BY_HAND: Final = (
    "If another program writes the file, such as a dotfile manager, add there what `haft connect AGENT --print` shows"
)


def _check_writable(path: str, real: str) -> None:
    folder = os.path.dirname(real)
    with contextlib.suppress(OSError):
        if not os.stat(folder).st_mode & 0o222 or not os.access(folder, os.W_OK | os.X_OK):
            raise BadUsage(
                f"{path} cannot be written, because {folder} is read-only: nothing was changed",
                hint=f"make that folder writable. {_BY_HAND}",
            )
    try:
        status = os.lstat(real)
    except OSError:
        return
    if not stat.S_ISREG(status.st_mode):
        raise BadUsage(f"{path} is not a regular file", hint="move it away, then try again")
    if not status.st_mode & 0o222 or not os.access(real, os.W_OK):
        where = "" if real == path else f" (it leads to {real})"
        raise BadUsage(
            f"{path} is read-only{where}: nothing was changed",
            hint=f"make the file writable. {_BY_HAND}",
        )


def _make_directories(path: str, mode: int) -> list[str]:
    made = []
    while not os.path.isdir(path):
        made.append(path)
        path = os.path.dirname(path)
    for each in reversed(made):
        os.mkdir(each, mode)
    return made
