"""A real record, made by calls through a service."""

import asyncio
import os
import shutil

import pytest

from haft.service import ToolService
from haft.sources.python import tool


@tool(readonly=True)
async def double(n: int) -> int:
    """Twice as much."""
    return 2 * n


async def _yes(_request) -> bool:
    return True


async def _session(directory: str) -> None:
    os.mkdir(f"{directory}/workspace")
    options = {"tools": [double], "approver": _yes, "home": f"{directory}/home", "installed": False}
    async with ToolService.open(f"{directory}/workspace", **options) as service:
        await service.call("double", {"n": 1})
        await service.call("write_file", {"path": "x", "content": "ü\n"})
        await asyncio.gather(service.call("double", {"n": 2}), service.call("double", {"n": "no number"}))
        await service.call("no_such_tool")
        await service.call("shell", {"command": "echo hello"})


@pytest.fixture(scope="session")
def _made(tmp_path_factory):
    directory = tmp_path_factory.mktemp("made")
    asyncio.run(_session(str(directory)))
    return directory / "home" / "audit"


@pytest.fixture
def record(_made, tmp_path):
    """A directory with a record that is the test's own."""
    shutil.copytree(_made, tmp_path / "audit")
    return tmp_path / "audit"
