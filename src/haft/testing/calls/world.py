"""The world of one scenario: a workspace with the given files, a state home, a home directory and an environment.

All of it lies in one temporary directory and belongs to this scenario alone, so that nothing that a scenario leaves can
reach another. Only the environments of templates are shared: haft makes them once for each list of requirements, and
calls cannot write to them.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Final, Self

from haft.contracts import BadUsage
from haft.storage import default_home
from haft.testing.calls.repository import FIXED, git_of, make_repository
from haft.testing.scenarios.scenario import GivenFile, Scenario

_SHARED: Final = "environments"
_PREFIX: Final = "haft-scenario-"
_SECONDS_UNTIL_LOCKED: Final = 60
"""A directory that is younger may not have its lock yet."""
PASSED: Final = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "USER", "LOGNAME", "SSL_CERT_FILE", "SSL_CERT_DIR")
"""The variables of the host that every scenario has."""


class World:
    """The directories of one scenario, as long as it runs."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        remove_abandoned(tempfile.gettempdir())
        self.root = os.path.realpath(tempfile.mkdtemp(prefix=_PREFIX))
        self._lock: int | None = _locked(self.root)
        self.workspace = os.path.join(self.root, "workspace")
        self.state = os.path.join(self.root, "state")
        self.home = os.path.join(self.root, "home")
        self.programs = os.path.join(self.root, "programs")

    def __enter__(self) -> Self:
        try:
            for path in (self.workspace, self.state, self.home, self.programs):
                os.mkdir(path, 0o700)
            os.chmod(self.workspace, 0o755)  # noqa: S103  a workspace as people have it
            self._write_files()
            self.share_environments()
        except BaseException:
            self.close()
            raise
        return self

    def _write_files(self) -> None:
        files = dict(self._scenario.files)
        if self._scenario.git:
            # git must not obey the files of a `.git` that the scenario gives, such as its hooks.
            write_files(self.workspace, {path: given for path, given in files.items() if git_of(path) is None})
            make_repository(self.workspace, self.environ().get("PATH", os.defpath))
            files = {path: given for path, given in files.items() if git_of(path) is not None}
            files.update(self._scenario.uncommitted)
        write_files(self.workspace, files)

    def share_environments(self) -> None:
        """Let the state home have the environments of templates that all scenarios share. Where the home of the person
        cannot be written, each scenario makes its own."""
        shared = os.path.join(default_home(os.environ), "test-environments")
        try:
            os.makedirs(shared, mode=0o700, exist_ok=True)
        except OSError:
            return
        os.symlink(shared, os.path.join(self.state, _SHARED))

    def environ(self) -> dict[str, str]:
        """The variables of the host that count for the scenario."""
        passed = {name: os.environ[name] for name in PASSED if name in os.environ}
        return {
            **passed,
            "HOME": self.home,
            "XDG_CONFIG_HOME": os.path.join(self.home, ".config"),
            "AMP_TOOLBOX": "",
            **self.own_variables,
        }

    @property
    def own_variables(self) -> dict[str, str]:
        """The variables that every process of the tool gets without a grant."""
        return {**(FIXED if self._scenario.git else {}), **self._scenario.env}

    def close(self) -> None:
        """Remove the directories, also those that a tool made unreadable."""
        remove_tree(self.root)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def write_files(root: str, files: Mapping[str, GivenFile]) -> None:
    """Write the files of a scenario into a directory."""
    for path, given in files.items():
        full = os.path.join(root, path)
        if os.path.commonpath([os.path.realpath(os.path.dirname(full)), os.path.realpath(root)]) != os.path.realpath(
            root
        ):
            raise BadUsage(f"`files.{path}` lies behind a link that leads out of the workspace")
        os.makedirs(os.path.dirname(full), exist_ok=True)
        if os.path.islink(full) or (given.kind == "link" and os.path.isfile(full)):
            os.unlink(full)  # A test in Python writes files more than once.
        if given.kind == "directory":
            os.makedirs(full, exist_ok=True)
        elif given.kind == "link":
            os.symlink(given.target or "", full)
        else:
            with open(full, "wb") as file:
                file.write(given.content)
    for path, given in reversed(tuple(files.items())):  # At the end, because a directory may become read-only.
        if given.mode is not None:
            os.chmod(os.path.join(root, path), given.mode)


def remove_tree(root: str) -> None:
    """Remove a directory as far as possible, also what a tool made unreadable or read-only."""
    shutil.rmtree(root, onerror=_remove_again)


def _remove_again(_remove: object, path: str, _error: object) -> None:
    """Try again to remove a path, if it or its directory can be made writable."""
    folder_opened, opened = _made_writable(os.path.dirname(path)), _made_writable(path)
    if not (folder_opened or opened):
        return
    if os.path.isdir(path) and not os.path.islink(path):
        remove_tree(path)
    else:
        with contextlib.suppress(OSError):
            os.unlink(path)


def _made_writable(path: str) -> bool:
    """Give a directory of ours the rights to remove what it has. Returns whether it lacked them."""
    try:
        mode = os.lstat(path).st_mode
        if not stat.S_ISDIR(mode) or mode & 0o700 == 0o700:
            return False
        os.chmod(path, 0o700)
    except OSError:
        return False
    return True


def remove_abandoned(folder: str) -> None:
    """Remove the directories of scenarios whose processes were killed. A process that lives holds a lock on its own."""
    try:
        names = [each for each in os.listdir(folder) if each.startswith(_PREFIX)]
    except OSError:
        return
    for name in names:
        path = os.path.join(folder, name)
        try:
            status = os.lstat(path)
            if status.st_uid != os.geteuid() or time.time() - status.st_ctime < _SECONDS_UNTIL_LOCKED:
                continue
            lock = _locked(path)
        except OSError:  # Its process lives, or removes it now.
            continue
        try:
            remove_tree(path)
        finally:
            os.close(lock)


def _locked(path: str) -> int:
    """A descriptor of a directory with a lock, which ends with the process. Raises `OSError` if another process has the
    lock."""
    lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException:
        os.close(lock)
        raise
    return lock
