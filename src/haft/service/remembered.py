"""The rules that answers made in a workspace, for processes that are no host: listed, and forgotten."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from haft.policy import Memory, Rule
from haft.service.reading import has_state
from haft.storage import StateHome, open_stores


def remembered_rules(home: StateHome, workspace: str) -> list[Rule]:
    """The latest first."""
    with _memory(home, workspace) as memory:
        return [] if memory is None else [each.rule for each in memory.all()]


def forget_rule(home: StateHome, workspace: str, number: int) -> bool:
    """False where there was none of that number."""
    with _memory(home, workspace) as memory:
        return memory is not None and memory.forget(number)


@contextlib.contextmanager
def _memory(home: StateHome, workspace: str) -> Iterator[Memory | None]:
    """None where no host was ever here: looking leaves no trace."""
    if not has_state(home):
        yield None
        return
    with contextlib.closing(open_stores(home).connect()) as connection:
        yield Memory(connection, os.path.realpath(workspace))
