"""The content of the audit log: an entry when a call with effects starts, one when any call ends, and one when somebody
answers a request for approval or cancels a call.

The pipeline's `record` stage writes calls with effects before they act and before the caller gets an answer. The ends
of calls that only read are written in groups, from the journal that already contains them. Entries contain no output.
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
"""What somebody does to a call without making a call."""
MOST_PATHS: Final = 1000
"""The maximum number of paths in one entry."""


class Trail:
    """The audit log, open for writing from any thread."""

    def __init__(self, log: AuditLog, redactor: Redactor, workspace: str = "") -> None:
        self._log = log
        self.workspace = workspace
        self._chain = Chain(log)
        self.redactor = redactor

    def entry(self, call: Call, outcome: Outcome, at: float, *, is_end: bool) -> tuple[bytes, dict[str, Any]]:
        """The entry for a call in its present state, with secrets removed; and the part of its outcome that only `runs`
        keeps."""
        facts = outcome.facts(fragment)
        take = facts.pop
        apart = {name: take(name) for name in UNAUDITED_FIELDS}
        del facts["startedAt"], facts["cached"]
        facts["type"] = "end" if is_end else "start"
        facts["at"] = iso_time(at)
        facts["whoKind"] = call.principal.kind
        facts["workspace"] = self.workspace
        facts["arguments"] = call.arguments
        facts["cwd"] = call.cwd
        facts["digest"] = None if call.tool is None else call.tool.spec.digest
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

    def record_changes_between(self, run: str, paths: Sequence[str]) -> None:
        """Record the changes after a run whose process outlived it, if no later call recorded them."""
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
        """Add entries to the chain. They survive `kill -9` once this returns."""
        if entries:
            self._chain.append(entries)

    def append_missing(self, ends: Sequence[bytes], since: int = 0) -> None:
        """Add those of some ends, found in the journal of a dead host, that the chain does not contain after the
        position `since`. They cannot stand before it, so a long log need not be read completely."""
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
    """Yield the readable audit log, the oldest entry first, with number and hash; unreadable lines are marked as such.
    `since` is the position of the first line."""
    if log.exists():
        yield from map(_entry, raw_lines(log, since))


def last_entries(log: AuditLog, limit: int) -> list[dict[str, Any]]:
    """The newest `limit` entries, the newest first; no more of the log is read than necessary."""
    return [_entry(raw) for raw in islice(last_raw_lines(log), min(limit, sys.maxsize))] if log.exists() else []


def _entry(raw: bytes) -> dict[str, Any]:
    line = parse_line(raw.removesuffix(b"\n"))
    body = {} if line is None else body_of(line)
    if line is None or not body:
        return {"seq": None, "hash": None, "type": "unreadable", "bytes": len(raw)}
    return {"seq": line.seq, "hash": line.hash, **body}
