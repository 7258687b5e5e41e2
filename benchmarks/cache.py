"""An answer that is given again, compared with the call that runs the tool: a template, and built-in tools that only
read, in a workspace of 10,000 files.

`read_file` and `list_directory` are measured as if their answers were kept. They are not, because looking for an answer
costs more than half as much as the call.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import Mapping
from typing import Any

from benchmarks.measure import Row, in_turns, print_table
from benchmarks.templates import EXAMPLE, yes
from haft import ToolService
from haft.builtin import ListDirectory, ReadFile
from haft.contracts import Effects

DIRECTORIES, FILES = 100, 100
KEPT = Effects(readonly=True, cacheable=True, idempotent=True)
MOST_CALLS = 200


class KeptReadFile(ReadFile):
    name = "kept_read_file"
    effects = KEPT


class KeptListDirectory(ListDirectory):
    name = "kept_list_directory"
    effects = KEPT


async def rows(scratch: str) -> list[Row]:
    workspace, template = os.path.join(scratch, "workspace"), os.path.join(scratch, "reader")
    for number in range(DIRECTORIES):
        os.makedirs(os.path.join(workspace, f"d{number}"))
        for name in range(FILES):
            with open(os.path.join(workspace, f"d{number}", f"f{name}.py"), "w") as file:
                file.write("def f(x):\n    return x + 1\n" * 40)
    shutil.copytree(EXAMPLE, template, ignore=shutil.ignore_patterns(".venv", ".requirements_hash.txt"))
    instance = {"name": "reader", "template": template, "readonly": True, "cacheable": True}
    found = []
    async with ToolService.open(
        workspace,
        approver=yes,
        home=os.path.join(scratch, "home"),
        tools=[KeptReadFile(), KeptListDirectory()],
        settings={"templates.instances": [instance], "permissions": [{"tool": "reader", "action": "allow"}]},
    ) as service:
        for what, name, arguments, bar in (
            ("search, 10,000 files", "search", {"pattern": "needle"}, 0.1),
            ("find_files, 10,000 files", "find_files", {"pattern": "f77.py"}, 0.5),
            ("a template, 10,000 files", "reader", {"filepath": "data/sample.json"}, 0.1),
            ("list_directory (not kept)", "kept_list_directory", {"path": "d1"}, None),
            ("read_file (not kept)", "kept_read_file", {"path": "d1/f1.py"}, None),
        ):
            found.append(await one(service, what, name, arguments, bar))
    return found


async def one(service: ToolService, what: str, name: str, arguments: Mapping[str, Any], bar: float | None) -> Row:
    async def again() -> None:
        outcome = await service.call(name, arguments)
        assert outcome.cached, outcome

    async def run() -> None:
        outcome = await service.call(name, arguments, uses_cache=False)
        assert outcome.ok, outcome
        assert not outcome.cached, outcome

    for _ in range(MOST_CALLS):
        outcome = await service.call(name, arguments)
        assert outcome.ok, outcome
        if outcome.cached:
            break
    await again()
    hit, call = await in_turns(again, run, times=5, rounds=9)
    return Row(f"{what}: answered from the cache", hit, "the call itself", call, bar)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        print_table(asyncio.run(rows(directory)))
