"""The JSON of the API as the values that the embedded service returns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from haft.changes import ReversalResult
from haft.contracts import (
    OUTCOME_FIELDS,
    UNAUDITED_FIELDS,
    ApprovalRequest,
    ConflictingPath,
    DecidedPart,
    Effects,
    Event,
    HeldConnection,
    HostId,
    Listing,
    Question,
    RuleOffer,
    RunId,
    ThreadId,
    ToolName,
    ToolSpec,
    confinement_from,
    decision_from,
    path_from,
    time_from,
)
from haft.pipeline import BatchedCall, BatchPlan, PlannedCall
from haft.policy import NEVER, Explanation, Step, Waiting
from haft.runs import RunRecord
from haft.service.inbox import Reply
from haft.values import dataclass

_OF_EVENT: Final = ("run", "seq", "at", "type", "status")


@dataclass(frozen=True, slots=True)
class RemoteWaiting(Waiting):
    """A request in the inbox of a server."""

    shown_digest: str = ""

    @property
    def digest(self) -> str:
        """The digest of what the server showed. An answer with it counts only if the server still shows the same."""
        return self.shown_digest


def listing_from(form: Mapping[str, Any]) -> Listing:
    """A tool of the catalogue, with what its JSON form says of it."""
    spec = ToolSpec(
        ToolName(form["name"]),
        form["kind"],
        form["description"],
        form["inputSchema"],
        form["outputSchema"],
        Effects(**form["effects"]),
        origin=form["origin"],
        digest=form["digest"],
        meta=form["meta"],
    )
    return Listing(spec, form["state"], form["reason"])


def event_from(form: Mapping[str, Any]) -> Event:
    """An event of a run."""
    facts = {name: value for name, value in form.items() if name not in _OF_EVENT}
    return Event(RunId(form["run"]), form["seq"], time_from(form["at"]), form["type"], form["status"], facts)


def record_from(form: Mapping[str, Any]) -> RunRecord:
    """A run as it is stored. Its states have no sequence numbers: they are counted."""
    outcome = form["outcome"]
    own = ("status", "who", "thread", "parent", "workspace", "arguments", "cwd", "digest", "batch")
    record = {name: outcome[name] for name in OUTCOME_FIELDS if name not in (*UNAUDITED_FIELDS, "startedAt", "cached")}
    record |= {"run": form["id"], "tool": form["tool"], **{name: form[name] for name in own}}
    rest = {name: outcome[name] for name in (*UNAUDITED_FIELDS, "cached")}
    rest |= {
        "host": form["host"],
        "startedAt": time_from(form["startedAt"]),
        "endedAt": None if form["endedAt"] is None else time_from(form["endedAt"]),
        "states": [[at, time_from(each["at"]), each["status"]] for at, each in enumerate(form["states"])],
        "noted": [],
        "recorded": form["endedAt"] is not None,
    }
    return RunRecord(record, rest)


def waiting_from(form: Mapping[str, Any]) -> RemoteWaiting:
    """A request that waits for a person."""
    same = ("tool", "reason", "parts", "sandbox", "withheld", "diff", "output", "preview", "definitionDiff", "toAllow")
    more = ("build", "connection", "question", "batch", "chain", "cwd", "env", "claim")
    shown = {name: form.get(name) for name in (*same, *more)}
    shown |= {"arguments": form["args"], "chainPurposes": form.get("purposes", [])}
    expires = form["expiresAt"]
    return RemoteWaiting(
        form["id"],
        RunId(form["run"]),
        HostId(""),
        form["workspace"],
        form["who"],
        ThreadId(form["thread"]),
        time_from(form["createdAt"]),
        NEVER if expires is None else time_from(expires),
        tried=form["diff"] is not None,
        fingerprint="",
        shown=shown,
        shown_digest=form.get("digest", ""),
    )


def request_from(waiting: Waiting) -> ApprovalRequest:
    """A request as an approver gets it. It cannot be revised."""
    shown = waiting.shown
    connection, question = shown.get("connection"), shown.get("question")
    return ApprovalRequest(
        waiting.run,
        ToolName(shown["tool"]),
        shown.get("description") or "",
        shown["arguments"],
        shown["reason"],
        waiting.who,
        waiting.thread,
        cwd=shown["cwd"],
        env=shown["env"] or {},
        sandbox=confinement_from(shown["sandbox"], waiting.thread),
        withheld=tuple(shown["withheld"] or ()),
        diff=shown["diff"],
        output=shown["output"],
        preview=shown["preview"],
        claim=shown["claim"],
        parts=tuple(DecidedPart(**each) for each in shown["parts"]),
        to_allow=tuple(RuleOffer(**each) for each in shown["toAllow"]),
        definition_diff=shown["definitionDiff"],
        build=shown["build"],
        connection=None if connection is None else HeldConnection(**connection),
        question=None if question is None else Question(**question),
        chain=tuple(shown["chain"] or ()),
        chain_purposes=tuple(shown["chainPurposes"]),
        id=waiting.id,
        expires_at=waiting.expires_at if waiting.expires else None,
    )


def reply_from(form: Mapping[str, Any], waiting: Waiting, others: tuple[Reply, ...] = ()) -> Reply:
    """The effect of an answer."""
    return Reply(waiting, form["approved"], host_lives=form["waits"], others=others)


def explanation_from(form: Mapping[str, Any]) -> Explanation:
    """The decision about a call, and the steps that led to it."""
    return Explanation(decision_from(form), tuple(Step(**each) for each in form.get("steps", ())))


def plan_from(form: Mapping[str, Any], calls: tuple[BatchedCall, ...]) -> BatchPlan:
    """The plan of a batch of these calls."""
    return BatchPlan(
        tuple(
            PlannedCall(
                call,
                each["group"],
                tuple((before["id"], before["reason"]) for before in each["waitsFor"]),
                each["problem"],
            )
            for call, each in zip(calls, form["calls"], strict=True)
        )
    )


def reversal_from(form: Mapping[str, Any]) -> ReversalResult:
    """What an undo or a redo would do."""
    conflicts = tuple(ConflictingPath(path_from(each), each["by"]) for each in form["conflicts"])
    return ReversalResult(tuple(form["runs"]), tuple(form["plan"]), conflicts)
