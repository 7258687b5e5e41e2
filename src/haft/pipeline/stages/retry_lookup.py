"""A stage that watches a call of a batch: if the tool is missing, or the arguments do not fit, an earlier call of the
batch may still change that. So the call waits for the earlier calls, and is looked up once more.

The stage lies around all stages up to `keep_order`. After that, all earlier calls that matter have ended.
"""

from __future__ import annotations

from haft.contracts import CallError, Conflict, InvalidArguments, Outcome, UnknownTool
from haft.pipeline.chain import Proceed
from haft.pipeline.run import Run


class RetryLookup:
    """Looks up a tool of a batch again when the earlier calls have ended."""

    @staticmethod
    def skips(run: Run) -> bool:
        """Whether the run is not one of a batch."""
        return run.batch is None or run not in run.batch

    async def __call__(self, run: Run, proceed: Proceed) -> Outcome:
        assert run.batch is not None
        batch, member, given = run.batch, run.batch.member(run), run.call
        if member.call.refusal is not None:
            raise member.call.refusal
        failed: CallError
        try:
            return await proceed(run)
        except (UnknownTool, InvalidArguments, Conflict) as error:
            if member.has_arrived:
                raise
            failed = error
        batch.learn_nothing(run)
        batch.stop_asking(run)
        await batch.wait_for_earlier(run)
        if batch.commits == member.seen:
            raise failed
        member.seen = batch.commits
        run.call = given
        return await proceed(run)
