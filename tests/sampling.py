"""Which part of what takes long runs today.

Every test runs every time, and every line of the corpora is analysed. Only jail runs and kill points are drawn, by a
seed that is the day's: what was left out today comes on another day. The seed is printed when the tests begin;
`HAFT_TEST_SEED` fixes it. `HAFT_MORE=1` leaves nothing out, and a larger number tries what uses chance so many times.
`make test` sets `HAFT_DAILY`, and of tests whose parameters are jail runs a third of these is drawn; `pytest` by itself
runs them all. `HAFT_FEWER` is set where root runs tests a second time as an ordinary user.
"""

import os
import random
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TypeVar

Item = TypeVar("Item")

# Put into the environment, so that every process of one run of the tests has the same one, past midnight too.
SEED = os.environ.setdefault("HAFT_TEST_SEED", datetime.now(UTC).date().isoformat())
IS_WHOLE = "HAFT_MORE" in os.environ
MORE = int(os.environ.get("HAFT_MORE", "1"))
"""How many times over what uses chance is tried."""
IS_DAILY = "HAFT_DAILY" in os.environ and not IS_WHOLE
"""Whether this is `make test`, which runs a third of the jail runs that are parameters of a test."""
IS_AGAIN = "HAFT_FEWER" in os.environ and not IS_WHOLE
"""Whether this is the second run, as another user."""

OFTEN = 1 / 6
"""The share of tests drawn for the second run unless they name one: each of them comes within a week or two."""
SELDOM = 1 / 12
"""Where a user differs from root in nothing that they are about, or where other tests show the difference."""


def words() -> str:
    """What is said of it when tests begin."""
    if IS_WHOLE:
        return f"haft: nothing is left out (HAFT_MORE={MORE}; HAFT_TEST_SEED={SEED})"
    return f"haft: jail runs and kill points are drawn with HAFT_TEST_SEED={SEED}; HAFT_MORE=1 leaves none out"


def chance(name: str) -> random.Random:
    """Today's chance for what is called so: the same in every process."""
    return random.Random(f"{SEED} {name}")


def some(items: Sequence[Item], most: int, name: str) -> list[Item]:
    """At most so many of them, in their order."""
    if IS_WHOLE or len(items) <= most:
        return [*items]
    return [items[number] for number in sorted(chance(name).sample(range(len(items)), most))]


def steps(stop: int, stride: int, name: str) -> range:
    """Every so many of the steps up to `stop`; which is the first is drawn."""
    return range(1 + chance(name).randrange(stride), stop + 1, stride)


def today(items: Sequence[Item], name: str) -> list[Item]:
    """The parameters of a test with jail runs outside the directories where all are drawn: a third in `make test`."""
    return some(items, -(-len(items) // 3), name) if IS_DAILY else [*items]
