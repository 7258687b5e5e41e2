"""Changes and stops: the tool's own preprocessing first, then the schema. Everything after sees the result of both.

What is judged, shown, recorded and run are the same arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from haft.contracts import Call, InvalidArguments, Outcome, RunId, ToolContext, own_copy, revised
from haft.pipeline.chain import Proceed
from haft.pipeline.foreign import Foreign
from haft.pipeline.run import Run
from haft.schema import validator_for, why_not_json


class Validate:
    """Are these arguments that the tool can be called with?"""

    def __init__(self, live: Mapping[RunId, Run], context: Callable[[Run], ToolContext], foreign: Foreign) -> None:
        self._live = live
        self._context = context
        self._foreign = foreign

    async def __call__(self, call: Call, proceed: Proceed) -> Outcome:
        return await proceed(await self.judge(call))

    async def judge(self, call: Call) -> Call:
        """The call with arguments as they shall run; `InvalidArguments` where they cannot."""
        tool = call.tool
        assert tool is not None
        run = self._live[call.run]
        if tool.spec.preprocesses:
            given = await self._foreign.held(tool.preprocess(own_copy(call.arguments), self._context(run)))
            call = revised(call, arguments=own_copy(given))
            run.call = call
        arguments = call.arguments
        validator = validator_for(tool.spec.input_schema)
        if not validator.is_valid(arguments):
            raise InvalidArguments(call.name, validator.problems(arguments))
        if (problem := why_not_json(arguments)) is not None:
            raise InvalidArguments(call.name, [problem], hint="name the file or the text in another way")
        return call
