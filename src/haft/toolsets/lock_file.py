"""`haft.lock`: the pinned commit of each git plugin of a configuration. The file lies beside the configuration.

The file is read and written as a whole. Any error in it is raised: if haft ignored a wrong pin, the plugin could change
unnoticed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from haft.config import read_config
from haft.contracts import BadConfig, HaftError
from haft.files import Root, locked
from haft.toolsets.git_source import GitSource, is_commit

FORM: Final = 1
WAIT_SECONDS: Final = 10.0

Key = tuple[str, str | None]
Pins = Mapping[Key, str]
"""The commits by URL and ref."""


def key_of(source: GitSource) -> Key:
    """The key of a git plugin in the lock file: the URL and the ref of its repository."""
    return source.url, source.ref


def read_pins(path: str) -> dict[Key, str]:
    """The pinned commits in a lock file, by URL and ref; empty if there is no file."""
    if not os.path.lexists(path):
        return {}
    cure = "delete it; then `haft plugins update` writes a new one"
    try:
        told = json.loads(read_config(path))
        if not isinstance(told, dict) or told.get("version") != FORM:
            raise BadConfig(f"{path} has a format version that this haft does not know", hint=cure)
        return dict(map(_pin, told["plugins"]))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise BadConfig(f"{path} cannot be understood: {error!r}"[:300], hint=cure) from error


def _pin(told: Any) -> tuple[Key, str]:
    url, ref, commit = told["url"], told["ref"], told["commit"]
    if not isinstance(url, str) or not isinstance(ref, str | None):
        raise ValueError("a pin has a `url` and a `ref`")  # noqa: TRY004  all are told the same way
    if not isinstance(commit, str) or not is_commit(commit):
        raise ValueError(f"{commit!r} is not a commit")
    return (url, ref), commit


def pin(source: GitSource, commit: str, guard: str, *, replacing: bool) -> str:
    """Pin a git plugin to `commit`, and return the pinned commit. If it is pinned already and `replacing` is False, the
    old pin stays and is returned. `guard` is the file that every process locks while it changes the lock file."""
    with _guarded(guard):
        pins = read_pins(source.lock)
        key = key_of(source)
        if key in pins and (not replacing or pins[key] == commit):
            return pins[key]
        pins[key] = commit
        _write(source.lock, pins)
        return commit


def _write(path: str, pins: Pins) -> None:
    entries = [
        {"url": url, "ref": ref, "commit": commit}
        for (url, ref), commit in sorted(pins.items(), key=lambda item: (item[0][0], item[0][1] or ""))
    ]
    text = json.dumps({"version": FORM, "plugins": entries}, indent=2, ensure_ascii=False) + "\n"
    folder, name = os.path.split(path)
    try:
        os.makedirs(folder, exist_ok=True)
        Root(folder).replace(name, text.encode())
    except (OSError, HaftError) as error:
        why = error.message if isinstance(error, HaftError) else error.strerror
        raise BadConfig(f"{path} cannot be written, so nothing can be pinned: {why}") from error


@contextmanager
def _guarded(path: str) -> Iterator[None]:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with locked(descriptor, WAIT_SECONDS):
            yield
    except TimeoutError as error:
        raise BadConfig(f"{path} is locked by another process", hint="try again") from error
    finally:
        os.close(descriptor)
