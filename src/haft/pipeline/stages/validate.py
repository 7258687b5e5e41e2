"""A stage that changes a call and may stop it: it runs the tool's own preprocessing, then checks the arguments against
the tool's schema.

All later stages use the resulting arguments. So policy decides about the same arguments that are shown, recorded and
passed to the tool.
"""

from __future__ import annotations

from collections.abc import Callable

from haft.contracts import InvalidArguments, Outcome, ToolContext, own_copy
from haft.pipeline.chain import Proceed
from haft.pipeline.run import Run
from haft.pipeline.untrusted_calls import UntrustedCalls
from haft.schema import validator_for, why_not_json


class Validate:
    """Checks that the tool can be called with these arguments."""

    def __init__(self, context: Callable[[Run], ToolContext], untrusted: UntrustedCalls) -> None:
        self._context = context
        self._untrusted = untrusted

    async def __call__(self, run: Run, proceed: Proceed) -> Outcome:
        if run.tool.spec.preprocesses:
            await self.check(run)
        else:
            self._check(run)
        return await proceed(run)

    async def check(self, run: Run) -> None:
        """Preprocess and check the arguments; raises `InvalidArguments` if the tool cannot be called with them."""
        tool = run.tool
        if tool.spec.preprocesses:
            given = await self._untrusted.guard(tool.preprocess(own_copy(run.call.arguments), self._context(run)))
            run.revise(arguments=own_copy(given))
        self._check(run)

    @staticmethod
    def _check(run: Run) -> None:
        call = run.call
        arguments = call.arguments
        validator = validator_for(run.tool.spec.input_schema)
        if not validator.is_valid(arguments):
            raise InvalidArguments(call.name, validator.problems(arguments))
        if (problem := why_not_json(arguments)) is not None:
            raise InvalidArguments(call.name, [problem], hint="give a value that JSON can carry")
