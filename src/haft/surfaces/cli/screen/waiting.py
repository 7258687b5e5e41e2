"""While a call waits in the inbox: says under which name, so that someone can answer it."""

from __future__ import annotations

from haft.contracts import Event
from haft.surfaces.cli.screen.printing import say


def tell_waiting(event: Event) -> None:
    """Where a call waits for a person who is not at this terminal: how that person answers."""
    if event.type == "status" and event.status == "blocked-on-user":
        say(f"waiting for approval: haft approve {event.facts.get('request', event.run)}")
