"""Held changes that are merged with what others have changed in the same files meanwhile."""

import asyncio
import os
import shutil
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from haft import ToolService
from haft.contracts import Conflict, ToolFailed

sys.path.insert(0, str(Path(__file__).parent))
from fingerprint import difference, fingerprint
from layered_calls import Caller, edit, shell

pytestmark = [
    pytest.mark.every_user,
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux has overlays"),
    pytest.mark.skipif(shutil.which("git") is None, reason="git is not on this machine"),
]

LINES = "".join(f"line {number}\n" for number in range(9))


@pytest.fixture
def base(outside_tmp):
    outside_tmp.chmod(0o755)
    workspace = outside_tmp / "workspace"
    workspace.mkdir()
    for name in ("text", "other", "run.sh"):
        (workspace / name).write_text(LINES)
    (workspace / "data").write_bytes(b"\0" + LINES.encode())
    return outside_tmp


@asynccontextmanager
async def opened(base):
    caller = Caller()
    async with ToolService.open(base / "workspace", home=base / "home", tools=[caller], installed=False) as service:
        caller.service = service
        yield service


def change(path, number, new):
    return edit(path, f"line {number}\n", f"{new}\n")


async def held(service, *calls):
    outcome = await service.call("caller", {"calls": calls, "layer": True})
    assert (outcome.error, outcome.changes.state) == (None, "held")
    return outcome.run_id


def text(base, name="text"):
    return (base / "workspace" / name).read_text()


def test_two_tasks_that_changed_the_same_file_are_merged_and_each_can_be_undone(base):
    workspace = base / "workspace"

    async def main():
        start = fingerprint(workspace)
        async with opened(base) as service:
            one = await held(service, change("text", 1, "one"), shell("echo 1 > of-one"))
            two = await held(service, change("text", 7, "two"), shell("echo 2 > of-two; chmod 755 run.sh"))
            assert (await service.changes.apply(one)).error is None
            after_one = fingerprint(workspace)
            refused = await service.changes.apply(two)
            assert refused.error.code == "conflict"
            assert [(each.path, each.by) for each in refused.changes.conflicts] == [("text", one)]
            assert not difference(after_one, fingerprint(workspace))
            assert "+two\n" in await service.changes.diff(two)
            merge = await service.changes.merge(two)
            assert not merge.unmerged
            patch = "".join(each.text for each in merge.differences if each.text)
            assert "+two\n" in patch and "one\n" not in patch
            assert not difference(after_one, fingerprint(workspace))  # It was only shown.
            applied = await service.changes.apply_merge(merge)
            assert applied.error is None
            assert text(base) == LINES.replace("line 1\n", "one\n").replace("line 7\n", "two\n")
            assert os.access(workspace / "run.sh", os.X_OK) and (workspace / "of-two").exists()
            merged = fingerprint(workspace)
            assert (await service.undo(two)).error is None
            assert not difference(after_one, fingerprint(workspace))
            assert (await service.redo(two)).error is None
            assert not difference(merged, fingerprint(workspace))
            assert (await service.undo(two)).error is None
            assert (await service.undo(one)).error is None
            assert not difference(start, fingerprint(workspace))

    asyncio.run(main())


def test_while_a_file_is_in_conflict_nothing_is_applied_and_markers_are_shown(base):
    async def main():
        async with opened(base) as service:
            one = await held(service, change("text", 1, "one"), change("other", 1, "one"))
            two = await held(service, change("text", 1, "two"), change("other", 7, "two"))
            assert (await service.changes.apply(one)).error is None
            merge = await service.changes.merge(two)
            assert [*merge.unmerged] == ["text"]
            patch = "".join(each.text for each in merge.differences if each.text)
            assert "+<<<<<<< workspace" in patch and f"+>>>>>>> {two}" in patch and "+line 1\n" in patch
            with pytest.raises(Conflict, match="`text` is still in conflict"):
                await service.changes.apply_merge(merge)
            assert text(base, "other") == LINES.replace("line 1\n", "one\n")
            # A person resolves it in the workspace: what the run changed there, the workspace has too.
            (base / "workspace" / "text").write_text(LINES.replace("line 1\n", "two\n"))
            merge = await service.changes.merge(two)
            assert not merge.unmerged
            assert (await service.changes.apply_merge(merge)).error is None
            assert text(base, "other") == LINES.replace("line 1\n", "one\n").replace("line 7\n", "two\n")

    asyncio.run(main())


