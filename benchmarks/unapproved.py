"""Calls that ran without approval, each compared with the same program started bare in the same directory.

Their sandbox has its own root directory (decision 0022). Run alone, this module prints its table.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import tempfile

from benchmarks.measure import Row, in_turns, print_table
from haft import ToolService
from haft.builtin.ripgrep import WALKING, find_ripgrep

FILES = 50


def _prepare(workspace: str) -> None:
    """A small repository with text to find."""
    for number in range(FILES):
        with open(os.path.join(workspace, f"file-{number}"), "w") as file:
            file.write(f"needle {number}\n" * 20)
    git = ["git", "-C", workspace, "-c", "user.name=n", "-c", "user.email=n@example.com"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "first"]):
        subprocess.run([*git, *words], check=True)


async def rows() -> list[Row]:
    """`true` and `git status` in a shell, and ripgrep through the tool `search`."""
    found = []
    with tempfile.TemporaryDirectory() as workspace, tempfile.TemporaryDirectory() as home:
        _prepare(workspace)
        async with ToolService.open(workspace, home=home, installed=False) as service:
            for what, tool, arguments, bare in (
                ("shell `true`", "shell", {"command": "true"}, ["bash", "-c", "true"]),
                ("shell `git status`", "shell", {"command": "git status"}, ["bash", "-c", "git status"]),
                ("search, by rg", "search", {"pattern": "needle"}, [find_ripgrep(), *WALKING, "needle", "."]),
            ):

                async def ours(tool: str = tool, arguments: dict[str, str] = arguments) -> None:
                    outcome = await service.call(tool, arguments)
                    assert (outcome.status, outcome.sandbox.unasked) == ("done", True), outcome

                async def floor(bare: list[str] = bare) -> None:
                    subprocess.run(bare, check=True, cwd=workspace, stdin=subprocess.DEVNULL, capture_output=True)

                haft, theirs = await in_turns(ours, floor, times=10)
                found.append(Row(f"{what}, without approval", haft, "the same, bare", theirs))
    return found


if __name__ == "__main__":
    print_table(asyncio.run(rows()))
