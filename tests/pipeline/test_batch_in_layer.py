"""A batch that is made inside a call with a layer of its own keeps its order there."""

import asyncio
import sys
from pathlib import Path

import pytest

from haft import Context, ToolService, tool

sys.path.insert(0, str(Path(__file__).parent))
from isolated_caller import outer


@pytest.mark.skipif(sys.platform != "linux", reason="calls have layers only on Linux")
def test_a_call_that_writes_more_than_it_declares_is_in_conflict_with_its_batch(tmp_path):
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "z").write_text("old")
    found = []

    async def main():
        has_read = asyncio.Event()

        @tool(writes=["path"], reads=[])
        async def write_another(context: Context, path: str) -> str:
            """Write another file than the declared one, when it has been read."""
            await has_read.wait()
            context.workspace.replace("z", b"new")
            return path

        @tool
        async def both(context: Context) -> str:
            """Make a batch."""
            batch = service.batch(
                [
                    {"id": "w", "tool": "write_another", "args": {"path": "b"}},
                    {"id": "r", "tool": "read_file", "args": {"path": "z"}},
                ]
            )
            await batch.runs[1]
            has_read.set()
            found.extend(await batch)
            return "ended"

        tools = [outer, both, write_another]
        async with ToolService.open(workspace, home=tmp_path / "home", approver=yes, tools=tools) as service:
            return await service.call("outer")

    outcome = asyncio.run(main())
    assert outcome.output == "ended", outcome.error
    written, read = found
    assert read.output == "old"
    assert (written.status, written.error.code) == ("error", "conflict")
    assert "comes later in the batch, had used the older version" in written.error.message
    assert (workspace / "z").read_text() == "old"


async def yes(_request):
    return True
