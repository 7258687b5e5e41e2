"""A call that is cancelled while its layer is made: its tool never starts."""

import asyncio
import sys
import threading
from pathlib import Path

import pytest

from haft import ToolService
from haft.changes import engines

sys.path.insert(0, str(Path(__file__).parent))
from layered_calls import Caller, shell

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has overlays")


@pytest.fixture
def making(monkeypatch):
    """Set when a layer is being made; it is made when `goes_on` is set."""
    began, goes_on, make = threading.Event(), threading.Event(), engines.OverlayTransaction

    def slowly(*given, **named):
        if len(given) == 3 and given[2] is not None:  # Only the layer of the nested call.
            began.set()
            assert goes_on.wait(60)
        return make(*given, **named)

    monkeypatch.setattr(engines, "OverlayTransaction", slowly)
    return began, goes_on


def test_a_cancelled_call_does_not_start_its_tool(outside_tmp, making):
    began, goes_on = making

    async def main(service):
        task = service.call("caller", {"calls": [shell("echo it ran | tee made")], "layer": True})
        await asyncio.to_thread(began.wait, 60)
        (nested,) = task.children.values()
        task.cancel()
        await asyncio.sleep(0)
        goes_on.set()
        assert (await task).status == "cancelled"
        outcome = await nested
        assert (outcome.status, outcome.output) == ("cancelled", "")

    run(outside_tmp, main)


def run(base, main):
    async def opened():
        caller = Caller()
        (base / "workspace").mkdir()
        where = {"home": base / "home", "tools": [caller], "installed": False}
        async with ToolService.open(base / "workspace", **where) as service:
            caller.service = service
            await main(service)

    asyncio.run(opened())
