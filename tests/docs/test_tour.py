"""Whether `make tour` runs to its end. The tests of the package run it from the unpacked source archive each time."""

import subprocess
import sys
from pathlib import Path

import pytest

from sampling import IS_WHOLE

TOUR = Path(__file__).resolve().parents[2] / "scripts" / "tour.py"


@pytest.mark.skipif(not IS_WHOLE, reason="the tests of the package run the tour, too")
def test_the_tour_runs_to_its_end():
    done = subprocess.run([sys.executable, str(TOUR)], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "That was haft" in done.stdout, done.stdout[-3000:] + done.stderr
