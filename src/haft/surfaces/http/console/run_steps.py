"""What happened to a run, step by step, and the limits that it had."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from haft.surfaces.http.console.figures import clock, counted, size, spoken, took
from haft.surfaces.http.console.run_facts import RunFacts, seconds_of
from haft.values import dataclass

_LIMITS: Final = (
    ("memory_bytes", "Memory", size),
    ("max_processes", "Processes", lambda count: f"{count:,}"),
    ("max_written_bytes", "Written", size),
    ("max_idle_seconds", "Idle", lambda seconds: f"{seconds:g} s"),
    ("cpu_seconds", "CPU", lambda seconds: f"{seconds:g} s"),
)
"""The limits that are shown as a number, because haft does not keep how much of them a call used."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step: a picture, a word, when or how long, and a sentence."""

    picture: str
    title: str
    time: str
    detail: str = ""
    is_now: bool = False
    since: float | None = None
    """For what goes on: when it began."""


@dataclass(frozen=True, slots=True)
class Meter:
    """How much of a limit a call used."""

    name: str
    used: float
    most: float
    words: str


def steps(run: RunFacts, now: float) -> list[Step]:
    """What happened so far, the first step first."""
    outcome = run.whole["outcome"]
    found = [Step("done", "Checked", clock(run.began), "the arguments fit the schema")]
    found += _decided(run, outcome["decision"])
    found += _ran(run, outcome, now)
    found += _ended(run, outcome)
    return found


def _decided(run: RunFacts, decision: Mapping[str, Any] | None) -> list[Step]:
    found = []
    if run.waited is not None:
        since, until = run.waited
        found.append(Step("held" if until else "wait", "Needed approval", clock(since), is_now=not until))
        if not until:
            return found
        waited = f"after {spoken(until - since)}"
        reason = "" if decision is None else decision["reason"]
        picture = "rejected" if run.status == "rejected-by-user" else "done"
        title = "Rejected" if picture == "rejected" else "Approved"
        detail = f"{reason}, {waited}" if decision is not None and decision["layer"] == "approval" else waited
        return [*found, Step(picture, title, clock(until), detail)]
    if decision is None:
        return found
    where = f", {decision['source']}" if decision["layer"] == "rules" else ""
    if run.status == "rejected-by-user":
        return [Step("rejected", "Rejected", clock(run.began), f"{decision['reason']}{where}")]
    title = "Allowed by a rule" if decision["layer"] == "rules" else "Allowed"
    reason = decision["reason"].removeprefix("the rule says allow ")
    return [Step("done", title, clock(run.began), f"{reason}{where}")]


def _ran(run: RunFacts, outcome: Mapping[str, Any], now: float) -> list[Step]:
    began = next((each for each in run.whole["states"] if each["status"] == "in-progress"), None)
    if began is None:
        return []
    sandbox = outcome["sandbox"]
    if outcome["cached"]:
        return [Step("done", "Answered from the cache", clock(run.began), "the tool did not run")]
    is_now = run.kind == "running"
    lasted = (now if run.ended is None else run.ended) - seconds_of(began["at"])
    if run.waited and run.waited[0] > seconds_of(began["at"]):  # A trial run: it ran first, then a person was asked.
        lasted = run.waited[0] - seconds_of(began["at"])
    network = sandbox["network"]
    reach = "no network" if not network else "the network" if network is True else f"network to {', '.join(network)}"
    detail = f"profile {sandbox['profile']}, {reach}" if sandbox["profile"] != "none" else sandbox["reason"] or ""
    verb = "Runs" if is_now else "Ran"
    title = f"{verb} in the sandbox" if sandbox["profile"] != "none" else f"{verb} in haft's process"
    since = seconds_of(began["at"]) if is_now else None
    return [Step("run" if is_now else "done", title, took(max(0, lasted)), detail, is_now, since)]


def _ended(run: RunFacts, outcome: Mapping[str, Any]) -> list[Step]:
    if run.ended is None:
        return []
    found, changes = [], outcome["changes"]
    error = outcome["error"]
    if error is not None and run.status != "rejected-by-user":
        picture = "cancelled" if run.status == "cancelled" else "error"
        found.append(Step(picture, error["code"].replace("-", " ").capitalize(), clock(run.ended), error["message"]))
    count = counted(len(changes["files"]), "file")
    reason = changes["reason"] or ""
    if changes["state"] in ("committed", "undone") and changes["files"]:
        found.append(Step("done", "Committed", clock(run.ended), f"{count}, all at once"))
    if changes["state"] == "undone":
        found.append(Step("undone", "Undone", "", "redo brings the changes back"))
    if changes["state"] == "held":
        found.append(Step("held", "Held", clock(run.ended), reason or f"{count} wait to be applied"))
    if changes["state"] == "discarded":
        found.append(Step("remove", "Discarded", clock(run.ended), reason))
    return found


def meters(run: RunFacts, now: float) -> list[Meter]:
    """The limits of which haft knows how much was used."""
    outcome = run.whole["outcome"]
    applied = outcome["limits"]["applied"]
    found = []
    if most := applied.get("max_seconds"):
        worked = max(0.0, (run.ended or now) - run.started_work)
        found.append(Meter("Time", min(worked, most), most, f"{took(worked)} of {most:g} s"))
    if most := applied.get("max_output_bytes"):
        used = outcome["outputBytes"]
        more = ", the rest is kept" if used > most else ""
        found.append(Meter("Output shown", min(used, most), most, f"{size(min(used, most))} of {size(most)}{more}"))
    return found


def plain_limits(run: RunFacts) -> list[tuple[str, str]]:
    """The other limits, in words."""
    applied = run.whole["outcome"]["limits"]["applied"]
    return [(title, words(applied[name])) for name, title, words in _LIMITS if applied.get(name)]
