"""A haft.toml of the user or of a workspace, for the commands that change the file. These commands read the file once,
check the new text before they write it, and replace the file as a whole or not at all."""

from __future__ import annotations

import os
import stat
import tomllib
from dataclasses import dataclass
from typing import Any

from haft.config import WORKSPACE_FILES, ConfigFile, user_config, user_file, workspace_config
from haft.contracts import BadConfig, BadUsage, Conflict
from haft.files import Root, locked
from haft.policy import rule_lines
from haft.service.permissions import rules_in

LOCK_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class OwnFile:
    """A haft.toml, as it was when it was read."""

    path: str
    text: str
    """Empty if there is no file yet."""
    shown: str
    """The name of the file in `Rule.source`, which says where a rule is written."""
    identity: Any
    is_workspaces: bool = False

    @classmethod
    def read(cls) -> OwnFile:
        """Read the user's haft.toml."""
        path = user_file(os.environ)
        identity = _identity(path)
        home = os.path.expanduser("~").rstrip("/") + "/"
        shown = f"~/{path.removeprefix(home)}" if path.startswith(home) else path
        return cls._of(path, user_config(os.environ), shown, identity)

    @classmethod
    def of_workspace(cls, workspace: str) -> OwnFile:
        """Read the haft.toml of a workspace. It must be a regular file, because a link in a cloned repository could
        lead to the user's file."""
        path = os.path.join(os.path.realpath(workspace), WORKSPACE_FILES[0])
        _require_own(path)
        identity = _identity(path)
        found = workspace_config(os.path.dirname(path))
        if found is not None and found.is_json:
            raise BadUsage(f"{found.path} is JSON, and haft writes rules only into TOML", hint="edit the file by hand")
        return cls._of(path, found, WORKSPACE_FILES[0], identity, is_workspaces=True)

    @classmethod
    def _of(
        cls, path: str, found: ConfigFile | None, shown: str, identity: Any, *, is_workspaces: bool = False
    ) -> OwnFile:
        if found is None:
            return cls(path, "", shown, None, is_workspaces)
        try:
            return cls(path, found.data.decode(), shown, identity, is_workspaces)
        except UnicodeDecodeError as error:
            raise BadConfig(f"{path} is not UTF-8") from error

    def tables(self) -> list[dict[str, Any]]:
        """The decoded rules of the file."""
        try:
            rules = tomllib.loads(self.text).get("permissions", [])
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            raise BadConfig(f"{self.path} cannot be understood: {error}") from error
        return rules if isinstance(rules, list) else []

    def lines(self) -> tuple[int, ...]:
        """The line number of each rule; empty if the lines are not known."""
        return rule_lines(self.text, len(self.tables())) or ()

    def check(self, text: str, workspace: str | None) -> None:
        """Raise `BadConfig` if haft could not use a file with this text, or if a rule in the text can never match."""
        try:
            data = text.encode()
        except UnicodeEncodeError as error:
            raise BadConfig(f"{self.shown}: a text that is not UTF-8 cannot be written") from error
        rules_in(ConfigFile(self.path, data, self.shown), workspace, os.environ)

    def write(self, text: str) -> None:
        """Replace the file. If the user's file is a link, replace the file that the link points to."""
        directory = os.path.dirname(self.path)
        try:
            os.makedirs(os.path.dirname(directory), mode=0o700, exist_ok=True)
            if not os.path.isdir(directory):
                os.mkdir(directory, 0o700)
        except OSError as error:
            raise BadUsage(f"{directory} cannot be made: {error.strerror}") from error
        place = self.path if self.is_workspaces else os.path.realpath(self.path)
        name, root = os.path.basename(place), Root(os.path.dirname(place))
        descriptor = root.open_directory(".")
        try:
            with locked(descriptor, LOCK_SECONDS):
                if self.identity is None and os.path.lexists(self.path):
                    raise Conflict(f"{self.path} was created meanwhile", hint="try again")
                root.replace(name, text.encode(), expect=self.identity)
        finally:
            os.close(descriptor)


def _require_own(path: str) -> None:
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISREG(mode):
        what = "a link" if stat.S_ISLNK(mode) else "not a regular file"
        raise BadUsage(
            f"{path} is {what}: haft writes no rule into it", hint="put a regular file there, or use --in user"
        )


def _identity(path: str) -> Any:
    return _root(path).identity(os.path.basename(os.path.realpath(path))) if os.path.exists(path) else None


def _root(path: str) -> Root:
    return Root(os.path.dirname(os.path.realpath(path)))
