"""A host that makes one call and says how it gets on: `writing_process.py WORKSPACE HOME COMMAND`."""

import asyncio
import sys

from haft import ToolService


async def main(workspace, home, command):
    async with ToolService.open(workspace, home=home, installed=False, approver=lambda _request: True) as service:
        run = service.call("shell", {"command": command})
        async for event in run:
            waits = event.facts.get("waitsFor") if event.type == "status" else None
            if waits or "begun" in event.text:
                print("waits" if waits else "begun", run.id, flush=True)
        print((await run).status, flush=True)


asyncio.run(main(*sys.argv[1:]))
