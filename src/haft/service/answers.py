"""The answers of people, as one host uses them: the inbox, remembered rules and approved definitions.

Decisions about calls read the answers on the event loop, without waiting. Everything that writes, or that may have to
wait for another process, runs in a worker thread, one piece of work at a time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from haft import policy
from haft.contracts import Call, Conflict, HostId
from haft.policy import ENVIRONMENT, Memory, Pin, Pins, Rule, pin_of
from haft.service.approval_secret import AnswerChecks
from haft.storage import Connection, Lease, Stores

if TYPE_CHECKING:
    from haft.policy import Inbox, Remembered

T = TypeVar("T")


class Answers:
    """The answers of people in one workspace."""

    def __init__(self, stores: Stores, workspace: str, lease: Lease, checks: AnswerChecks) -> None:
        self._checks = checks
        self._stores = stores
        self._leases = stores.leases()
        self._workspace = workspace
        self._reading = stores.connect()
        self._writing = stores.connect(lease)
        self._turn = asyncio.Lock()
        self._version: object = None
        self._rules: tuple[Rule, ...] = ()
        self._pins: dict[str, Pin | None] = {}

    # Methods for the approval broker.

    async def use(self, work: Callable[[Inbox], T]) -> T:
        """Run `work` with the inbox, in a worker thread."""
        return await self._written(lambda connection: work(policy.Inbox(connection)))

    def is_alive(self, host: HostId) -> bool:
        return self._leases.is_alive(host)

    def may_have_approval(self, fingerprint: str) -> bool:
        return self._reading.approvals.has_answered(fingerprint)

    async def save_approval(self, call: Call, rule: Mapping[str, Any] | None, scope: str, who: str) -> None:
        """Save that the person `who` approved this call. If the answer made a `rule` for later calls, save this rule
        too."""
        assert call.tool is not None
        assert call.decision is not None
        shown, definition = call.decision.pin, call.decision.definition
        _as_decided(call, "asked about")
        thread = call.thread if scope == "thread" else None

        environment = call.decision.environment

        def keep(connection: Connection) -> None:
            if environment is not None:
                digest, programs = environment
                Pins(connection, self._workspace).approve(ENVIRONMENT, Pin(digest, dict(programs)), who)
            if shown is not None and definition is not None:
                Pins(connection, self._workspace).approve(call.name, Pin(shown, dict(definition)), who)
            if rule is not None:
                Memory(connection, self._workspace).remember(rule, pin=shown, thread=thread, who=who)

        if rule is not None or definition is not None or environment is not None:
            await self._written(keep)

    async def pin_first_use(self, call: Call) -> None:
        """Save the definition of the called tool when a rule allows a call of the tool for the first time. From then
        on, rules allow only this definition."""
        assert call.tool is not None
        if call.tool.spec.is_vouched_for or self.pinned(call.name) is not None:
            return
        pin = _as_decided(call, "decided about")
        if pin is None:
            return
        kept = await self._written(
            lambda connection: Pins(connection, self._workspace).add_if_absent(call.name, pin, call.who)
        )
        if kept != pin.digest:
            raise _changed(call, "decided about")  # Another process ran the tool first, with another definition.

    async def forget_thread(self, thread: str) -> None:
        """Forget the rules that hold only for this thread."""
        if not any(rule.thread == thread for rule in self.remembered()):
            return

        def forget(connection: Connection) -> None:
            memory = Memory(connection, self._workspace)
            for each in memory.all():
                if each.rule.thread == thread:
                    memory.forget(each.number)

        await self._written(forget)

    # Methods for the policy engine.

    def remembered(self) -> Sequence[Rule]:
        """The rules that people's answers made. They are read from disk again after any process has changed the
        database."""
        if self._version is None and not self._stores.exists():
            return ()  # A new state home: others create the database when they write.
        version = self._reading.version()
        if version != self._version:
            self._pins.clear()
            kept = Memory(self._reading, self._workspace).all()
            self._rules = tuple(each.rule for each in kept if self._counts(each))
            self._version = version
        return self._rules

    def _counts(self, kept: Remembered) -> bool:
        """Whether a remembered rule counts: if an approval passphrase is set, only with its proof."""
        rule = kept.rule
        return self._checks.allows_rule(self._workspace, kept.told, rule.pin, rule.thread, kept.proof)

    def pinned(self, tool: str) -> Pin | None:
        """The approved definition of a tool. `remembered` comes first: it finds out whether the database has
        changed."""
        if tool not in self._pins:
            self._pins[tool] = Pins(self._reading, self._workspace).of(tool)
        return self._pins[tool]

    async def _written(self, work: Callable[[Connection], T]) -> T:
        async with self._turn:
            return await asyncio.shield(asyncio.to_thread(work, self._writing))

    def close(self) -> None:
        self._reading.close()
        self._writing.close()


def _as_decided(call: Call, when: str) -> Pin | None:
    """The current definition of the called tool, with its digest; None for a built-in tool. Raises `Conflict` if the
    definition changed after the decision about the call."""
    assert call.tool is not None
    assert call.decision is not None
    now = pin_of(call.tool.spec)
    if (None if now is None else now.digest) != call.decision.pin:
        raise _changed(call, when)
    return now


def _changed(call: Call, when: str) -> Conflict:
    return Conflict(
        f"`{call.name}` was not run: it changed while it was being {when}", hint="check the tool, and call again"
    )
