"""The keys under which calls wait until the agent says that they have ended. Some agents give calls no id: such a call
is recognized by its arguments, and equal calls in their order."""

from __future__ import annotations

import hashlib
import json
from collections import deque

from haft.surfaces.hook.events import HookEvent


class CallKeys:
    """The keys of the calls of all agents."""

    def __init__(self) -> None:
        self._nameless: dict[str, deque[str]] = {}
        """The keys of calls without an id, by what they are recognized by."""
        self._count = 0

    def begun(self, agent: str, event: HookEvent) -> str:
        """The key of a call that begins."""
        if event.call:
            return "\0".join((agent, event.session, event.call))
        self._count += 1
        key = f"{agent}\0{event.session}\0#{self._count}"
        self._nameless.setdefault(_likeness(agent, event), deque()).append(key)
        return key

    def ended(self, agent: str, event: HookEvent) -> str | None:
        """The key of a call that has ended; None if no such call is known."""
        if event.call:
            return "\0".join((agent, event.session, event.call))
        waiting = self._nameless.get(_likeness(agent, event))
        if not waiting:
            return None
        key = waiting.popleft()
        if not waiting:
            del self._nameless[_likeness(agent, event)]
        return key

    def forget(self, key: str) -> None:
        """Note that a call has ended, or was denied."""
        for likeness, waiting in list(self._nameless.items()):
            if key in waiting:
                waiting.remove(key)
                if not waiting:
                    del self._nameless[likeness]


def _likeness(agent: str, event: HookEvent) -> str:
    """What a call without an id is recognized by."""
    arguments = json.dumps(dict(event.arguments), sort_keys=True)
    return hashlib.sha256("\0".join((agent, event.session, event.tool, arguments)).encode()).hexdigest()
