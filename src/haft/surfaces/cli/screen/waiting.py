"""The message that a call, or a connection of a call, waits in the inbox."""

from __future__ import annotations

from haft.contracts import Event
from haft.surfaces.cli.screen.printing import say
from haft.surfaces.text.terminal import one_line


def tell_waiting(event: Event) -> None:
    """If the event says that the call or one of its connections waits for a person, print the command that approves
    it."""
    if event.type == "status" and event.status == "blocked-on-user":
        say(f"waiting for approval: haft approve {event.facts.get('request', event.run)}")
    elif event.type == "connection" and event.facts.get("state") == "waiting":
        where = one_line(f"{event.facts['host']}:{event.facts['port']}")
        say(f"a connection to {where} waits for approval: haft approve {event.facts['request']}")
