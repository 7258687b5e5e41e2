"""Calls that keep their view until the test lets them go on: a tool in this process, and a command line."""

import asyncio
import os

from haft import Context, tool


class Held:
    """A tool in this process. Its call has a view, and pins what is published after it."""

    def __init__(self):
        self.begun = asyncio.Event()
        self.opened = asyncio.Event()

    def tool(self, name="hold"):
        async def hold(context: Context) -> str:
            """Wait."""
            self.begun.set()
            await self.opened.wait()
            return "held"

        hold.__name__ = name
        return tool(hold, name=name)


class HeldLine:
    """A command line that says that it has begun, waits for the test, and then goes on. It waits at a fifo outside of
    the workspace."""

    def __init__(self, service, place, before, after, **options):
        self.fifo = place / f"fifo-{os.urandom(4).hex()}"
        os.mkfifo(self.fifo, 0o666)
        command = f"{before}; echo begun; read -r _ < {self.fifo}; {after}"
        self.run = service.call("shell", {"command": command}, **options)

    async def begin(self):
        async for event in self.run:
            if event.type == "stdout" and "begun" in event.text:
                return self
        raise AssertionError((await self.run).error)

    async def end(self):
        """Let it go on; its outcome."""

        def open_():
            with open(self.fifo, "w") as file:
                file.write("on\n")

        await asyncio.to_thread(open_)
        return await self.run
