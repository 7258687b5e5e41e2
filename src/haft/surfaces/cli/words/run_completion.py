"""Shell completion of run names and statuses. It must be quick and print no errors, because a shell waits for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from haft.contracts import STATUSES, HaftError
from haft.surfaces.text.home import state_home

MOST = 50


def complete_run(_ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[Any]:
    """The newest runs whose names begin with the typed text."""
    from click.shell_completion import CompletionItem

    from haft.service import Filter, open_history

    try:
        kept = open_history(state_home())
        if kept is None:
            return []
        found = kept.runs(Filter(limit=MOST))
        kept.close()
    except (HaftError, OSError):
        return []
    return [CompletionItem(run.id, help=f"{run.tool} {run.status}") for run in found if run.id.startswith(incomplete)]


def complete_status(_ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """The statuses that a run can have, for shell completion."""
    return [status for status in STATUSES if status.startswith(incomplete)]


def complete_changes(*states: str) -> Callable[[click.Context, click.Parameter, str], list[Any]]:
    """A completion function for the newest runs whose changes are in one of these states."""

    def complete(_ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[Any]:
        from click.shell_completion import CompletionItem

        from haft.service import open_changes

        try:
            kept = open_changes(state_home())
            if kept is None:
                return []
            rows = [row for state in states for row in kept.ledger.all(state=state) if row.verb == "call"]
            kept.close()
        except (HaftError, OSError):
            return []
        newest = [row for row in reversed(rows) if row.run.startswith(incomplete)][:MOST]
        return [CompletionItem(row.run, help=f"{row.files} changed, {row.state}") for row in newest]

    return complete
