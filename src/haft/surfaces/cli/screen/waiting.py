"""The message that a call waits in the inbox."""

from __future__ import annotations

from haft.contracts import Event
from haft.surfaces.cli.screen.printing import say


def tell_waiting(event: Event) -> None:
    """If the event says that the call waits for a person, print the command that approves it."""
    if event.type == "status" and event.status == "blocked-on-user":
        say(f"waiting for approval: haft approve {event.facts.get('request', event.run)}")
