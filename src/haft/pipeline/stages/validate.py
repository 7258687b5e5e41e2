"""Changes and stops: the tool's own preprocessing first, then the schema. Everything after sees the result of both.

What is judged, shown, recorded and run are the same arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from haft.contracts import Call, InvalidArguments, Outcome, RunId, ToolContext, revised
from haft.pipeline.chain import Proceed
from haft.pipeline.run import Run
from haft.schema import validator_for


class Validate:
    """Are these arguments that the tool can be called with?"""

    def __init__(self, live: Mapping[RunId, Run], context: Callable[[Run], ToolContext]) -> None:
        self._live = live
        self._context = context

    async def __call__(self, call: Call, proceed: Proceed) -> Outcome:
        return await proceed(await self.judge(call))

    async def judge(self, call: Call) -> Call:
        """The call with arguments as they shall run; `InvalidArguments` where they cannot."""
        tool = call.tool
        assert tool is not None
        run = self._live[call.run]
        arguments = await tool.preprocess(dict(call.arguments), self._context(run))
        if arguments != call.arguments:
            call = revised(call, arguments=arguments)
            run.call = call
        validator = validator_for(tool.spec.input_schema)
        if not validator.is_valid(arguments):
            raise InvalidArguments(call.name, validator.problems(arguments))
        return call
