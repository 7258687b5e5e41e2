"""Suggests rules from past approvals in a workspace, with `haft.policy`."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from haft.contracts import MARK, Network, ToolSpec, joined_network, texts_in
from haft.policy import Candidate, PastAnswer, PastCall, PolicyEngine, Suggester, Suggestion
from haft.runs import RunRecord
from haft.service.permissions import query_of
from haft.storage import encode

if TYPE_CHECKING:
    from haft.service.service import ToolService

MAX_REJECTED: Final = 10_000
"""How many rejected calls are read at most. Their age does not matter."""


@dataclass(frozen=True, slots=True)
class Suggested:
    """The suggested rules, and the calls they come from."""

    looked_at: int
    approved: int
    """How many of these runs a person approved, and would have to approve again."""
    suggestions: tuple[Suggestion, ...]

    @property
    def saved(self) -> int:
        return sum(one.prompts for one in self.suggestions)

    def to_json(self) -> dict[str, Any]:
        return {
            "lookedAt": self.looked_at,
            "approved": self.approved,
            "saved": self.saved,
            "suggestions": [_shape(one) for one in self.suggestions],
        }


def _shape(one: Suggestion) -> dict[str, Any]:
    return {
        "rules": [{"rule": each.table(), "why": each.why, "add": add_line(each)} for each in one.rules],
        "saves": one.prompts,
        "alone": one.is_alone,
        "runs": [run for call in one.saved for run in call.runs],
        "alsoPasses": [
            {"run": run, "tool": call.query.spec.name, "args": dict(call.query.arguments)}
            for call in one.also
            for run in call.runs
        ],
    }


def add_line(candidate: Candidate) -> str:
    """The shell command that adds the suggested rule after all other rules, so that the new rule overrides none of
    them."""
    matches = [f"{name}={_written(pattern)}" for name, patterns in candidate.matches for pattern in patterns]
    words = ["allow", candidate.tool, *(word for each in matches for word in ("--match", each)), "--last"]
    return f"haft permissions add {shlex.join(words)}"


def _written(pattern: Any) -> str:
    return pattern if isinstance(pattern, str) else encode(pattern).decode()


async def suggested(service: ToolService, *, since: float | None, limit: int) -> Suggested:
    """Suggest rules from the past calls of a service's workspace. Rejected calls count even if they are older than
    `since`."""
    namespaces = (await service._host.sandbox.ready()).namespaces
    workspace = service._host.root.root
    specs: dict[str, ToolSpec] = {listing.spec.name: listing.spec for listing in service.tools(all=True)}
    runs = service.runs(workspace=workspace, since=since, limit=limit)
    rejected = service.runs(workspace=workspace, status="rejected-by-user", limit=MAX_REJECTED)
    every = {run.id: run for run in (*rejected, *runs)}
    past = past_calls(
        every.values(),
        specs,
        service._host.policy_engine,
        namespaces=namespaces,
        network=service.config.sandbox_network,
    )
    rules = service.config.rules
    found = Suggester(past, service._host.policy_engine, lambda more: service._host.policy_engine_with([*rules, *more]))
    suggestions = tuple(found.suggestions())
    return Suggested(len(runs), sum(len(call.runs) for call in found.asked), suggestions)


def past_calls(
    runs: Iterable[RunRecord],
    specs: Mapping[str, ToolSpec],
    policy_engine: PolicyEngine,
    *,
    namespaces: bool,
    network: Network,
) -> list[PastCall]:
    """The past calls of tools that still exist. Equal calls are one `PastCall` with all their runs."""
    found: dict[tuple[bytes, PastAnswer], tuple[Any, list[str]]] = {}
    for run in runs:
        record = run.record
        spec = specs.get(record["tool"])
        if spec is None or record["decision"] is None:
            continue
        query = query_of(record, spec, confined=spec.has_processes and namespaces)
        answered = _answered(record)
        if answered == "approved" and not _is_all_there(record, query, policy_engine, network=network):
            answered = "other"
        key = encode([spec.name, record["arguments"], record["cwd"], record["thread"]]), answered
        found.setdefault(key, (query, []))[1].append(run.id)
    return [PastCall(query, tuple(ids), answered) for (_key, answered), (query, ids) in found.items()]


def _answered(record: Mapping[str, Any]) -> PastAnswer:
    decision = record["decision"]
    by_person = decision["layer"] == "approval" and decision["by"] == "person"
    if by_person and decision["action"] == "allow":
        return "approved"
    is_rejected = by_person and decision["action"] == "reject"
    return "rejected" if is_rejected or (record["status"] == "rejected-by-user" and by_person) else "other"


def _is_all_there(record: Mapping[str, Any], query: Any, policy_engine: PolicyEngine, *, network: Network) -> bool:
    """Whether the record shows everything that the person approved. False if a secret is masked in the arguments, if
    haft now divides the command line into other parts, or if the call had grants that a suggested rule would not
    give."""
    if any(MARK in text for text in texts_in(record["arguments"])):
        return False
    then = {part["command"] for part in record["decision"]["parts"]}
    now = {part.text for part in policy_engine.parts(query) or ()}
    if then != now:
        return False
    confinement = record["sandbox"]
    if confinement["profile"] == "none":
        return True
    opened = [*confinement["readable"], *confinement["env"], *confinement["path"]]
    outside = [path for path in confinement["writable"] if path != record["workspace"]]
    return not opened and not outside and _is_within(confinement["network"], network)


def _is_within(recorded: bool | list[str], network: Network) -> bool:
    """Whether all calls get the recorded network of a call without a grant."""
    reached = recorded if isinstance(recorded, bool) else tuple(recorded)
    return not reached or joined_network(network, reached) == network
