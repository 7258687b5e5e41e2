"""The requests of all hosts that wait for a person's answer, and the answers that this host gives."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

from haft.contracts import Grants, Principal, Scope
from haft.policy import Waiting
from haft.service.assembly import Host
from haft.service.facades.changes import HostChanges
from haft.service.inbox import InboxFacade, Reply, check_together, together


class HostApprovals:
    """The inbox of a state home."""

    def __init__(self, host: Host, changes: HostChanges) -> None:
        self._host = host
        self._changes = changes
        self._replies: set[asyncio.Task[Reply]] = set()

    def inbox(self, *, all: bool = False) -> list[Waiting]:  # noqa: A002  the word of the command line
        """The requests that wait for a person: those of this workspace, or with `all` of every workspace. Any process
        can answer them."""
        with contextlib.closing(InboxFacade(self._host.home)) as inbox:
            return inbox.waiting(None if all else self._host.root.root)

    async def waiting(self, *, all: bool = False) -> list[Waiting]:  # noqa: A002  the word of the command line
        """Like `inbox`, without blocking the event loop."""
        return await asyncio.to_thread(self.inbox, all=all)

    def approve(
        self,
        name: str,
        *,
        scope: Scope = "once",
        allow: int = 0,
        arguments: Mapping[str, Any] | None = None,
        grants: Grants | Mapping[str, Any] | None = None,
        message: str | None = None,
        paths: Sequence[str] = (),
        digest: str | None = None,
        who: str | Principal | None = None,
        passphrase: str | None = None,
    ) -> asyncio.Task[Reply]:
        """Approve a call that waits: see `ToolService.approve`."""
        principal = self._host.acting(who)
        principal.must_be_person("approve")
        answer: dict[str, Any] = {
            "scope": scope,
            "allow": allow,
            "arguments": arguments,
            "grants": grants,
            "message": message,
            "paths": tuple(paths),
            "digest": digest,
        }
        return self._replied(name, principal, passphrase, approved=True, **answer)

    def reject(
        self,
        name: str,
        *,
        message: str | None = None,
        digest: str | None = None,
        who: str | Principal | None = None,
        passphrase: str | None = None,
    ) -> asyncio.Task[Reply]:
        """Reject a call that waits, or with the id of a batch all its calls that wait. The model sees the message."""
        acts = self._host.acting(who)
        return self._replied(name, acts, passphrase, approved=False, message=message, digest=digest)

    def _replied(self, name: str, principal: Principal, passphrase: str | None, **answer: Any) -> asyncio.Task[Reply]:
        task = asyncio.get_running_loop().create_task(self._reply(name, principal, passphrase, **answer))
        self._replies.add(task)
        task.add_done_callback(self._replies.discard)
        return task

    async def _reply(self, name: str, principal: Principal, passphrase: str | None, **answer: Any) -> Reply:
        self._host.running()

        def give() -> Reply:
            with contextlib.closing(InboxFacade(self._host.home)) as inbox:
                signer = None if passphrase is None else inbox.secret.signer(passphrase)
                found = inbox.find_all(name)
                check_together(found, answer)
                return together([inbox.answer(each, who=principal, signer=signer, **answer) for each in found])

        reply = await asyncio.to_thread(give)
        for each in (reply, *reply.others):
            if each.settle and each.approved:
                await self._changes.apply(each.waiting.run, paths=each.paths, who=principal)
            elif each.settle:
                await self._changes.drop(each.waiting.run, who=principal)
        return reply
