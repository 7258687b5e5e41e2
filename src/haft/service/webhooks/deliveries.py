"""The log of deliveries: what is to be sent, what was sent, and how receivers answered.

HAFT_HOME/webhooks/pending/<id>.json    not delivered yet
HAFT_HOME/webhooks/done/<id>.json       delivered, or given up; the newest thousand

A delivery is on disk before anything is sent, and moves to `done` after the receiver has answered. So after `kill -9`
it is sent again: each is sent at least once. Its id is made from the receiver and the occurrence, so the same
occurrence never makes two deliveries, and a receiver recognizes what it has seen.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Mapping
from typing import Any, Final

from haft.contracts import BadUsage, StorageFailed, iso_time
from haft.lazy import regex
from haft.service.private_files import replace_file, sync_directory, write_new
from haft.values import dataclass, replace

MOST_DONE: Final = 1000
MOST_PENDING: Final = 10_000
"""How many deliveries wait at most. What comes beyond is given up at once, and can be sent by hand."""
DELAYS: Final = (5.0, 30.0, 120.0, 600.0, 1800.0, 3600.0, 7200.0, 14_400.0, 28_800.0)
"""How long haft waits after each attempt that failed: about sixteen hours in all. Then it gives up."""
_ID: Final = regex(r"msg_[0-9a-f]{24}")
_MOST_BYTES: Final = 40_000_000
_FIELDS: Final = ("id", "webhook", "name", "event", "body", "created_at", "attempts", "failures", "next_at", "state")


class UnknownDelivery(BadUsage):
    """No delivery has this id."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """One message for one receiver."""

    id: str
    webhook: str
    """The id of the webhook."""
    name: str
    """Its name, for people."""
    event: str
    body: str
    created_at: float
    attempts: tuple[Mapping[str, Any], ...] = ()
    """Each with `at`, the `status` of the answer, and what went wrong (`error`)."""
    failures: int = 0
    """How many attempts failed since it was made, or sent again by hand."""
    next_at: float = 0.0
    state: str = "pending"
    """`pending`, `delivered` or `failed`."""

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "webhook": self.name,
            "event": self.event,
            "state": self.state,
            "createdAt": iso_time(self.created_at),
            "attempts": [dict(each) for each in self.attempts],
            "nextAt": iso_time(self.next_at) if self.state == "pending" and self.attempts else None,
            "body": json.loads(self.body),
        }

    def tried(self, now: float, status: int | None, error: str | None) -> Delivery:
        """The delivery after an attempt. It is delivered if there is no error."""
        attempts = (*self.attempts, {"at": iso_time(now), "status": status, "error": error})
        failures = self.failures + 1
        if error is None:
            return replace(self, attempts=attempts, state="delivered")
        if failures > len(DELAYS):
            return replace(self, attempts=attempts, state="failed")
        return replace(self, attempts=attempts, failures=failures, next_at=now + DELAYS[failures - 1])

    def gave_up(self, why: str) -> Delivery:
        """The delivery, if it is not sent at all."""
        attempts = (*self.attempts, {"at": iso_time(time.time()), "status": None, "error": why})
        return replace(self, attempts=attempts, state="failed")


def delivery_id(webhook: str, event: str, subject: str) -> str:
    """The id of the delivery of an occurrence to a webhook."""
    return f"msg_{hashlib.sha256(json.dumps([webhook, event, subject]).encode()).hexdigest()[:24]}"


class Deliveries:
    """The deliveries of a state home."""

    def __init__(self, directory: str) -> None:
        self._pending = os.path.join(directory, "pending")
        self._done = os.path.join(directory, "done")
        self._read: dict[str, tuple[int, Delivery]] = {}

    def add(self, delivery: Delivery) -> bool:
        """Store a delivery. False if it is there already, sent or not."""
        name = f"{delivery.id}.json"
        if os.path.exists(os.path.join(self._done, name)):
            return False
        try:
            write_new(self._pending, name, _encoded(delivery))
        except FileExistsError:
            return False
        except OSError as error:
            raise StorageFailed("haft could not store a message for a webhook", error) from error
        return True

    def pending(self) -> list[Delivery]:
        """What is not delivered yet, the oldest first. A file is read again only if it has changed."""
        found: dict[str, tuple[int, Delivery]] = {}
        for entry in _files(self._pending):
            with contextlib.suppress(OSError):
                changed_at = entry.stat(follow_symlinks=False).st_mtime_ns
                known = self._read.get(entry.name)
                delivery = known[1] if known is not None and known[0] == changed_at else _decoded(entry.path)
                if delivery is not None:
                    found[entry.name] = (changed_at, delivery)
        self._read = found
        return sorted((each for _, each in found.values()), key=lambda each: each.created_at)

    def all(self) -> list[Delivery]:
        """All deliveries, the newest first."""
        done = (_decoded(entry.path) for entry in _files(self._done))
        known = {each.id: each for each in (*(each for each in done if each is not None), *self.pending())}
        return sorted(known.values(), key=lambda each: -each.created_at)

    def keep(self, delivery: Delivery) -> None:
        """Store what became of a delivery."""
        name = f"{delivery.id}.json"
        try:
            if delivery.state == "pending":
                replace_file(self._pending, name, _encoded(delivery))
                return
            replace_file(self._done, name, _encoded(delivery))
            with contextlib.suppress(FileNotFoundError):
                os.unlink(os.path.join(self._pending, name))
            sync_directory(self._pending)
        except OSError as error:
            raise StorageFailed("haft could not store what became of a message for a webhook", error) from error
        self._prune()

    def send_again(self, name: str) -> Delivery:
        """Let a delivery be sent now, whatever became of it. Raises `UnknownDelivery` if it is not kept."""
        file = f"{name}.json"
        places = (self._pending, self._done) if _ID.fullmatch(name) else ()
        found = next((each for place in places if (each := _decoded(os.path.join(place, file)))), None)
        if found is None:
            raise UnknownDelivery(f"there is no delivery `{name}`", hint="old ones are forgotten")
        again = replace(found, state="pending", failures=0, next_at=0.0)
        try:
            replace_file(self._pending, file, _encoded(again))
            with contextlib.suppress(FileNotFoundError):
                os.unlink(os.path.join(self._done, file))
        except OSError as error:
            raise StorageFailed("haft could not store a message for a webhook", error) from error
        return again

    def _prune(self) -> None:
        """Forget the oldest deliveries that are done."""
        entries = _files(self._done)
        if len(entries) > MOST_DONE + MOST_DONE // 10:
            for entry in sorted(entries, key=lambda each: each.stat().st_mtime_ns)[: len(entries) - MOST_DONE]:
                with contextlib.suppress(OSError):
                    os.unlink(entry.path)


def _files(directory: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(directory) as entries:
            return [entry for entry in entries if _ID.fullmatch(entry.name.removesuffix(".json"))]
    except FileNotFoundError:
        return []


def _encoded(delivery: Delivery) -> bytes:
    facts = {name: getattr(delivery, name) for name in _FIELDS}
    return json.dumps({**facts, "attempts": list(delivery.attempts)}).encode()


def _decoded(path: str) -> Delivery | None:
    with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
        with open(path, "rb") as file:
            told = json.loads(file.read(_MOST_BYTES))
        return Delivery(**{**{name: told[name] for name in _FIELDS}, "attempts": tuple(told["attempts"])})
    return None
