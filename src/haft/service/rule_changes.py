"""Adds rules to a haft.toml of the user or of a workspace, removes them, and forgets remembered answers.

haft writes no file that it could not read again, and no rule that can never match. Only a person can add a rule, since
a rule that allows calls is an approval in advance.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from haft.config import ConfigFile, configured, is_trusted, user_file, workspace_config
from haft.contracts import BadConfig, BadUsage, Principal, ToolSpec, check_owned
from haft.policy import Rule, check_rule, missing_target, rule_from, shapes_of
from haft.service.own_file import OwnFile
from haft.service.rule_memory import forget_rule
from haft.service.toml_text import rule_text, with_rule, with_rule_instead, without_rule
from haft.storage import StateHome

_REMEMBERED: Final = re.compile(r"remembered:([0-9]{1,18})")
_PLACED: Final = re.compile(r"(.+):([0-9]{1,9})")
_LIST: Final = "`haft permissions list` shows where each rule is written"


@dataclass(frozen=True, slots=True)
class RuleChange:
    """One rule that was added or removed."""

    source: str
    """Where the rule is or was written, as `haft permissions list` shows it."""
    file: str | None
    """The path of the rule's file; None for a remembered answer."""
    line: int | None
    rule: Mapping[str, Any] | None
    place: str = ""
    """Where the rule is or was, in words for a person."""
    loses_trust: bool = False
    """Whether the workspace's file was trusted, is no longer trusted after this change, and has settings that count
    only with trust."""
    missing: str | None = None
    """The tool or argument that the rule names but that does not exist, in words; None if everything exists."""

    def to_json(self) -> dict[str, Any]:
        return {"source": self.source, "file": self.file, "line": self.line, "rule": self.rule}


class RuleChanges:
    """Changes the rules of one user, and of a workspace if there is one."""

    def __init__(self, workspace: str | None, home: StateHome, principal: Principal) -> None:
        self._workspace = workspace
        self._home = home
        self._principal = principal

    def add(
        self, rule: Mapping[str, Any], specs: Iterable[ToolSpec], *, in_workspace: bool, is_first: bool
    ) -> RuleChange:
        """Add a rule before or after the other rules of a file. `specs` are the tools that exist."""
        self._principal.must_be_person("permissions add")
        specs = list(specs)
        file = OwnFile.of_workspace(self._named_workspace()) if in_workspace else OwnFile.read()
        file.check(file.text, self._workspace)
        text, line = with_rule(file.text, rule, is_first=is_first)
        source = f"{file.shown}:{line}"
        read = self._checked(file, text, rule, source, specs)
        lost = in_workspace and self._loses_trust(file, file.text)
        file.write(text)
        place = f"{file.path if in_workspace else file.shown}:{line}"
        return RuleChange(source, file.path, line, rule, place, lost, missing_target(read, specs))

    def text_of(self, source: str) -> str:
        """The rule that `source` names as TOML. Raises `BadUsage` if it is not in a file whose rules can be changed."""
        file, number, _ = self._placed(source)
        return rule_text(file.tables()[number])

    def replace(self, source: str, rule: Mapping[str, Any], specs: Iterable[ToolSpec]) -> RuleChange:
        """Write another rule in the place of the one that `source` names: a file and its line."""
        self._principal.must_be_person("permissions edit")
        file, number, line = self._placed(source)
        text = with_rule_instead(file.text, number, rule)
        is_own = file.path == user_file(os.environ)
        lost = not is_own and self._loses_trust(file, file.text)
        read = self._checked(file, text, rule, source, list(specs))
        file.write(text)
        place = f"{file.shown if is_own else file.path}:{line}"
        return RuleChange(source, file.path, line, rule, place, lost, missing_target(read, list(specs)))

    def remove(self, source: str) -> RuleChange:
        """Remove the rule that `source` names: `remembered:3`, or a file and its line."""
        self._principal.must_be_person("permissions remove")
        remembered = _REMEMBERED.fullmatch(source)
        if remembered is not None:
            self._forget(int(remembered[1]))
            return RuleChange(source, None, None, None)
        file, number, line = self._placed(source)
        rules = file.tables()
        text = without_rule(file.text, number)
        try:
            file.check(text, self._workspace)
        except BadConfig as error:
            raise BadUsage(f"the rule was not removed: {error.message}", hint=error.hint) from error
        is_own = file.path == user_file(os.environ)
        lost = not is_own and self._loses_trust(file, text)
        file.write(text)
        place = f"{file.shown if is_own else file.path}:{line}"
        return RuleChange(f"{file.shown}:{line}", file.path, line, rules[number], place, lost)

    def _checked(
        self, file: OwnFile, text: str, rule: Mapping[str, Any], source: str, specs: Sequence[ToolSpec]
    ) -> Rule:
        """The rule as it would be read from the new text of its file. Raises `BadUsage` if it could not be used."""
        try:
            file.check(text, self._workspace)
            read = rule_from(rule, origin="user", source=source)
            check_rule(read, shapes_of(specs))
            check_owned(read.grant.network)
        except BadConfig as error:
            why = error.message.removeprefix(f"{source}: ")  # The rule is not in the file yet: name no line.
            raise BadUsage(f"the rule was not written: {why}", hint=error.hint) from error
        except ValueError as error:
            raise BadUsage(f"the rule was not written: `grant`: {error}") from error
        return read

    def _placed(self, source: str) -> tuple[OwnFile, int, int]:
        """The file of a rule, the number of the rule in it, counted from 0, and its line."""
        placed = _PLACED.fullmatch(source)
        if placed is None:
            raise BadUsage(f"`{source[:80]}` does not name a rule", hint=_LIST)
        file = self._file_named(placed[1])
        line = int(placed[2])
        try:
            number = file.lines().index(line)
        except ValueError:
            raise BadUsage(f"no rule begins at line {line} of {file.path}", hint=_LIST) from None
        return file, number, line

    def _forget(self, number: int) -> None:
        workspace = self._named_workspace()
        if not forget_rule(self._home, workspace, number):
            raise BadUsage(f"there is no remembered rule {number} in {workspace}", hint="`haft permissions list`")

    def _named_workspace(self) -> str:
        if self._workspace is None:
            raise BadUsage("there is no workspace here", hint="`-w DIR` names one")
        return self._workspace

    def _file_named(self, named: str) -> OwnFile:
        """The haft.toml that a rule's source names: the user's, or the workspace's."""
        own = OwnFile.read()
        if named in (own.shown, own.path):
            return own
        theirs = None if self._workspace is None else workspace_config(self._workspace)
        if self._workspace is not None and theirs is not None and named in (theirs.path, theirs.shown):
            return OwnFile.of_workspace(self._workspace)
        if named != os.path.basename(own.path):
            also = "" if theirs is None else f", the workspace's is {theirs.shown}"
            raise BadUsage(f"`{named[:200]}` is not a file with your rules", hint=f"your own file is {own.shown}{also}")
        return own

    def _loses_trust(self, file: OwnFile, kept_text: str) -> bool:
        """Whether settings lose their trust by a change of a workspace's file, because each change ends the trust. So
        the file must be trusted now, and `kept_text`, the old text that stays in the file, must have settings that
        need trust."""
        workspace = self._named_workspace()
        if not is_trusted(self._home.path, workspace, ConfigFile(file.path, file.text.encode(), file.shown)):
            return False
        now = ConfigFile(file.path, kept_text.encode(), file.shown)
        return bool(configured(workspace, now, os.environ, trusted=False).ignored)
