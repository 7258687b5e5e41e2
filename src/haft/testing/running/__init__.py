"""Runs scenarios: one, many in worker processes, or again whenever their files change."""

from typing import TYPE_CHECKING

from haft.lazy import face

if TYPE_CHECKING:
    from haft.testing.running.checking import check_scenario
    from haft.testing.running.one import run_scenario
    from haft.testing.running.suite import run_scenarios
    from haft.testing.running.watching import Watch
else:
    __getattr__ = face(
        __name__,
        {
            "checking": "check_scenario",
            "one": "run_scenario",
            "suite": "run_scenarios",
            "watching": "Watch",
        },
    )

__all__ = [
    "Watch",
    "check_scenario",
    "run_scenario",
    "run_scenarios",
]
