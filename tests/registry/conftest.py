"""A tool that does nothing, for tests that only look at the table."""

import dataclasses

import pytest

from haft.contracts import Answer, ToolSpec


@dataclasses.dataclass
class PlainTool:
    spec: ToolSpec

    async def preprocess(self, arguments, context):
        return arguments

    async def invoke(self, arguments, context):
        return Answer(text=f"{self.spec.name}: {arguments}")


@pytest.fixture
def make_tool():
    def make(name, *, kind="python", description="", schema=None, origin="here", **more):
        provenance = "builtin" if kind == "builtin" else "embedded"
        schema = {"type": "object"} if schema is None else schema
        return PlainTool(ToolSpec(name, kind, description, schema, provenance=provenance, origin=origin, **more))

    return make
