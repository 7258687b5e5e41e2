"""Outcomes, read back from their JSON form: from the store, from a program in a sandbox, from a server."""

from __future__ import annotations

import base64
import datetime
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from haft.contracts.change import Change, Changes, ConflictingPath
from haft.contracts.confinement import NO_CONFINEMENT, Confinement
from haft.contracts.connections import Connection
from haft.contracts.decision import DecidedPart, Decision
from haft.contracts.errors import Failure
from haft.contracts.limits import LimitsApplied
from haft.contracts.names import RunId, ThreadId, ToolName
from haft.contracts.outcome import NO_LIMITS, Outcome
from haft.contracts.ports import EndedChild

if TYPE_CHECKING:
    from haft.contracts.confinement import Network


def outcome_from(form: Mapping[str, Any]) -> Outcome:
    """The outcome that was written as JSON. Its JSON form is the same again. Of the confinement, it has only what the
    JSON form has. Runs of earlier versions lack some fields."""
    error, decision, sandbox = form["error"], form.get("decision"), form.get("sandbox")
    started_at = form.get("startedAt", 0.0)
    return Outcome(
        RunId(form["run"]),
        ToolName(form["tool"]),
        form["status"],
        form["who"],
        ThreadId(form["thread"]),
        parent=form["parent"],
        output=form["output"],
        stderr=form["stderr"],
        exit_code=form["exitCode"],
        result=form["result"],
        error=None if error is None else Failure(**error),
        truncated=form["truncated"],
        output_bytes=form["outputBytes"],
        started_at=time_from(started_at) if isinstance(started_at, str) else started_at,
        duration=form["durationMs"] / 1000,
        changes=changes_from(form["changes"]),
        decision=None if decision is None else decision_from(decision),
        limits=LimitsApplied(**form["limits"]) if form.get("limits") else NO_LIMITS,
        sandbox=NO_CONFINEMENT if sandbox is None else confinement_from(sandbox, form["thread"]),
        ended_children=tuple(EndedChild(**each) for each in form.get("endedChildren", ())),
        connections=() if sandbox is None else tuple(map(_connection, sandbox.get("connections", ()))),
        notes=tuple(form["notes"]),
        content=tuple(form.get("content", ())),
        cached=form.get("cached", False),
    )


def time_from(text: str) -> float:
    """Seconds since the epoch from RFC 3339, such that `iso_time` writes the same text again."""
    at = datetime.datetime.fromisoformat(text).timestamp()
    return at if int(at * 1000) == round(at * 1000) else math.nextafter(at, math.inf)


def path_from(form: Mapping[str, Any]) -> str:
    """The path that `path_to_json` wrote."""
    raw = form.get("pathBytes")
    return form["path"] if raw is None else base64.b64decode(raw).decode("utf-8", "surrogateescape")


def changes_from(form: Mapping[str, Any]) -> Changes:
    """The change set in the JSON form of an outcome."""
    return Changes(
        form["engine"],
        form["complete"],
        form["reason"],
        form["state"],
        tuple(map(_change, form["files"])),
        tuple(ConflictingPath(path_from(each), each["by"]) for each in form.get("conflicts", ())),
    )


def _change(form: Mapping[str, Any]) -> Change:
    before, after = (None if (mode := form.get(name)) is None else int(mode, 8) for name in ("modeBefore", "modeAfter"))
    return Change(
        path_from(form),
        form["type"],
        form["kind"],
        before=form.get("before"),
        after=form.get("after"),
        mode_before=before,
        mode_after=after,
        renamed_from=form.get("from"),
        attributes=tuple(form.get("attributes", ())),
    )


def decision_from(form: Mapping[str, Any]) -> Decision:
    """The decision in the JSON form of an outcome, or of a test of permissions."""
    return Decision(
        form["action"],
        form["layer"],
        form["rule"],
        form["source"],
        form.get("by", "rule"),
        form["reason"],
        tuple(DecidedPart(**each) for each in form["parts"]),
    )


def confinement_from(form: Mapping[str, Any], thread: str) -> Confinement:
    """The confinement in the JSON form of an outcome of this thread, or of a request for approval."""
    network: Network = form["network"] if isinstance(form["network"], bool) else tuple(form["network"])
    return Confinement(
        profile=form["profile"],
        network=network,
        writable=tuple(form.get("writable", ())),
        readable=tuple(form.get("readable", ())),
        path=tuple(form.get("path", ())),
        env=tuple(form.get("env", ())),
        layers=tuple(form.get("layers", ())),
        reason=form.get("reason"),
        scratch=thread if form.get("scratch") == "thread" else None,
    )


def _connection(form: Mapping[str, Any]) -> Connection:
    known = {"encrypted_name" if name == "encryptedName" else name: value for name, value in form.items()}
    return Connection(**known)
