"""What happened that webhooks tell about.

Answers, failures and undos come from the audit log, and a file says up to which entry they were taken. So nothing is
missed while no server runs, or if one is killed. Requests that wait come from the inbox: those that are open now.

HAFT_HOME/webhooks/cursor    the number and the hash of the last entry that was taken    0600
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from haft.contracts import StorageFailed, iso_time
from haft.service.audit_log import AuditLogFacade
from haft.service.inbox import InboxFacade, to_json
from haft.service.private_files import replace_file
from haft.service.webhooks.settings import EventName
from haft.values import dataclass

if TYPE_CHECKING:
    from haft.policy import Waiting
    from haft.storage import StateHome

CURSOR: Final = "cursor"


@dataclass(frozen=True, slots=True)
class Occurrence:
    """Something that happened."""

    event: EventName
    subject: str
    """What makes it one occurrence and no other."""
    at: str
    workspace: str
    """Its name."""
    place: str
    """The page about it, below the page of the workspace."""
    data: Mapping[str, Any]
    quoting: Mapping[str, Any]
    """Arguments of the call, and texts that may quote them."""


class Occurrences:
    """What happens in the workspaces of one server."""

    def __init__(self, home: StateHome, directory: str, names: Mapping[str, str]) -> None:
        """`names` are the names of the workspaces, by their paths. What happens elsewhere is left out."""
        self._home = home
        self._directory = directory
        self._names = names
        self._cursor = self._stored_cursor()

    def new(self) -> tuple[list[Occurrence], tuple[int, str] | None]:
        """What happened since the last entry that was taken, the oldest first, and the entry that is taken with it."""
        newest: tuple[int, str] | None = None
        found: list[Occurrence] = []
        with contextlib.closing(AuditLogFacade(self._home).newest()) as entries:  # type: ignore[type-var]
            for entry in entries:
                seq, hash_ = entry.get("seq"), entry.get("hash")
                if not isinstance(seq, int) or not isinstance(hash_, str):
                    continue
                newest = newest or (seq, hash_)
                if self._cursor is None or seq < self._cursor[0]:  # Nothing is new, or this is another, shorter log.
                    break
                if seq == self._cursor[0]:
                    if hash_ != self._cursor[1]:  # Another log: what is in it happened before.
                        found = []
                    break
                found += self._of_entry(entry)
        return found[::-1], newest

    def take(self, newest: tuple[int, str] | None) -> None:
        """Note that everything up to this entry has a delivery."""
        if newest is None:
            newest = (0, "")  # The log is empty: what comes is new.
        if newest == self._cursor:
            return
        try:
            replace_file(self._directory, CURSOR, json.dumps(newest).encode())
        except OSError as error:
            raise StorageFailed("haft could not note which events have webhooks", error) from error
        self._cursor = newest

    def waiting(self) -> list[Occurrence]:
        """The requests that wait for a person now."""
        with contextlib.closing(InboxFacade(self._home)) as inbox:
            return [found for each in inbox.waiting(None) if (found := self._of_request(each)) is not None]

    def _stored_cursor(self) -> tuple[int, str] | None:
        with contextlib.suppress(OSError, ValueError):
            with open(os.path.join(self._directory, CURSOR), "rb") as file:
                seq, hash_ = json.loads(file.read(1000))
            if isinstance(seq, int) and isinstance(hash_, str):
                return seq, hash_
        return None

    def _of_request(self, waiting: Waiting) -> Occurrence | None:
        name = self._names.get(waiting.workspace)
        if name is None:
            return None
        shown = to_json(waiting)
        data = {key: shown[key] for key in ("run", "tool", "who", "thread", "expiresAt")}
        quoting = {key: shown[key] for key in ("args", "reason", "claim")}
        at = iso_time(waiting.created_at)
        return Occurrence(
            "request.waiting",
            waiting.id,
            at,
            name,
            f"approve/{waiting.id}",
            {"request": waiting.id, **data},
            quoting,
        )

    def _of_entry(self, entry: Mapping[str, Any]) -> Iterator[Occurrence]:
        name = self._names.get(str(entry.get("workspace")))
        kind, tool = entry.get("type"), entry.get("tool")
        if name is None or entry.get("parent") is not None:
            return
        subject = f"{entry['seq']} {entry['hash']}"
        facts = {key: entry.get(key) for key in ("run", "tool", "who", "thread")}
        place, at = f"runs/{entry.get('run')}", str(entry.get("at"))
        quoting = {"args": entry.get("arguments")}
        if kind in ("approve", "reject"):
            data = {key: entry.get(key) for key in ("request", "run", "tool")}
            data |= {"approved": kind == "approve", "answeredBy": entry.get("who")}
            yield Occurrence("request.answered", subject, at, name, place, data, {"message": entry.get("message")})
        elif kind == "end" and entry.get("status") == "error":
            error = entry.get("error") or {}
            data = {**facts, "error": {"code": error.get("code"), "retryable": error.get("retryable")}}
            yield Occurrence("run.failed", subject, at, name, place, data, {**quoting, "message": error.get("message")})
        elif kind == "end" and tool == "undo" and entry.get("status") == "done":
            undone = (entry.get("arguments") or {}).get("runs", [])
            yield Occurrence("run.undone", subject, at, name, place, {**facts, "runs": undone}, {})