def test_a_conflict_that_was_found_when_the_task_ended_is_merged_with_what_the_task_found(base):
    async def main():
        async with opened(base) as service:
            caller = service.catalogue.get("caller", "")
            caller.doors["x"] = asyncio.Event(), asyncio.Event()
            calls = [change("text", 7, "task"), ["wait", {"for": "x"}]]
            task = service.call("caller", {"calls": calls, "layer": True})
            await caller.doors["x"][0].wait()
            other = await held(service, change("text", 1, "other"))
            assert (await service.changes.apply(other)).error is None
            caller.doors["x"][1].set()
            outcome = await task
            assert outcome.changes.state == "held"
            assert [(each.path, each.by) for each in outcome.changes.conflicts] == [("text", other)]
            merge = await service.changes.merge(outcome.run_id)
            assert not merge.unmerged
            assert (await service.changes.apply_merge(merge)).error is None
            assert text(base) == LINES.replace("line 1\n", "other\n").replace("line 7\n", "task\n")

    asyncio.run(main())


def test_what_is_no_text_or_was_deleted_or_has_two_modes_is_named_and_not_merged(base):
    workspace = base / "workspace"

    async def main():
        async with opened(base) as service:
            line = "echo more >> data; rm other; chmod 700 run.sh; ln -s text link; echo 1 > both; echo 2 >> text"
            run = await held(service, shell(line))
            (workspace / "data").write_bytes(b"\0")
            (workspace / "other").write_text("changed\n")
            (workspace / "run.sh").chmod(0o711)
            (workspace / "link").write_text("a file\n")
            (workspace / "both").write_text("2\n")
            (workspace / "text").unlink()
            before = fingerprint(workspace)
            merge = await service.changes.merge(run)
            assert merge.unmerged == {
                "both": "both sides changed the same lines",
                "data": "it is not text, and both sides changed it",
                "link": "the run made it a link, and now it is a file",
                "other": "the run deleted it, and somebody else changed it",
                "run.sh": "both sides changed its mode",
                "text": "the run changed it, and somebody else deleted it",
            }
            with pytest.raises(Conflict):
                await service.changes.apply_merge(merge)
            assert not difference(before, fingerprint(workspace))

    asyncio.run(main())


def test_what_changes_after_the_merge_was_shown_is_not_overwritten(base):
    async def main():
        async with opened(base) as service:
            run = await held(service, change("text", 1, "task"))
            (base / "workspace" / "text").write_text(LINES.replace("line 7", "mine"))
            merge = await service.changes.merge(run)
            assert not merge.unmerged
            (base / "workspace" / "text").write_text("quite new\n")
            outcome = await service.changes.apply_merge(merge)
            assert outcome.error.code == "conflict"
            assert text(base) == "quite new\n"
            assert service._transactions.ledger.get(run).state == "held"

    asyncio.run(main())


def test_the_repository_of_the_workspace_cannot_choose_how_files_are_merged(base):
    """A merge driver of the workspace runs nothing."""
    workspace = base / "workspace"

    async def main():
        async with opened(base) as service:
            run = await held(service, change("text", 1, "task"))
            (workspace / "text").write_text(LINES.replace("line 7", "mine"))
            (workspace / ".git").mkdir()
            (workspace / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
            (workspace / ".git" / "config").write_text(f'[merge "x"]\n\tdriver = touch {base}/ran\n')
            (workspace / ".gitattributes").write_text("* merge=x\n")
            merge = await service.changes.merge(run)
            assert not merge.unmerged
            assert not (base / "ran").exists()

    asyncio.run(main())


def test_without_git_the_error_says_so(base, monkeypatch):
    (base / "bin").mkdir()
    (base / "bin" / "true").symlink_to(shutil.which("true"))
    monkeypatch.setenv("PATH", str(base / "bin"))

    async def main():
        async with opened(base) as service:
            run = await held(service, change("text", 1, "task"))
            (base / "workspace" / "text").write_text(LINES.replace("line 7", "mine"))
            with pytest.raises(ToolFailed, match="could not be merged"):
                await service.changes.merge(run)

    asyncio.run(main())
