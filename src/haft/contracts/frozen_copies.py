"""Makes changed copies of frozen values, fast.

`dataclasses.replace` visits every field and runs `__init__` again. That costs five times as much, and every call makes
several copies. `evolve` works only for frozen dataclasses without `__slots__`, which is why `Call`, `Confinement` and
`Outcome` have no `__slots__`.
"""

from __future__ import annotations

from typing import Any, TypeVar

T = TypeVar("T")


def evolve(value: T, **changes: Any) -> T:
    """A copy of `value` with some fields changed. Neither this function nor the type checker checks the field names."""
    copy = object.__new__(type(value))
    fields = copy.__dict__
    fields.update(value.__dict__)
    fields.update(changes)
    return copy
