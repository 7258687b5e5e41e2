"""The remembered rules of a workspace, which people's answers made: lists and forgets them, without a host."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from haft.policy import Memory, Rule
from haft.service.state_reader import has_state
from haft.storage import StateHome, open_stores


def remembered_rules(home: StateHome, workspace: str) -> list[Rule]:
    """The remembered rules, the latest first."""
    with _memory(home, workspace) as memory:
        return [] if memory is None else [each.rule for each in memory.all()]


def forget_rule(home: StateHome, workspace: str, number: int) -> bool:
    """Forget a remembered rule. Returns False if there is no rule with this number."""
    with _memory(home, workspace) as memory:
        return memory is not None and memory.forget(number)


@contextlib.contextmanager
def _memory(home: StateHome, workspace: str) -> Iterator[Memory | None]:
    """A context manager that yields the remembered rules; None if no host ever used this state home. Does not create
    the state home."""
    if not has_state(home):
        yield None
        return
    with contextlib.closing(open_stores(home).connect()) as connection:
        yield Memory(connection, os.path.realpath(workspace))
