"""Calls of an agent's own tools, which haft decides about and records, and does not run."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from haft import ToolService
from haft.changes.engines.observed import MAX_BYTES
from haft.connecting import AGENTS
from haft.contracts import Outcome
from haft.policy.rules import names
from haft.service import Observed

ALLOW = {"permissions": [{"tool": tool, "action": "allow"} for tool in ("edit_file", "claude-code:*")]}


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    made = tmp_path / "work"
    made.mkdir()
    (made / "note.txt").write_text("old\n")
    return made


def edit(workspace: Path, *files: Path) -> Observed:
    with_ = [{"path": str(file)} for file in files]
    return Observed(
        "Edit", {"file_path": str(files[0])}, "claude-code", "s", str(workspace), "edit_file", with_, [*map(str, files)]
    )


def observed(workspace: Path, call: Observed, change: Callable[[], object]) -> Outcome:
    """The outcome of a call that did this, and what is left after it was undone."""

    async def work() -> Outcome:
        async with ToolService.open(workspace, home=workspace.parent / "home", settings=ALLOW) as service:
            decided = await service.observed.begin("k", call, asks_agent=False, wait_seconds=0)
            assert decided.action == "none", decided
            change()
            outcome = await service.observed.end("k")
            assert outcome is not None
            if outcome.changes.files:
                assert (await service.undo(outcome.run_id)).ok
            return outcome

    return asyncio.run(work())


def test_a_deleted_file_comes_back(workspace: Path) -> None:
    file = workspace / "note.txt"
    outcome = observed(workspace, edit(workspace, file), file.unlink)
    assert [(each.path, each.type) for each in outcome.changes.files] == [("note.txt", "delete")]
    assert file.read_text() == "old\n"


def test_an_edit_through_a_link_is_found_and_undone(workspace: Path) -> None:
    (workspace / "link").symlink_to("note.txt")
    outcome = observed(workspace, edit(workspace, workspace / "link"), lambda: (workspace / "link").write_text("new\n"))
    assert [each.path for each in outcome.changes.files] == ["note.txt"]
    assert (workspace / "note.txt").read_text() == "old\n"


def test_a_link_that_was_replaced_by_a_file_comes_back(workspace: Path) -> None:
    link = workspace / "link"
    link.symlink_to("note.txt")

    def replace() -> None:
        link.unlink()
        link.write_text("new\n")

    observed(workspace, edit(workspace, link), replace)
    assert link.is_symlink()


def test_a_call_that_names_several_files_is_one_change_set(workspace: Path) -> None:
    files = [workspace / "note.txt", workspace / "new.txt"]
    outcome = observed(workspace, edit(workspace, *files), lambda: [file.write_text("x") for file in files])
    assert [each.path for each in outcome.changes.files] == ["new.txt", "note.txt"]
    assert not files[1].exists()


def test_a_file_that_is_written_with_the_same_content_is_no_change(workspace: Path) -> None:
    file = workspace / "note.txt"
    outcome = observed(workspace, edit(workspace, file), lambda: file.write_text("old\n"))
    assert (outcome.changes.state, outcome.changes.files, outcome.changes.complete) == ("none", (), False)


def edits(workspace: Path, work: Callable[[ToolService], Awaitable[object]]) -> None:
    async def run() -> None:
        async with ToolService.open(workspace, home=workspace.parent / "home", settings=ALLOW) as service:
            await work(service)

    asyncio.run(run())


def test_a_call_does_not_count_what_another_call_changed_meanwhile(workspace: Path) -> None:
    file = workspace / "note.txt"

    async def work(service: ToolService) -> None:
        for key in ("first", "second"):
            await service.observed.begin(key, edit(workspace, file), asks_agent=False, wait_seconds=0)
        file.write_text("old\nfirst\n")
        await service.observed.end("first")
        file.write_text("old\nfirst\nsecond\n")
        second = await service.observed.end("second")
        assert second is not None
        undone = await service.undo(second.run_id)
        assert undone.ok, undone.error
        assert file.read_text() == "old\nfirst\n"

    edits(workspace, work)


def test_a_call_that_was_never_made_does_not_count_the_edit_of_the_next_one(workspace: Path) -> None:
    file = workspace / "note.txt"

    async def work(service: ToolService) -> None:
        refused = await service.observed.begin("k", edit(workspace, file), asks_agent=False, wait_seconds=0)
        await service.observed.begin("next", edit(workspace, file), asks_agent=False, wait_seconds=0)
        file.write_text("new\n")
        await service.observed.end("next")
        service.observed.lose("k", "the agent ended")
        await service.observed.close()
        [found] = [run for run in await service.runs.find() if run.id == refused.run]
        assert (found.record["error"]["code"], found.record["changes"]["files"]) == ("unknown-end", [])

    edits(workspace, work)


def test_a_file_that_is_too_large_to_be_stored_is_not_read(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = workspace / "large.bin"
    with file.open("wb") as made:
        made.truncate(MAX_BYTES + 1)

    def read(_tree: object, path: str, *_rest: object) -> None:
        raise AssertionError(f"{path} was read")

    monkeypatch.setattr("haft.changes.engines.observed.read_entry", read)

    async def work(service: ToolService) -> None:
        decided = await service.observed.begin("k", edit(workspace, file), asks_agent=False, wait_seconds=0)
        assert decided.action == "none"
        outcome = await service.observed.end("k")
        assert outcome is not None
        assert any("could not be stored before the call" in note for note in outcome.notes)

    edits(workspace, work)


async def _begin(service: ToolService, call: Observed, **options: bool) -> str:
    decided = await service.observed.begin("k", call, asks_agent=options.get("asks", False), wait_seconds=0)
    return decided.action


def begun(workspace: Path, work: Callable[[ToolService], Awaitable[object]]) -> object:
    async def run() -> object:
        async with ToolService.open(workspace, home=workspace.parent / "home") as service:
            return await work(service)

    return asyncio.run(run())


def test_an_edit_outside_of_the_workspace_needs_approval(workspace: Path) -> None:
    call = edit(workspace, workspace.parent / "elsewhere.txt")
    assert begun(workspace, lambda service: _begin(service, call)) == "deny"
    assert begun(workspace, lambda service: _begin(service, call, asks=True)) == "ask"


def test_what_haft_has_nothing_against_is_left_to_the_agent(workspace: Path) -> None:
    call = Observed("WebFetch", {"url": "x"}, "claude-code", "s", str(workspace))
    assert begun(workspace, lambda service: _begin(service, call)) == "none"


def test_a_service_that_closes_ends_its_calls_as_unknown(workspace: Path) -> None:
    async def work(service: ToolService) -> str:
        call = Observed("WebFetch", {"url": "x"}, "claude-code", "s", str(workspace))
        decided = await service.observed.begin("k", call, asks_agent=False, wait_seconds=0)
        await service.observed.close()
        [found] = await service.runs.find()
        assert found.id == decided.run
        return str(found.record["error"]["code"])

    assert begun(workspace, work) == "unknown-end"


def test_rules_know_the_same_agents_as_connect() -> None:
    assert set(names.AGENTS) == set(AGENTS)
