"""Paused runs: runs that wait for a person for a program, and that outlive their host.

The stored form of such a run has what is needed to make its call again, without any secret. When its host has ended,
the run stays open, as long as every run that waits for it can go on as well. Another host then takes it over, and the
call passes the pipeline again, under the same id. `pipeline` writes these facts, `recovery` reads them, and `service`
resumes the runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from haft.contracts import (
    Call,
    Principal,
    RunId,
    Secrets,
    ToolName,
    grants_from,
    own_copy,
    rights_from,
)
from haft.runs.entry import RunRecord
from haft.storage import encode
from haft.values import dataclass


@dataclass(frozen=True, slots=True)
class Asked:
    """What a paused run asks a person."""

    request: str
    """The id of the request."""
    digest: str
    """The digest of what the request shows of the call. An answer holds only for a call that shows the same."""


def call_facts(call: Call, asked: Asked | None, clean: Callable[[bytes, Secrets], bytes]) -> dict[str, Any] | None:
    """The facts from which `call_from` makes the call again; None if haft does not store some of them, because they
    are or may be secret. `asked` is None for a call that waits for a call below it. `clean` masks secrets."""
    if call.env or call.config or call.attachment is not None:
        return None
    facts = {
        "name": call.name,
        "arguments": own_copy(call.arguments),
        "principal": call.principal.to_json(),
        "timeout": call.timeout,
        "cwd": call.cwd,
        "grants": call.grants.to_json(),
        "trial": call.trial,
        "isolation": call.isolation,
        "usesCache": call.uses_cache,
        "key": call.key,
        **({} if call.claim is None else {"claim": call.claim}),
        "rights": [each.to_json() for each in call.rights],
        "asked": None if asked is None else {"request": asked.request, "digest": asked.digest},
    }
    text = encode(facts)
    return facts if clean(text, call.secrets) == text else None


def call_from(record: RunRecord, secrets: Secrets) -> Call:
    """The call of a paused run, as it was made."""
    facts = record.paused or {}
    who = facts["principal"]
    return Call(
        run=record.id,
        name=ToolName(facts["name"]),
        arguments=facts["arguments"],
        principal=Principal(who["who"], who["thread"], who["whoKind"], who.get("onBehalf")),
        timeout=facts["timeout"],
        cwd=facts["cwd"],
        grants=grants_from(facts["grants"]),
        trial=facts["trial"],
        isolation=facts["isolation"],
        uses_cache=facts["usesCache"],
        key=facts["key"],
        claim=facts.get("claim"),
        rights=tuple(map(rights_from, facts["rights"])),
        secrets=secrets,
    )


def asked_by(record: RunRecord) -> Asked | None:
    """What a paused run asks a person; None if it waits for a run below it."""
    asked = (record.paused or {}).get("asked")
    return None if asked is None else Asked(asked["request"], asked["digest"])


def waiting_trees(records: Sequence[RunRecord]) -> set[RunId]:
    """Which open runs of a host that has ended stay open: those that ask a person, if all runs above them can go on
    too, and these runs above them."""
    known = {record.id: record for record in records}
    found: set[RunId] = set()
    for record in records:
        if asked_by(record) is None or record.status != "blocked-on-user":
            continue
        chain = [record]
        while (above := chain[-1].parent) is not None and above in known:
            chain.append(known[above])
        if chain[-1].parent is None and all(each.paused is not None for each in chain):
            found.update(each.id for each in chain)
    return found
