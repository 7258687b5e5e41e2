"""Runs many scenarios at once, in worker processes.

Each worker runs one scenario after another. If a worker dies, for example because a tool that runs in its process ends
the process, the scenarios that ran at that moment run again, each in a process of its own: so the one that ends its
process fails, and the others are not harmed.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import Connection
from multiprocessing.context import BaseContext

from haft.testing.scenarios.scenario import Mismatch, Result, Scenario
from haft.testing.stopping import run_stoppable, stop_with, stopping_pipe, worker_context

Report = Callable[[Result], None]


def default_jobs() -> int:
    """How many scenarios run at once: one for each core that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_scenarios(
    scenarios: Sequence[Scenario], *, jobs: int | None = None, report: Report | None = None
) -> list[Result]:
    """Run scenarios, and return their results in the same order. `report` gets each result when it is there."""
    jobs = min(jobs or default_jobs(), len(scenarios))
    if not jobs:
        return []
    results: dict[int, Result] = {}
    waiting = list(range(len(scenarios)))
    while waiting:
        for index, result in _in_pool(scenarios, waiting, jobs):
            results[index] = _reported(result, report)
        waiting = [each for each in waiting if each not in results]
        for index in waiting[:jobs]:  # Workers take scenarios in order: these ran when a worker died.
            found = dict(_in_pool(scenarios, [index], 1))
            results[index] = _reported(found.get(index) or _ended(scenarios[index]), report)
        waiting = waiting[jobs:]
    return [results[index] for index in range(len(scenarios))]


def _in_pool(scenarios: Sequence[Scenario], wanted: Iterable[int], jobs: int) -> Iterator[tuple[int, Result]]:
    """The results of scenarios, each as soon as it is there. Those after the death of a worker are missing."""
    context = _context()
    with contextlib.ExitStack() as around:
        pipe = around.enter_context(stopping_pipe(context))
        pool = ProcessPoolExecutor(jobs, mp_context=context, initializer=_prepare, initargs=(pipe,))
        try:
            running: dict[Future[Result], int] = {pool.submit(_run, scenarios[index]): index for index in wanted}
            for future in as_completed(running):
                try:
                    yield running[future], future.result()
                except BrokenProcessPool:
                    continue
        except BrokenProcessPool:
            return
        finally:
            around.close()  # What still runs, for example after Ctrl-C, must not be waited for.
            pool.shutdown(wait=True, cancel_futures=True)


def _context() -> BaseContext:
    """A worker is forked from a process that has loaded haft and nothing else, where the platform can do that."""
    context = worker_context()
    if context.get_start_method() == "forkserver":
        context.set_forkserver_preload(["haft.testing.running.one"])
    return context


def _prepare(pipe: Connection) -> None:
    """Load in the worker what every scenario needs, and let it end with this process."""
    import haft.testing.running.one  # noqa: F401

    stop_with(pipe)


def _run(scenario: Scenario) -> Result:
    from haft.testing.running.one import run_scenario

    try:
        return run_stoppable(run_scenario(scenario))
    except Exception as error:  # A bug in haft must not hide the results of the other scenarios.
        message = f"The scenario could not run: haft itself failed: {type(error).__name__}: {error}"
        return Result(scenario, (Mismatch("tool", scenario.tool, None, message),))


def _ended(scenario: Scenario) -> Result:
    message = "The scenario could not run: the tool ended the process in which the scenario ran"
    return Result(scenario, (Mismatch("tool", None, None, message),))


def _reported(result: Result, report: Report | None) -> Result:
    if report is not None:
        report(result)
    return result
