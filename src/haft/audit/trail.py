"""Writes the entries of the audit log: one when a call that may change something starts, one when any call ends,
one when somebody answers a request for approval or cancels a call, and one when haft refuses an agent's own approval.

For a call that may change something, the pipeline's `record` stage writes the first entry before the call acts, and the
second before the caller gets an answer. The ends of calls that only read are written in groups later; until then, they
are safe in the journal. Entries contain no output.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Final, Literal

from haft.audit.chain import Chain
from haft.audit.line_checker import body_of, last_raw_lines, raw_lines
from haft.audit.lines import parse_line
from haft.audit.redact import Redactor
from haft.contracts import NO_SECRETS, UNAUDITED_FIELDS, Call, Outcome, Principal, Secrets, iso_time, path_to_json
from haft.storage import AuditLog, decode, encode, fragment

Act = Literal["approve", "reject", "cancel"]
"""What a person, or another process, can do to a call that somebody else made."""
_AT_ONCE: Final = 64_000_000
"""How much of the log `entries_from` reads at once; more than the longest line."""
MOST_PATHS: Final = 1000
"""The maximum number of changed paths in one entry."""


class Trail:
    """The audit log, open for writing. Any thread of this process may write."""

    def __init__(self, log: AuditLog, redactor: Redactor, workspace: str = "") -> None:
        self._log = log
        self.workspace = workspace
        self._chain = Chain(log)
        self.redactor = redactor

    def entry(self, call: Call, outcome: Outcome, at: float, *, is_end: bool) -> tuple[bytes, dict[str, Any]]:
        """The entry for a call in its present state, with secrets removed; and those fields of its outcome that are
        stored in the table of runs, but not in the audit log."""
        facts = outcome.facts(fragment)
        take = facts.pop
        apart = {name: take(name) for name in UNAUDITED_FIELDS}
        del facts["startedAt"]
        if not outcome.cached:
            del facts["cached"]
        facts["type"] = "end" if is_end else "start"
        facts["at"] = iso_time(at)
        facts["whoKind"] = call.principal.kind
        facts["workspace"] = self.workspace
        facts["arguments"] = call.arguments
        facts["cwd"] = call.cwd
        facts["digest"] = None if call.tool is None else call.tool.spec.digest
        if call.trace is not None:
            facts["trace"] = call.trace.trace_id
        if call.batch is not None:
            facts["batch"] = call.batch
        if call.claim is not None:
            facts["claim"] = call.claim
        if call.env:
            facts["env"] = sorted(call.env)
        if call.config:
            facts["config"] = sorted(call.config)
        return self.redactor(encode(facts), call.secrets), apart

    def record_act(
        self, act: Act, principal: Principal, run: str, tool: str, secrets: Secrets = NO_SECRETS, **facts: Any
    ) -> None:
        """Record that somebody answered a request for approval, or cancelled a call."""
        entry = {
            "type": act,
            "at": iso_time(time.time()),
            "run": run,
            "tool": tool,
            **principal.to_json(),
            "workspace": self.workspace,
            **facts,
        }
        self.append([self.redactor(encode(entry), secrets)])

    def record_refusal(self, command: str, principal: Principal, reason: str, **facts: Any) -> None:
        """Record that haft refused a command that counts as a person's, such as `haft approve`, to an agent."""
        entry = {
            "type": "refuse",
            "at": iso_time(time.time()),
            "command": command,
            **principal.to_json(),
            "workspace": self.workspace,
            "reason": reason,
            **facts,
        }
        self.append([self.redactor(encode(entry))])

    def record_uncovered(self, agent: Principal, tool: str, arguments: Any, cwd: str, reason: str) -> None:
        """Record that an agent used one of its own tools in a place where haft does not act."""
        entry = {
            "type": "uncovered",
            "at": iso_time(time.time()),
            "tool": tool,
            **agent.to_json(),
            "workspace": self.workspace,
            "cwd": cwd,
            "arguments": arguments,
            "reason": reason,
        }
        self.append([self.redactor(encode(entry))])

    def record_changes_between(self, run: str, paths: Sequence[str]) -> None:
        """Record the paths that a process of a run changed after the run had ended, if no later call recorded these
        changes."""
        facts = {
            "type": "between",
            "at": iso_time(time.time()),
            "run": run,
            "workspace": self.workspace,
            "paths": [path_to_json(path) for path in paths[:MOST_PATHS]],
            "count": len(paths),
        }
        self.append([self.redactor(encode(facts))])

    def append(self, entries: Sequence[bytes]) -> None:
        """Add entries to the chain. Once this returns, the entries survive `kill -9`."""
        if entries:
            self._chain.append(entries)

    def append_missing(self, ends: Sequence[bytes], since: int = 0) -> None:
        """Add those entries of `ends` that the chain does not contain yet. The entries come from the journal of a host
        that died. The log contains none of these entries before the position `since`, so only the part after `since` is
        read."""
        runs = {decode(end)["run"]: end for end in ends}
        for entry in entries(self._log, since):
            if entry.get("type") == "end":
                runs.pop(entry.get("run"), None)
        self.append(list(runs.values()))

    def sync(self) -> None:
        self._chain.sync()

    def close(self) -> None:
        self._chain.close()


def entries(log: AuditLog, since: int = 0) -> Iterator[dict[str, Any]]:
    """Yield the entries of the audit log, the oldest first, each with its number and hash. Lines that cannot be read
    are marked as such. `since` is the position of the first line to read."""
    if log.exists():
        yield from map(_entry, raw_lines(log, since))


def newest_entries(log: AuditLog) -> Iterator[dict[str, Any]]:
    """Yield the entries, the newest first. Only as much of the log is read as is wanted."""
    if log.exists():
        yield from map(_entry, last_raw_lines(log))


def entries_from(log: AuditLog, position: int) -> tuple[list[dict[str, Any]], int]:
    """The entries that are complete from a position on, and the position after them. For whoever follows the log."""
    if not log.exists():
        return [], position
    found = []
    for raw in raw_lines(log, position, min(log.size(), position + _AT_ONCE)):
        if not raw.endswith(b"\n"):
            break
        found.append(_entry(raw))
        position += len(raw)
    return found, position


def last_entries(log: AuditLog, limit: int) -> list[dict[str, Any]]:
    """The newest `limit` entries, the newest first."""
    return list(islice(newest_entries(log), min(limit, sys.maxsize)))


def _entry(raw: bytes) -> dict[str, Any]:
    line = parse_line(raw.removesuffix(b"\n"))
    body = {} if line is None else body_of(line)
    if line is None or not body:
        return {"seq": None, "hash": None, "type": "unreadable", "bytes": len(raw)}
    return {"seq": line.seq, "hash": line.hash, **body}
