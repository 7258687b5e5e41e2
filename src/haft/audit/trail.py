"""What goes into the audit log: one entry when a call with effects starts, one when any call ends, and one when
somebody answers for a call or cancels it.

The pipeline's `record` stage has calls with effects written before they act and before they are answered; the ends of
calls that only read come in groups, from the journal that has them already. Entries hold no output.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Final, Literal

from haft.audit.chain import Chain
from haft.audit.lines import parse_line
from haft.audit.redact import Redactor
from haft.audit.walk import body_of, last_raw_lines, raw_lines
from haft.contracts import NO_SECRETS, UNAUDITED_FIELDS, Call, Outcome, Principal, Secrets, iso_time, path_to_json
from haft.storage import AuditLog, decode, encode, fragment

Act = Literal["approve", "reject", "cancel"]
"""What somebody does to a call that is no call itself."""
MOST_PATHS: Final = 1000
"""In one entry."""


class Trail:
    """The audit log, open for writing, from any thread."""

    def __init__(self, log: AuditLog, redactor: Redactor, workspace: str = "") -> None:
        self._log = log
        self.workspace = workspace
        self._chain = Chain(log)
        self.redactor = redactor

    def entry(self, call: Call, outcome: Outcome, at: float, *, is_end: bool) -> tuple[bytes, dict[str, Any]]:
        """What the audit log says of a call, as far as it is known, secrets taken out; and the part of its outcome that
        only `runs` keeps."""
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

    def tell_act(
        self, act: Act, principal: Principal, run: str, tool: str, secrets: Secrets = NO_SECRETS, **facts: Any
    ) -> None:
        """Add that somebody answered for a call, or cancelled it."""
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

    def tell_between(self, run: str, paths: Sequence[str]) -> None:
        """Add what changed after a run whose process outlived it, when no call came any more."""
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
        """Add entries to the chain. Safe against `kill -9` when this returns."""
        if entries:
            self._chain.append(entries)

    def append_missing(self, ends: Sequence[bytes], since: int = 0) -> None:
        """Add those of some ends, found in the journal of a dead host, that the chain does not have from a position on:
        before it they cannot stand, and a long log is not read for them."""
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
    """The audit log as it can be read, oldest first, with number and hash; unreadable lines are said to be so. `since`
    is the position at which to begin."""
    if log.exists():
        yield from map(_entry, raw_lines(log, since))


def last_entries(log: AuditLog, limit: int) -> list[dict[str, Any]]:
    """The newest `limit` entries, newest first; no more of the log is read than they take."""
    return [_entry(raw) for raw in islice(last_raw_lines(log), min(limit, sys.maxsize))] if log.exists() else []


def _entry(raw: bytes) -> dict[str, Any]:
    line = parse_line(raw.removesuffix(b"\n"))
    body = {} if line is None else body_of(line)
    if line is None or not body:
        return {"seq": None, "hash": None, "type": "unreadable", "bytes": len(raw)}
    return {"seq": line.seq, "hash": line.hash, **body}
