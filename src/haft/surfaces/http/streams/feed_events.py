"""The events of the feed, and who sees which of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Self

from haft.contracts import iso_time
from haft.values import dataclass

if TYPE_CHECKING:
    from haft.service import Identity, News, RunRecord, Waiting
    from haft.surfaces.http.streams.topics import Published


@dataclass(frozen=True, slots=True)
class FeedEvent:
    """Something that happened in a workspace."""

    kind: str
    data: dict[str, Any]
    workspace: str
    who: str | None = None
    """Whose run it is about; None if it is about none."""


@dataclass(frozen=True, slots=True)
class FeedView:
    """The part of the feed that somebody sees. All who see the same share one view."""

    workspaces: frozenset[str]
    runs_of: str | None = None
    """Whose runs they see; None for all."""
    requests_of: str | None = None
    """The same for requests in the inbox."""

    @classmethod
    def of(cls, identity: Identity, workspaces: Collection[str]) -> Self:
        """The view of an identity on workspaces that it may enter."""
        return cls(
            frozenset(workspaces),
            None if identity.may("see-all-runs") else identity.name,
            None if identity.may("see-inbox") else identity.name,
        )

    def shown(self, event: Published) -> bytes | None:
        """The bytes of an event; None if it is hidden."""
        about = event.scope
        assert isinstance(about, FeedEvent)
        if about.workspace not in self.workspaces:
            return None
        only = self.requests_of if about.kind == "inbox" else self.runs_of
        if about.who is not None and only is not None and about.who != only:
            return None
        return event.chunk


def feed_events(news: News, names: Mapping[str, str]) -> Iterator[FeedEvent]:
    """What happened, as events. `names` are the names of the workspaces by their paths; others are left out."""
    for run in news.runs:
        if (name := names.get(run.record["workspace"])) is not None:
            yield FeedEvent("run", {"workspace": name, "run": _run_facts(run)}, name, run.who)
    for waiting, state in (*((each, "open") for each in news.asked), *((each, "closed") for each in news.settled)):
        if (name := names.get(waiting.workspace)) is not None:
            facts = _request_facts(waiting, state)
            yield FeedEvent("inbox", {"workspace": name, "request": facts}, name, waiting.who)


def _run_facts(run: RunRecord) -> dict[str, Any]:
    """What a line of a list shows of a run."""
    changes = run.changes
    return {
        "id": run.id,
        "tool": run.tool,
        "status": run.status,
        "who": run.who,
        "thread": run.thread,
        "parent": run.parent,
        "batch": run.batch,
        "startedAt": iso_time(run.started_at),
        "endedAt": None if run.ended_at is None else iso_time(run.ended_at),
        "changes": {"state": changes["state"], "files": len(changes["files"])},
    }


def _request_facts(waiting: Waiting, state: str) -> dict[str, Any]:
    return {
        "id": waiting.id,
        "run": waiting.run,
        "tool": waiting.shown.get("tool"),
        "who": waiting.who,
        "state": state,
        "createdAt": iso_time(waiting.created_at),
    }
