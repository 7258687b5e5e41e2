"""A program with a host of its own, which makes one call of the tool that follows a script: WORKSPACE HOME SCRIPT."""

import asyncio
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from talking import talk

from haft.contracts import Principal
from haft.service import ToolService


async def main(workspace: str, home: str, script: str) -> None:
    async with ToolService.open(workspace, home=home, tools=[talk], installed=False) as service:
        run = service.call("talk", {"steps": json.loads(script)}, who=Principal("ann"))
        while run.id not in [each.id for each in await service.runs.find(limit=10)]:
            await asyncio.sleep(0.01)
        print(run.id, flush=True)
        await run


asyncio.run(main(*sys.argv[1:]))
