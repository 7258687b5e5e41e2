"""The facade: what an embedding program can do, with and without an event loop."""

import asyncio
import subprocess
import sys
import time

import pytest

import haft
from haft import Context, ToolService, tool
from haft.contracts import BadConfig, BadUsage, Grants, UnknownRun, UnknownTool
from haft.runs import run_writer
from haft.service.audit_log import AuditLogFacade


@tool(readonly=True)
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool(readonly=True)
async def wait_for_ever() -> None:
    """Never ends."""
    await asyncio.Event().wait()


@pytest.fixture
def places(tmp_path):
    (tmp_path / "workspace").mkdir()
    return {"workspace": tmp_path / "workspace", "home": tmp_path / "home"}


def test_tools_are_listed_added_watched_and_removed(places):
    async def main():
        async with ToolService.open(**places) as service:
            catalogues = service.watch_tools()
            names = [listing.spec.name for listing in await anext(catalogues)]
            assert {"read_file", "write_file", "edit_file", "list_directory", "find_files", "search", "shell"} <= set(
                names
            )
            assert service.add(add).spec.name == "add"
            assert "add" in [listing.spec.name for listing in await anext(catalogues)]
            assert (await service.call("add", {"a": 1, "b": 2})).result == 3
            service.remove("add")
            assert "add" not in [listing.spec.name for listing in await anext(catalogues)]
            assert (await service.call("add", {"a": 1, "b": 2})).error.code == "unknown-tool"
            with pytest.raises(UnknownTool):
                service.remove("add")

    asyncio.run(main())


def test_a_plain_function_can_be_handed_over_and_something_else_is_refused(places):
    def plain(text: str) -> str:
        return text

    async def main():
        async with ToolService.open(**places, tools=[plain]) as service:
            assert "plain" in [listing.spec.name for listing in service.tools()]
            with pytest.raises(BadConfig, match="not a tool"):
                service.add(42)

    asyncio.run(main())


def test_runs_are_found_by_name_and_beginning_and_by_their_facts(places):
    async def main():
        children = []

        @tool(readonly=True)
        async def looks(context: Context) -> None:
            """Look for a file."""
            children.append(await service.call("read_file", {"path": "missing"}, who="me", parent=context.run))

        async with ToolService.open(**places, tools=[looks]) as service:
            first = await service.call("looks", who="mia", thread="T-a")
            (second,) = children
            assert service.run(first.run_id).outcome == first.to_json()
            beginnings = (second.run_id[:end] for end in range(len(second.run_id) + 1))
            own = next(each for each in beginnings if not first.run_id.startswith(each))
            assert service.run(own).id == second.run_id
            assert [run.id for run in service.runs()] == [second.run_id, first.run_id]
            assert [run.id for run in service.runs(who="mia")] == [first.run_id]
            assert [run.id for run in service.runs(parent=first.run_id)] == [second.run_id]
            assert [run.id for run in service.runs(status="error", tool="read_file")] == [second.run_id]
            with pytest.raises(UnknownRun):
                service.run("r_nothing")

    asyncio.run(main())


def test_a_live_run_is_found_and_cancelled_by_name(places):
    async def main():
        async with ToolService.open(**places, tools=[wait_for_ever]) as service:
            run = service.call("wait_for_ever")
            assert service.run(run.id) is run
            assert service.cancel(run.id) is True
            assert (await run).status == "cancelled"
            assert service.cancel(run.id) is False

    asyncio.run(main())


def test_another_host_cancels_a_run_and_both_go_on(places):
    async def main():
        async with (
            ToolService.open(**places, tools=[wait_for_ever]) as one,
            ToolService.open(**places, tools=[add]) as other,
        ):
            run = one.call("wait_for_ever")
            while not other.runs():
                await asyncio.sleep(0.01)
            assert other.runs()[0].status == "in-progress"
            assert other.cancel(run.id) is True
            assert (await run).status == "cancelled"
            assert (await other.call("add", {"a": 1, "b": 1})).result == 2

    asyncio.run(main())


