"""What real agents gave their hooks, recorded in `tests/agents/recorded`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PLACE = Path(__file__).parents[2] / "agents" / "recorded"
PROJECT = "/workspaces/person/project"
NAMES = tuple(sorted(each.stem for each in PLACE.glob("*.json")))


def recorded(name: str, project: str = PROJECT) -> tuple[str, list[dict[str, Any]]]:
    """The agent of a recording, and what it wrote, with another path of the project."""
    text = (PLACE / f"{name}.json").read_text().replace(PROJECT, project)
    found = json.loads(text)
    return found["agent"], list(_events(found["agent"], found["events"]))


def _events(agent: str, events: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for event in events:
        given = event["stdin"]
        if agent == "opencode":  # The recording plugin does not say which event it is; the one of haft does.
            given = {"hook_event_name": f"tool.execute.{event['event']}", **given}
        yield given
