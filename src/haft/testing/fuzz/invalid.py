"""Makes arguments that break the schema of a tool: valid ones with one part changed."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from haft.testing.fuzz.arguments import ANY_VALUE


def broken(valid: SearchStrategy[Any]) -> SearchStrategy[Any]:
    """Arguments with one part that was removed, added or replaced. Some of them still fit the schema."""

    def made(draw: Callable[[SearchStrategy[Any]], Any]) -> Any:
        arguments = copy.deepcopy(draw(valid))
        if not isinstance(arguments, dict):  # A wrong example in the schema.
            return arguments
        places = list(_places(arguments))
        action = draw(st.sampled_from(("replace", "remove", "add"))) if places else "add"
        if action == "add":
            return {**arguments, draw(st.from_regex(r"[a-z]{1,4}", fullmatch=True)): draw(ANY_VALUE)}
        holder, key = draw(st.sampled_from(places))
        if action == "remove":
            del holder[key]
        else:
            holder[key] = draw(ANY_VALUE)
        return arguments

    return st.composite(made)()


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Each part of a value: the list or table that has it, and its index or key."""
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in list(parts):
        yield value, key
        yield from _places(inner)
