"""A directory that turns into a link outward while it is searched shows nothing of the outside."""

import asyncio
import os
import threading

from haft import ToolService


def test_a_search_of_a_directory_that_becomes_a_link_never_shows_what_lies_outside(tmp_path):
    workspace, outside = tmp_path / "workspace", tmp_path / "outside"
    (workspace / "real").mkdir(parents=True)
    (workspace / "real" / "a.txt").write_text("inside\n")
    outside.mkdir()
    (outside / "a.txt").write_text("SECRET\n")
    link, spare = workspace / "link", workspace / "spare"
    os.symlink(outside, link)
    stop = threading.Event()

    def flip():
        while not stop.is_set():
            os.rename(workspace / "real", spare)
            os.rename(link, workspace / "real")
            os.rename(workspace / "real", link)
            os.rename(spare, workspace / "real")

    async def main():
        async with ToolService.open(workspace, home=tmp_path / "home") as service:
            for _ in range(60):
                outcome = await service.call("search", {"pattern": "SECRET|inside", "path": "real"})
                assert "SECRET\n" not in outcome.output
                single = await service.call("search", {"pattern": "SECRET|inside", "path": "real/a.txt"})
                assert "SECRET\n" not in single.output

    thread = threading.Thread(target=flip)
    thread.start()
    try:
        asyncio.run(main())
    finally:
        stop.set()
        thread.join()


def test_paths_in_matches_lead_from_the_workspace_whatever_was_searched(tmp_path):
    workspace = tmp_path / "workspace"
    (workspace / "sub" / "deep").mkdir(parents=True)
    (workspace / "sub" / "deep" / "odd [name]*.txt").write_text("needle\n")

    async def main():
        async with ToolService.open(workspace, home=tmp_path / "home") as service:
            for path in (".", "sub", "sub/deep", "sub/deep/odd [name]*.txt"):
                outcome = await service.call("search", {"pattern": "needle", "path": path})
                assert outcome.output == "sub/deep/odd [name]*.txt:1:needle\n", path
            found = await service.call("find_files", {"pattern": "*.txt", "path": "sub"})
            assert found.result["files"] == ["sub/deep/odd [name]*.txt"]

    asyncio.run(main())
