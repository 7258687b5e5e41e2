"""Tells the receivers of a server what happens.

Several servers can have the same state home. The one that holds the lock sends; the others wait for the lock.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from haft.audit import Redactor, secret_values
from haft.contracts import HaftError
from haft.files import HeldLock, try_lock
from haft.service.webhooks.deliveries import MOST_PENDING, Deliveries, Delivery, delivery_id
from haft.service.webhooks.occurrences import Occurrence, Occurrences
from haft.service.webhooks.sender import Sender

if TYPE_CHECKING:
    from haft.service.webhooks.settings import Webhook
    from haft.storage import StateHome

DIRECTORY: Final = "webhooks"
SECONDS_BETWEEN_LOOKS: Final = 1.0
MOST_AT_ONCE: Final = 8
"""How many messages are sent at the same time."""
_log = logging.getLogger("haft.webhooks")


def deliveries_of(home: StateHome) -> Deliveries:
    """The log of deliveries of a state home."""
    return Deliveries(os.path.join(home.path, DIRECTORY))


class Webhooks:
    """The webhooks of one server."""

    def __init__(
        self, home: StateHome, webhooks: Sequence[Webhook], workspaces: Mapping[str, str], *, url: str | None = None
    ) -> None:
        """`workspaces` are the paths of the workspaces, by name. `url` is where people reach the server: messages have
        links that begin with it."""
        self._directory = os.path.join(home.path, DIRECTORY)
        self._home = home
        self._webhooks = {each.id: each for each in webhooks}
        self._names = {place: name for name, path in workspaces.items() for place in (path, os.path.realpath(path))}
        self._url = None if url is None else url.rstrip("/")
        self._deliveries = Deliveries(self._directory)
        self._redactor = Redactor(secret_values(os.environ))
        self._sending: dict[str, asyncio.Task[None]] = {}
        self._told: set[str] = set()
        """The requests that wait and have deliveries: their files are not looked for again."""

    async def run(self) -> None:
        """Tell the receivers what happens, until this is cancelled."""
        if not self._webhooks:
            return
        lock: HeldLock | None = None
        sender = Sender()
        try:
            while lock is None:
                lock = self._locked()
                if lock is None:
                    await asyncio.sleep(SECONDS_BETWEEN_LOOKS)
            occurrences = Occurrences(self._home, self._directory, self._names)
            while True:
                try:
                    pending = await asyncio.to_thread(self._look, occurrences)
                    self._begin(sender, pending)
                except (HaftError, OSError) as error:
                    _log.warning("webhooks: %s", error)
                await asyncio.sleep(SECONDS_BETWEEN_LOOKS)
        finally:
            for task in self._sending.values():
                task.cancel()
            await asyncio.gather(*self._sending.values(), return_exceptions=True)
            await sender.close()
            if lock is not None:
                lock.release(unlink=False)

    def _locked(self) -> HeldLock | None:
        os.makedirs(self._directory, mode=0o700, exist_ok=True)
        return try_lock(os.path.join(self._directory, "lock"))

    def _look(self, occurrences: Occurrences) -> list[Delivery]:
        """Store what is to be sent, and return it."""
        happened, newest = occurrences.new()
        waiting = occurrences.waiting()
        room = MOST_PENDING - len(self._deliveries.pending())
        for each in (*(each for each in waiting if each.subject not in self._told), *happened):
            for webhook in self._webhooks.values():
                if each.event in webhook.events:
                    room -= self._add(webhook, each, has_room=room > 0)
        # Only now: if this process is killed before, the next one finds the same again, and adds nothing twice.
        occurrences.take(newest)
        self._told = {each.subject for each in waiting}
        return self._deliveries.pending()

    def _add(self, webhook: Webhook, occurrence: Occurrence, *, has_room: bool) -> bool:
        name = delivery_id(webhook.id, occurrence.event, occurrence.subject)
        made = Delivery(name, webhook.id, webhook.name, occurrence.event, self._body(webhook, occurrence), time.time())
        if has_room:
            return self._deliveries.add(made)
        self._deliveries.keep(made.gave_up("too many messages wait"))
        return False

    def _body(self, webhook: Webhook, occurrence: Occurrence) -> str:
        """The message. Arguments are in it only if the webhook wants them. The link leads to a page that needs signing
        in, and opening it changes nothing."""
        data: dict[str, Any] = {"workspace": occurrence.workspace, **occurrence.data}
        if webhook.arguments:
            data |= occurrence.quoting
        if self._url is not None:
            data["link"] = f"{self._url}/w/{occurrence.workspace}/{occurrence.place}"
        told = {"type": occurrence.event, "timestamp": occurrence.at, "data": data}
        return self._redactor(json.dumps(told).encode()).decode()

    def _begin(self, sender: Sender, pending: Sequence[Delivery]) -> None:
        """Send what is due."""
        now = time.time()
        for delivery in pending:
            if len(self._sending) >= MOST_AT_ONCE:
                return
            if delivery.id not in self._sending and delivery.next_at <= now:
                self._sending[delivery.id] = asyncio.create_task(self._send(sender, delivery))

    async def _send(self, sender: Sender, delivery: Delivery) -> None:
        webhook = self._webhooks.get(delivery.webhook)
        try:
            if webhook is None:
                after = delivery.gave_up("the configuration has this webhook no more")
            else:
                status, error = await sender.send(webhook, delivery)
                after = delivery.tried(time.time(), status, error)
            with contextlib.suppress(HaftError):  # It stays pending, and is sent again.
                await asyncio.to_thread(self._deliveries.keep, after)
        finally:
            del self._sending[delivery.id]
