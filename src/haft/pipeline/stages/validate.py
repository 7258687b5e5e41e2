"""Changes and stops: the tool's own preprocessing first, then the schema. Everything after sees the result of both.

What is judged, shown, recorded and run are the same arguments.
"""

from __future__ import annotations

from collections.abc import Callable

from haft.contracts import InvalidArguments, Outcome, ToolContext, own_copy
from haft.pipeline.chain import Proceed
from haft.pipeline.run import Run
from haft.pipeline.untrusted_calls import UntrustedCalls
from haft.schema import validator_for, why_not_json


class Validate:
    """Are these arguments that the tool can be called with?"""

    def __init__(self, context: Callable[[Run], ToolContext], foreign: UntrustedCalls) -> None:
        self._context = context
        self._foreign = foreign

    async def __call__(self, run: Run, proceed: Proceed) -> Outcome:
        if run.tool.spec.preprocesses:
            await self.judge(run)
        else:
            self._check(run)
        return await proceed(run)

    async def judge(self, run: Run) -> None:
        """Gives the call the arguments that shall run; `InvalidArguments` where they cannot."""
        tool = run.tool
        if tool.spec.preprocesses:
            given = await self._foreign.held(tool.preprocess(own_copy(run.call.arguments), self._context(run)))
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
            raise InvalidArguments(call.name, [problem], hint="name the file or the text in another way")
