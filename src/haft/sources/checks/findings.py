"""The result of a check: findings, in one report for each thing that was checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from haft.sources.checks.codes import CODES, Code, Level


@dataclass(frozen=True, slots=True)
class Finding:
    """One problem or remark."""

    code: str
    message: str
    hint: str | None = None
    line: int | None = None
    """The line in the file, counted from 1."""
    path: str | None = None
    """The file or directory that the finding is about; None if it is about the checked target itself."""
    fixable: bool = False
    explained: Code | None = None
    """The definition of the code, if it is a code of one format that is not in the common table."""

    @property
    def level(self) -> Level:
        return (self.explained or CODES[self.code]).level

    def to_json(self) -> dict[str, Any]:
        return {
            "code": self.code,
            "level": self.level,
            "message": self.message,
            "hint": self.hint,
            "line": self.line,
            "fixable": self.fixable,
        }


@dataclass(frozen=True, slots=True)
class Report:
    """All findings about one tool, skill or file."""

    target: str
    """The path, or the name of a loaded tool."""
    kind: str
    """The format: a kind of tool, or `skill`."""
    name: str | None = None
    """The name of the tool, if it is known."""
    findings: Sequence[Finding] = ()
    fixed: tuple[str, ...] = ()
    """The codes of findings that `--fix` fixed."""

    @property
    def ok(self) -> bool:
        """Whether no finding is an error."""
        return self.count("error") == 0

    def count(self, level: Level) -> int:
        return sum(finding.level == level for finding in self.findings)

    def has(self, code: str) -> bool:
        return any(finding.code == code for finding in self.findings)

    def with_fixed(self, codes: Sequence[str]) -> Report:
        return replace(self, fixed=tuple(dict.fromkeys(codes)))

    def with_more(self, findings: Sequence[Finding]) -> Report:
        return replace(self, findings=(*self.findings, *findings))

    def to_json(self) -> dict[str, Any]:
        return {
            "target": self.target,
            "kind": self.kind,
            "name": self.name,
            "ok": self.ok,
            "findings": [finding.to_json() for finding in self.findings],
            "fixed": list(self.fixed),
        }
