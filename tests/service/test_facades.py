"""The facades: the same as the plain forms, and the event loop goes on while they read."""

import asyncio
import pkgutil
import threading

import pytest

from haft import HaftError, ToolService, tool


@pytest.fixture
def places(tmp_path):
    (tmp_path / "workspace").mkdir()
    return {"workspace": tmp_path / "workspace", "home": tmp_path / "home", "installed": False}


def in_a_loop(test):
    def run(places):
        asyncio.run(test(places))

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


async def written(service, path="a.txt"):
    return await service.call("write_file", {"path": path, "content": "hello"})


READS = {
    "runs": ("haft.runs.history.History.runs", lambda service, run: service.runs.find()),
    "run": ("haft.runs.history.History.find", lambda service, run: service.runs.get(run)),
    "approvals": ("haft.service.inbox.InboxFacade.waiting", lambda service, run: service.approvals.waiting()),
    "diff": ("haft.changes.kept_changes.KeptChanges.find", lambda service, run: service.changes.diff(run)),
    "plan": ("haft.service.facades.changes.preview_reversal", lambda service, run: service.changes.plan("undo", run)),
    "audit": ("haft.service.audit_log.last_entries", lambda service, run: service.audit.last(1)),
}


@pytest.mark.parametrize("read", READS)
def test_the_event_loop_turns_while_a_facade_reads(places, monkeypatch, read):
    """The read stands at a gate that only the loop opens: were the loop blocked, the gate would stay shut."""
    where, ask = READS[read]
    came, gate, opened = threading.Event(), threading.Event(), []

    async def main():
        async with ToolService.open(**places, approver=lambda _request: True) as service:
            run = (await written(service)).run_id
            module, _, name = where.rpartition(".")
            found = pkgutil.resolve_name(module)
            real = getattr(found, name)

            def slow(*arguments, **options):
                came.set()
                opened.append(gate.wait(20))
                return real(*arguments, **options)

            monkeypatch.setattr(found, name, slow)
            reading = asyncio.ensure_future(ask(service, run))
            while not came.is_set():
                await asyncio.sleep(0.001)
            gate.set()
            assert await reading is not None
            assert opened[0] is True

    asyncio.run(main())


def nothing() -> None:
    """Does nothing."""


@in_a_loop
async def test_facades_and_plain_forms_say_the_same(places):
    async with ToolService.open(**places, approver=lambda _request: True) as service:
        made = await written(service)
        assert [one.id for one in await service.runs.find(tool="write_file")] == [one.id for one in service.runs()]
        assert (await service.runs.get(made.run_id)).id == service.run(made.run_id).id
        assert await service.changes.diff(made.run_id) == service.diff(made.run_id)
        assert await service.approvals.waiting() == service.inbox() == []
        assert service.tools.add(nothing).spec.name in [one.spec.name for one in service.tools()]
        assert [entry async for entry in service.audit.entries()] == list(service.record.entries())
        assert (await service.audit.verify()).intact is service.record.verify().intact is True
        assert (await service.changes.undo(made.run_id, who="alice")).who == "alice"
        assert await service.runs.cancel(made.run_id) is False
        with pytest.raises(HaftError):
            await service.approvals.approve("a_nothing_at_all")


def test_no_entry_is_lost_where_they_are_read_some_at_a_time(places, monkeypatch):
    monkeypatch.setattr("haft.service.facades.audit._AT_ONCE", 2)

    async def main():
        async with ToolService.open(**places, approver=lambda _request: True) as service:
            await written(service)
            await written(service, "b.txt")
            found = [entry["seq"] async for entry in service.audit.entries()]
            assert found == [entry["seq"] for entry in service.record.entries()] == [1, 2, 3, 4, 5, 6]

    asyncio.run(main())


@in_a_loop
async def _shows_its_status(places):
    begun = asyncio.Event()

    @tool(readonly=True)
    async def waits() -> None:
        """Never ends."""
        begun.set()
        await asyncio.Event().wait()

    async with ToolService.open(**places, tools=[waits]) as service:
        run = service.call("waits")
        run.save()
        await begun.wait()
        assert (await service.runs.record(run.id)).status == "in-progress"
        run.cancel()


def test_a_run_that_was_saved_early_does_not_seem_to_wait_for_its_turn(places):
    _shows_its_status(places)
