"""Faults of scenarios: a call meets its deadline, a kill, a full disk, and what else goes wrong on real machines.

`run_with_fault` runs a scenario that has a `fault`. Each kind of fault is an `Injection` of `testing.calls`.
"""

from typing import TYPE_CHECKING

from haft.lazy import face

if TYPE_CHECKING:
    from haft.testing.faults.passing_time import PassingTime
    from haft.testing.faults.runs import run_with_fault, wrong_option
else:
    __getattr__ = face(__name__, {"passing_time": "PassingTime", "runs": "run_with_fault wrong_option"})

__all__ = ["PassingTime", "run_with_fault", "wrong_option"]