def test_call_before_opening_and_after_closing_is_refused_clearly(places):
    service = ToolService.open(**places)
    with pytest.raises(BadConfig, match="not open"):
        service.call("add")

    async def main():
        async with service:
            pass
        with pytest.raises(BadConfig, match="not open"):
            service.call("add")

    asyncio.run(main())


def test_a_timeout_that_is_none_is_refused(places):
    async def main():
        async with ToolService.open(**places) as service:
            for wrong in (0, -1, float("nan"), float("inf"), 10**400, "x", True):
                with pytest.raises(BadUsage, match="timeout"):
                    service.call("read_file", {"path": "x"}, timeout=wrong)

    asyncio.run(main())


@pytest.mark.parametrize(
    "call",
    [
        {"name": None},
        {"name": 3},
        {"arguments": [1]},
        {"arguments": "x"},
        {"env": "x"},
        {"env": {"A": 1}},
        {"config": [1]},
        {"who": 3},
        {"thread": ["a"]},
        {"cwd": 1},
        {"grants": "network"},
        {"grants": {"network": 1}},
        {"grants": {"network": "a.example"}},
        {"grants": {"network": ["a b"]}},
        {"grants": {"network": ["*.github.io"]}},
        {"grants": Grants(network=("a.example:0",))},
        {"grants": {"netwrk": True}},
        {"grants": {"write": "/x"}},
        {"grants": Grants(write="/x")},
        {"grants": Grants(env=(1,))},
    ],
)
def test_misuse_is_said_before_there_is_a_run_and_the_state_home_stays_usable(places, call):
    async def main():
        async with ToolService.open(**places, tools=[add]) as service:
            with pytest.raises(BadUsage):
                service.call(**{"name": "add", **call})
            assert service.runs() == []
            assert (await service.call("add", {"a": 1, "b": 1})).status == "done"
        async with ToolService.open(**places) as service:
            assert len(service.runs()) == 1

    asyncio.run(main())


def test_a_first_run_that_ends_while_the_audit_log_is_verified_is_no_loss(places, monkeypatch):
    with ToolService.open_sync(**places, tools=[add]) as service:
        look = AuditLogFacade._has_ended_runs

        def a_run_ends_first(record):
            service.call("add", {"a": 2, "b": 3}).wait()
            while not look(record):
                time.sleep(0.01)
            return True

        monkeypatch.setattr(AuditLogFacade, "_has_ended_runs", a_run_ends_first)
        assert service.record.verify().intact


def test_a_run_that_only_a_journal_has_yet_is_no_loss(places, monkeypatch):
    monkeypatch.setattr(run_writer, "GROUP_SECONDS", 3600)
    with ToolService.open_sync(**places, tools=[add]) as service:
        service.call("add", {"a": 2, "b": 3}).wait()
        assert len(service.runs()) == 1
        assert service.record.verify().intact


def test_without_an_event_loop_the_same_methods_block(places):
    with ToolService.open_sync(**places, tools=[add, wait_for_ever], approver=None) as service:
        run = service.call("add", {"a": 2, "b": 3})
        assert [event.status for event in run if event.type == "status"][-1] == "done"
        assert run.wait().result == 5
        stuck = service.call("wait_for_ever")
        with pytest.raises(TimeoutError):
            stuck.wait(timeout=0.05)
        assert stuck.cancel() is True
        assert stuck.wait().status == "cancelled"
        assert {record.tool for record in service.runs()} == {"add", "wait_for_ever"}
        assert service.record.verify().intact
        assert "add" in [listing.spec.name for listing in service.tools()]
    with pytest.raises(BadConfig, match="not open"):
        service.call("add")


