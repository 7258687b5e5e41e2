"""A stage that changes and watches a call: it sets the limits and the deadline of the call, and bounds the output that
the outcome shows.

The deadline counts only from here on, so that it does not count the time in which the call waits for a person or for a
place. The shortest of these deadlines applies: the timeout of the call, a timeout among its arguments, and the deadline
of the tool. The deadline of the tool is its configured deadline (`tools.timeout`). Without such a setting, the shorter
of two deadlines counts: the deadline in the tool's definition, and a configured `max_seconds`. If nothing is set, the
default of `max_seconds` applies. A whole program (`haft run`) has only the deadline of its call, if there is one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from haft.contracts import (
    PROCESS_LIMITS,
    Clock,
    Limits,
    LimitsApplied,
    Outcome,
    RunId,
    TimedOut,
    ToolContext,
    ToolSpec,
    evolve,
    limits_within,
)
from haft.pipeline.chain import Proceed
from haft.pipeline.deadline import Clocks
from haft.pipeline.failure_outcomes import failed_outcome
from haft.pipeline.hooks import explain_failure
from haft.pipeline.output_buffer import OutputBuffer, OutputStore
from haft.pipeline.run import Run
from haft.sandbox import Sandbox
from haft.values import replace

Keep = Callable[[RunId], OutputStore]

MAX_CACHED = 100
MAX_SECONDS = 10**9
"""The longest deadline. A timeout among the arguments may be a number that is too large for a clock."""
NO_DEADLINE = "noDeadline"
"""The key in a tool's `meta` that says that only the timeout of the call is a deadline."""


