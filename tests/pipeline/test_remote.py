"""Tools whose work is done elsewhere: nothing runs here, nothing is tracked, and the outcome says so."""

import asyncio

import pytest

from haft import ToolService
from haft.contracts import Answer, Effects, ToolName, ToolSpec


class Remote:
    def __init__(self, **claims):
        schema = {"type": "object", "properties": {}}
        self.spec = ToolSpec(
            ToolName("far_away"), "python", "Elsewhere.", schema, effects=Effects(**claims), hosting="remote"
        )

    async def preprocess(self, arguments, context):
        return arguments

    async def invoke(self, arguments, context):
        return Answer(text="answered")


async def yes(_request):
    return True


@pytest.mark.parametrize("claims", [{}, {"readonly": True}])
@pytest.mark.parametrize("engine", ["auto", "snapshot"])
def test_the_outcome_of_a_remote_tool_says_that_nothing_ran_here_and_nothing_is_tracked(tmp_path, claims, engine):
    async def scenario():
        (tmp_path / "workspace").mkdir()
        opened = ToolService.open(
            tmp_path / "workspace",
            home=tmp_path / "state",
            approver=yes,
            installed=False,
            tools=[Remote(**claims)],
            settings={"changes.engine": engine},
        )
        async with opened as service:
            outcome = await service.call("far_away", {})
            assert (outcome.status, outcome.output) == ("done", "answered"), outcome.error
            assert (outcome.changes.engine, outcome.changes.complete) == ("none", False)
            assert "elsewhere" in outcome.changes.reason
            assert (outcome.sandbox.profile, outcome.sandbox.layers) == ("none", ())
            assert "nothing of it runs here" in outcome.sandbox.reason
            granted = await service.call("far_away", {}, grants={"network": True})
            assert granted.error.code == "bad-usage"
            assert "it runs elsewhere" in granted.error.message

    asyncio.run(scenario())