def test_the_blocking_service_works_inside_a_running_loop_and_watches_tools(places):
    async def main():
        with ToolService.open_sync(**places) as service:
            catalogues = service.watch_tools()
            assert "add" not in [listing.spec.name for listing in next(catalogues)]
            service.add(add)
            assert "add" in [listing.spec.name for listing in next(catalogues)]

    asyncio.run(main())


def test_a_misspelt_filter_is_an_error_with_the_near_miss(places):
    async def main():
        async with ToolService.open(**places) as service:
            with pytest.raises(BadUsage) as caught:
                service.runs(stattus="done")
            assert "status" in caught.value.hint

    asyncio.run(main())


def test_env_and_config_reach_the_tool_and_their_secrets_do_not_reach_the_disk(places):
    from haft import Context

    @tool(readonly=True)
    async def show(context: Context) -> str:
        return f"{context.env['API_TOKEN']} {context.config['smtp']}".replace("hunter2000", "*").replace(
            "swordfish", "*"
        )

    async def main():
        async with ToolService.open(**places, tools=[show]) as service:
            outcome = await service.call("show", env={"API_TOKEN": "hunter2000"}, config={"smtp": "swordfish"})
            assert outcome.output == "* *"
        for file in places["home"].rglob("*"):
            if file.is_file():
                assert b"hunter2000" not in file.read_bytes()
                assert b"swordfish" not in file.read_bytes()

    asyncio.run(main())


def test_the_call_environment_reaches_a_shell_command(places):
    async def yes(request):
        return True

    async def main():
        async with ToolService.open(**places, approver=yes) as service:
            outcome = await service.call("shell", {"command": "echo $GREETING"}, env={"GREETING": "hello"})
            assert outcome.output == "hello\n"
            (places["workspace"] / "sub").mkdir()
            outcome = await service.call("shell", {"command": "pwd"}, cwd="sub")
            assert outcome.output.endswith("/workspace/sub\n")

    asyncio.run(main())


def test_the_state_home_is_for_its_owner_alone(places):
    async def main():
        async with ToolService.open(**places, tools=[add]) as service:
            await service.call("add", {"a": 1, "b": 1})
        assert places["home"].stat().st_mode & 0o777 == 0o700
        for file in places["home"].rglob("*"):
            if file.is_file() and not file.name.endswith(("-wal", "-shm")):
                assert file.stat().st_mode & 0o077 == 0, file

    asyncio.run(main())


def test_the_public_face_is_small_and_cheap():
    assert len(haft.__all__) <= 28
    assert all(getattr(haft, name) is not None for name in haft.__all__)
    code = "import sys, haft; print([name for name in ('asyncio', 'pydantic', 'sqlite3') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("verb", ["diff", "undo", "redo", "apply", "drop"])
def test_a_run_without_changes_is_said_to_have_none(places, verb):
    async def main():
        async with ToolService.open(**places) as service:
            looked = await service.call("list_directory", {"path": "."})
            with pytest.raises(BadUsage, match=f"there is nothing to {verb}: {looked.run_id} changed nothing"):
                getattr(service, verb)(looked.run_id)
            with pytest.raises(UnknownRun):
                getattr(service, verb)("r_none")

    asyncio.run(main())


def test_the_definitions_are_of_tools_that_can_be_called_and_long_output_has_pages(places):
    async def main():
        async with ToolService.open(**places, settings={"tools.disable": ["search"]}) as service:
            names = [each["function"]["name"] for each in service.tools_as("openai")]
            assert "shell" in names and "search" not in names
            assert [each["name"] for each in service.tools_as("mcp")] == names
            with pytest.raises(BadUsage) as wrong:
                service.tools_as("openai-response")
            assert wrong.value.hint == "did you mean `openai-responses`?"
            outcome = await service.call("shell", {"command": "seq 100000"})
            assert outcome.run_id in outcome.for_model().text
            text, at = "", 0
            while at is not None:
                page = await service.output(outcome.run_id, at)
                text, at = text + page.text, page.next
            assert text.splitlines() == [str(number) for number in range(1, 100_001)]

    asyncio.run(main())
