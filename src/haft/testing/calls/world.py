"""The world of one scenario: a workspace with the given files, a state home, a home directory and an environment.

All of it lies in one temporary directory and belongs to this scenario alone, so that nothing that a scenario leaves can
reach another. Only the environments of templates are shared: haft makes them once for each list of requirements, and
calls cannot write to them.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Mapping
from types import TracebackType
from typing import Final, Self

from haft.contracts import BadUsage
from haft.storage import default_home
from haft.testing.calls.repository import FIXED, git_of, make_repository
from haft.testing.scenarios.scenario import GivenFile, Scenario

_SHARED: Final = "environments"
PASSED: Final = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "USER", "LOGNAME", "SSL_CERT_FILE", "SSL_CERT_DIR")
"""The variables of the host that every scenario has."""


class World:
    """The directories of one scenario, as long as it runs."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self.root = os.path.realpath(tempfile.mkdtemp(prefix="haft-scenario-"))
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
        """Let the state home have the environments of templates that all scenarios share."""
        shared = os.path.join(default_home(os.environ), "test-environments")
        os.makedirs(shared, mode=0o700, exist_ok=True)
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


def remove_tree(path: str) -> None:
    """Remove a directory, also if a tool made parts of it unreadable."""
    shutil.rmtree(path, onerror=_make_writable)


def _make_writable(remove: object, path: str, _error: object) -> None:
    """Try again to remove a path after its directory became writable."""
    for each in (os.path.dirname(path), path):
        try:
            if stat.S_ISDIR(os.lstat(each).st_mode):
                os.chmod(each, 0o700)
        except OSError:
            pass
    try:
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path, ignore_errors=True)
        else:
            os.unlink(path)
    except OSError:
        pass
