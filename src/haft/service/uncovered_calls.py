"""Calls of agents' own tools that haft does not cover: those in places without a workspace, such as the home directory,
are only in the audit log. Commands that count as a person's are found everywhere."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from haft.audit import Redactor, Trail, secret_values
from haft.contracts import Principal, own_copy
from haft.policy import AnalysisContext, only_reads, person_command
from haft.storage import StateHome, open_stores


def record_uncovered(
    home: StateHome, agent: str, session: str, tool: str, arguments: Mapping[str, Any], cwd: str, reason: str
) -> None:
    """Write into the audit log that haft did not cover a call. Raises `StorageFailed` if that is not possible."""
    home.prepare()
    trail = Trail(open_stores(home).audit_log(), Redactor(secret_values(os.environ)))
    try:
        principal = Principal(agent, thread=session or None, kind="agent")
        trail.record_uncovered(principal, f"{agent}:{tool}", own_copy(arguments), cwd, reason)
    finally:
        trail.close()


def person_command_in(command: str, workspace: str, cwd: str) -> str | None:
    """The command of haft in a command line that counts as a person's, such as `haft approve`; None if there is none.
    `cwd` is the absolute directory in which the line would run."""
    return person_command(command, _context(workspace, cwd))


def is_harmless(command: str, workspace: str, cwd: str) -> bool:
    """Whether a command line only reads, so that it does no harm even without a sandbox and without approval."""
    return only_reads(command, _context(workspace, cwd, is_confined=False))


def _context(workspace: str, cwd: str, *, is_confined: bool = True) -> AnalysisContext:
    inside = os.path.relpath(os.path.realpath(cwd), os.path.realpath(workspace))
    return AnalysisContext(workspace, inside, confined=is_confined, home=os.path.expanduser("~"))
