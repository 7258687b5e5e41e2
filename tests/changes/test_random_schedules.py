"""Random callers and batches over a few files, and an oracle: see `random_schedules`."""

import asyncio
import sys
from pathlib import Path

import pytest

from sampling import IS_AGAIN, IS_WHOLE, SEED

sys.path.insert(0, str(Path(__file__).parent))
from random_schedules import prove

pytestmark = [
    pytest.mark.every_user,
    pytest.mark.skipif(sys.platform != "linux", reason="elsewhere only the snapshot engine runs"),
]

FIRST = sum(SEED.encode()) * 1_000
SHARES = {("overlay", "snapshot"): 800, ("overlay", "serial"): 600, ("snapshot", "snapshot"): 400,
          ("snapshot", "serial"): 200}  # fmt: skip
"""How many of the 2,000 schedules each engine and each isolation gets."""


@pytest.mark.parametrize("part", range(4 if IS_WHOLE else 1))
@pytest.mark.parametrize(("engine", "isolation"), SHARES)
def test_each_call_sees_one_committed_state_and_no_update_is_lost(tmp_path, engine, isolation, part):
    count = SHARES[engine, isolation] // 4 if IS_WHOLE else SHARES[engine, isolation] // (400 if IS_AGAIN else 200)
    first = FIRST + 250 * part + 10_000 * [*SHARES].index((engine, isolation))
    asyncio.run(prove(tmp_path, range(first, first + max(count, 2)), engine=engine, isolation=isolation))
