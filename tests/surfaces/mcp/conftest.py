"""A client of the `mcp` package, connected to haft's server in one process, in either era of the protocol."""

import asyncio
import contextlib

import anyio
import pytest
from mcp import Client
from mcp.shared.memory import create_client_server_memory_streams

from haft import Principal, ToolService
from haft.surfaces.mcp.options import ServeOptions

ERAS = ("2026-07-28", "legacy")


@pytest.fixture(params=ERAS)
def era(request):
    return request.param


@contextlib.asynccontextmanager
async def _transport(served):
    from haft.surfaces.mcp.stdio import serve_stream

    async with create_client_server_memory_streams() as (client, server):
        task = asyncio.create_task(serve_stream(served, *server))
        try:
            yield client
        finally:
            await client[1].aclose()
            await server[1].aclose()
            with anyio.move_on_after(5):
                await task
            task.cancel()


def _caller(name):
    return lambda context: Principal(name, thread="T-test", kind="agent")


@pytest.fixture
def places(tmp_path):
    (tmp_path / "workspace").mkdir()
    return {"workspace": tmp_path / "workspace", "home": tmp_path / "home"}


@pytest.fixture
def served(places):
    """`async with served(mode, tools=[…], lazy=True) as (client, service)`: a client of a new service."""

    @contextlib.asynccontextmanager
    async def opened(mode, *, tools=(), service=None, caller="agent", client=None, settings=None, globs=(), **options):
        from haft.surfaces.mcp.server import HaftServer

        async with contextlib.AsyncExitStack() as stack:
            if service is None:
                opening = ToolService.open(**places, tools=tools, settings=settings)
                service = await stack.enter_async_context(opening)
            server = HaftServer(
                service, ServeOptions(str(places["workspace"]), tools=globs, **options), _caller(caller)
            )
            watching = asyncio.create_task(server.news.watch())
            stack.callback(watching.cancel)
            connection = await stack.enter_async_context(Client(_transport(server), mode=mode, **(client or {})))
            yield connection, service

    return opened