class ApplyLimits:
    """Applies the limits of time and output."""

    def __init__(
        self,
        limits: Limits,
        tool_seconds: Mapping[str, float],
        keep: Keep,
        sandbox: Sandbox,
        context: Callable[[Run], ToolContext],
        *,
        cap_is_set: bool,
        clock: Clock | None = None,
    ) -> None:
        self._context = context
        self._sandbox = sandbox
        self._limits = limits
        self._tool_seconds = tool_seconds
        self._keep = keep
        self._clocks = Clocks(clock)
        self._known: dict[tuple[float, bool], LimitsApplied] = {}
        self._cap = limits.max_seconds if cap_is_set else None
        self._nothing_is_set = not tool_seconds and not cap_is_set

    async def __call__(self, run: Run, proceed: Proceed) -> Outcome:
        spec, attachment = run.tool.spec, run.call.attachment
        seconds = MAX_SECONDS if attachment is not None and attachment.is_background else self._seconds(run, spec)
        idle = self._limits.max_idle_seconds if seconds < MAX_SECONDS and NO_DEADLINE not in spec.meta else 0.0
        run.revise(limits=self._applied(run, seconds, in_process=not spec.has_processes))
        run.make_output_buffer = self._make_output_buffer
        run.set_status("in-progress", run.cache_facts)
        deadline = self._clocks.start(seconds, idle, None if run.parent is None else run.parent.deadline)
        run.deadline = deadline
        if idle:
            run.on_activity(deadline.restart_idle)
        try:
            outcome = await proceed(run)
        except asyncio.CancelledError:
            if deadline.expired_limit is None or run.cancel_requested:
                raise
            task = asyncio.current_task()
            assert task is not None
            task.uncancel()
            elapsed = seconds if deadline.expired_limit == "max_seconds" else idle
            outcome = self._timed_out(run, deadline.expired_limit, elapsed)
        else:
            elapsed = 0.0
            outcome = self._bound_output(run, outcome)
            if outcome.error is not None:
                outcome = _with_failure_line(outcome)
        finally:
            self._clocks.stop(deadline)
        if outcome.error is None or not spec.explains:
            return outcome
        return await explain_failure(run, outcome, self._context(run), elapsed, self._limits.max_output_bytes)

    def _make_output_buffer(self, run: Run) -> OutputBuffer:
        attachment = run.call.attachment
        also = None if attachment is None else attachment.output
        return OutputBuffer(self._limits.max_output_bytes, self._keep(run.id), run.call.secrets, also)

    def _applied(self, run: Run, seconds: float, *, in_process: bool) -> LimitsApplied:
        """The limits as the outcome shows them. Unless the tool runs in the host's process, they include the limits on
        processes, each with the mechanism that enforces it. Results are cached, so that most calls share one object."""
        limits = limits_within(self._limits, run.call.rights) if run.call.rights else self._limits
        known = self._known.get((seconds, in_process)) if limits is self._limits else None
        if known is None:
            applied = {"max_seconds": seconds, "max_output_bytes": limits.max_output_bytes}
            if seconds >= MAX_SECONDS:
                del applied["max_seconds"]
            elif limits.max_idle_seconds:
                applied["max_idle_seconds"] = limits.max_idle_seconds
            enforced: dict[str, str] = {}
            if not in_process:
                applied |= {name: amount for name in PROCESS_LIMITS if (amount := getattr(limits, name))}
                enforced = {name: how for name, how in self._sandbox.enforced().items() if name in applied}
            known = LimitsApplied(applied, enforced=enforced)
            if limits is self._limits and len(self._known) < MAX_CACHED:
                self._known[seconds, in_process] = known
        return known

    def _deadlines(self, run: Run) -> list[tuple[float, str]]:
        """The deadlines that apply, each with the place where it is set."""
        call, spec = run.call, run.tool.spec
        found: list[tuple[float | None, str]] = [(call.timeout, "the call's own timeout")]
        found += [(dict(each.limits).get("max_seconds"), f"the rights of {each.holder}") for each in call.rights]
        if NO_DEADLINE in spec.meta:
            return [(MAX_SECONDS if call.timeout is None else call.timeout, "`--timeout`, or the call's own timeout")]
        if "timeoutArgument" in spec.meta:
            argument = spec.meta["timeoutArgument"]
            found.append((call.arguments.get(argument), f"the argument `{argument}`"))
        configured = self._tool_seconds.get(call.name)
        if configured is not None:
            found.append((configured, f"tools.timeout.{call.name}"))
        else:
            found += [(spec.timeout, "the tool's own definition"), (self._cap, "limits.max_seconds")]
        applying = [(seconds, source) for seconds, source in found if seconds is not None]
        return applying or [(self._limits.max_seconds, f"limits.max_seconds, or tools.timeout.{call.name}")]

    def _seconds(self, run: Run, spec: ToolSpec) -> float:
        call = run.call
        if self._nothing_is_set and call.timeout is None and spec.timeout is None and not spec.meta and not call.rights:
            return self._limits.max_seconds  # This is so for most calls.
        return float(min(min(self._deadlines(run))[0], MAX_SECONDS))

    def _timed_out(self, run: Run, limit: str, seconds: float) -> Outcome:
        call = run.call
        assert call.limits is not None
        run.revise(limits=LimitsApplied(call.limits.applied, limit, call.limits.enforced))
        if limit == "max_idle_seconds":
            what, setter = f"`{call.name}` gave no sign of life for {seconds:g} s", "limits.max_idle_seconds"
        else:
            what, setter = f"`{call.name}` did not end within {seconds:g} s", min(self._deadlines(run))[1]
        return failed_outcome(run, TimedOut(what, hint=f"the deadline is set by {setter}"))

    def _bound_output(self, run: Run, outcome: Outcome) -> Outcome:
        """The outcome with bounded output. If the output was longer, all of it is stored."""
        if outcome.output:
            output = run.call.secrets.masked_text(outcome.output)
            data = output.encode("utf-8", "surrogateescape")
            if run.output_buffer is None and len(data) <= self._limits.max_output_bytes:
                return evolve(outcome, output=output, output_bytes=len(data))
            outcome = evolve(outcome, output=output)
            run.output("stdout", data)
        run.end_output()
        shown = run.output_buffer
        if shown is None:
            return outcome
        return evolve(
            outcome,
            output=shown.all.text(run.id),
            stderr=shown.stderr.text(run.id),
            truncated=shown.all.cut > 0,
            output_bytes=shown.all.total,
        )


def _with_failure_line(outcome: Outcome) -> Outcome:
    """The outcome of a failed program, with the line of its output that says why it failed."""
    error = outcome.error
    if error is None or error.code != "tool-failed" or not error.message.endswith(f" exited {outcome.exit_code}"):
        return outcome
    from haft.contracts import error_line, error_or_last_line

    # If no line of the output looks like an error, the last line of stderr is better than nothing. The last line of
    # stdout can be anything.
    line = error_line(outcome.stderr) or error_line(outcome.output) or error_or_last_line(outcome.stderr)
    return evolve(outcome, error=replace(error, message=f"{error.message}: {line}")) if line else outcome
