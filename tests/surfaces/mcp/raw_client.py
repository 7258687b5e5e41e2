"""A client that writes MCP's messages itself, so that a test can send exactly what it wants, in either era."""

import asyncio
import contextlib
import itertools

import anyio
from mcp.shared.memory import create_client_server_memory_streams
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from haft import Principal, ToolService
from haft.surfaces.mcp.dialogues.dialogue import Dialogue
from haft.surfaces.mcp.options import ServeOptions
from haft.surfaces.mcp.server import HaftServer
from haft.surfaces.mcp.stdio import serve_stream

MODERN = "2026-07-28"
LEGACY = "2025-11-25"
TASKS = "io.modelcontextprotocol/tasks"


class ProtocolError(Exception):
    def __init__(self, error):
        super().__init__(error["message"])
        self.code, self.data = error["code"], error.get("data")


class RawClient:
    """`request` sends a request and returns its result. `on_request` answers requests of the server."""

    def __init__(self, read, write, era, capabilities, name):
        self._read, self._write = read, write
        self.era, self.capabilities, self.name = era, capabilities, name
        self._numbers = itertools.count(1)
        self._waiting = {}
        self.on_request = None
        self.requests = []
        self.notifications = []
        self._tasks = set()

    async def listen(self):
        async for message in self._read:
            found = message.message.model_dump(by_alias=True, mode="json", exclude_none=True)
            if "method" not in found:
                self._waiting.pop(found["id"]).set_result(found)
            elif "id" not in found:
                self.notifications.append(found)
            else:
                self.requests.append(found)
                task = asyncio.create_task(self._answer(found))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    async def _answer(self, found):
        result = self.on_request(found)
        result = await result if asyncio.iscoroutine(result) else result
        if result is not None:
            await self._send({"id": found["id"], **({"error": result} if "code" in result else {"result": result})})

    async def _send(self, message):
        whole = jsonrpc_message_adapter.validate_python({"jsonrpc": "2.0", **message}, by_name=False)
        await self._write.send(SessionMessage(whole))

    async def begin(self):
        if self.era != MODERN:
            hello = {"protocolVersion": self.era, "capabilities": self.capabilities}
            await self.request("initialize", {**hello, "clientInfo": {"name": self.name, "version": "1"}})
            await self._send({"method": "notifications/initialized"})

    def send(self, method, params, *, meta=None):
        """Send a request; return a future of its answer, and the request's id."""
        params = dict(params)
        known = {"progressToken": "p"} if meta is None else meta
        if self.era == MODERN:
            known = {
                "io.modelcontextprotocol/protocolVersion": self.era,
                "io.modelcontextprotocol/clientInfo": {"name": self.name, "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": self.capabilities,
                **known,
            }
        number = next(self._numbers)
        self._waiting[number] = future = asyncio.get_running_loop().create_future()
        task = asyncio.ensure_future(self._send({"id": number, "method": method, "params": {**params, "_meta": known}}))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return number, future

    async def request(self, method, params, *, meta=None):
        _, future = self.send(method, params, meta=meta)
        found = await asyncio.wait_for(future, 60)
        if "error" in found:
            raise ProtocolError(found["error"])
        return found["result"]

    async def call(self, name, arguments=None, *, meta=None, **more):
        return await self.request("tools/call", {"name": name, "arguments": arguments or {}, **more}, meta=meta)

    async def cancel(self, number):
        await self._send({"method": "notifications/cancelled", "params": {"requestId": number}})


class Served:
    """A server whose clients are asked. `connect` makes a client of it."""

    def __init__(self, service, dialogue, stack, options, caller, protect):
        self.service, self.dialogue = service, dialogue
        self.server = HaftServer(service, options, caller, dialogue)
        self.waiting = self.server.waiting
        self.waiting.shortest_answer = 0.0
        if protect is not None:
            protect(self.server.server, service)
        self._stack = stack

    async def connect(self, era=MODERN, capabilities=None, name="tester"):
        client, server = await self._stack.enter_async_context(create_client_server_memory_streams())
        serving = asyncio.create_task(serve_stream(self.server, *server))
        raw = RawClient(*client, era, {"elicitation": {}} if capabilities is None else capabilities, name)
        listening = asyncio.create_task(raw.listen())

        async def end():
            await client[1].aclose()
            await server[1].aclose()
            with anyio.move_on_after(5):
                await serving
            serving.cancel()
            listening.cancel()

        self._stack.push_async_callback(end)
        await raw.begin()
        return raw

    @contextlib.asynccontextmanager
    async def transport(self):
        """A transport for a client of the `mcp` package."""
        async with create_client_server_memory_streams() as (client, server):
            task = asyncio.create_task(serve_stream(self.server, *server))
            try:
                yield client
            finally:
                await client[1].aclose()
                await server[1].aclose()
                with anyio.move_on_after(5):
                    await task
                task.cancel()

    async def inbox(self, count=1):
        """The requests in the inbox, as soon as there are this many."""
        for _ in range(3000):
            found = await self.service.approvals.waiting()
            if len(found) >= count:
                return found
            await asyncio.sleep(0.01)
        raise AssertionError(f"the inbox has {len(found)} requests")


@contextlib.asynccontextmanager
async def serving(places, *, tools=(), caller="agent", settings=None, protect=None, trusted=()):
    dialogue = Dialogue(str(places["workspace"]), trusted_clients=trusted)
    async with contextlib.AsyncExitStack() as stack:
        service = await stack.enter_async_context(
            ToolService.open(
                **places,
                tools=tools,
                settings={"approval.trusted_clients": list(trusted), **(settings or {})},
                approver=dialogue,
                approves_connections=True,
                answers_questions=True,
                answerable=dialogue.answerable,
            )
        )

        def who(context):
            return Principal(caller, thread="T-test", kind="agent")

        yield Served(service, dialogue, stack, ServeOptions(str(places["workspace"])), who, protect)


def approve(key="approval", decision="approve", **more):
    return {key: {"action": "accept", "content": {"decision": decision, **more}}}
