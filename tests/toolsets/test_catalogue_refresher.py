"""A service that is open and has nothing to do: it looks at nothing, and still sees every change."""

import asyncio
import errno

import pytest

from haft import ToolService
from haft.files import watches
from haft.toolsets import catalogue_refresher
from haft.toolsets.discovery import Discovery
from haft.toolsets.skills import SkillSource
from haft.toolsets.watched_places import WatchedPlaces

TOOL = "#!/bin/sh\nprintf 'name: {name}\\ndescription: Says a word.\\n'\n"


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    """A workspace, and a clock that runs fast."""
    made = tmp_path / "workspace"
    made.mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AMP_TOOLBOX", "")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in ("LOOK_SECONDS", "SETTLE_SECONDS", "MOST_SECONDS"):
        monkeypatch.setattr(catalogue_refresher, name, 0.01)
    return made


def opened(workspace):
    return ToolService.open(workspace, home=workspace.parent / "state", installed=False)


def put(workspace, name):
    path = workspace / ".agents/tools" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{name}")
    fresh.write_text(TOOL.format(name=name))
    fresh.chmod(0o755)
    fresh.rename(path)


async def until(service, wanted):
    async with asyncio.timeout(60):
        async for found in service.watch_tools():
            if {one.spec.name for one in found if one.spec.kind == "amp-toolbox"} == wanted:
                return


def test_a_service_with_nothing_to_do_looks_at_no_tool(workspace, monkeypatch):
    rounds, looked = [], []
    missed, renew = WatchedPlaces.missed, Discovery.renew

    async def idle():
        quiet = asyncio.Event()
        loop = asyncio.get_running_loop()

        def counted(self):
            rounds.append(len(looked))
            if len(rounds) >= 20:
                loop.call_soon_threadsafe(quiet.set)
            return missed(self)

        async def noted(self, *arguments, **named):
            looked.append(named)
            return await renew(self, *arguments, **named)

        monkeypatch.setattr(WatchedPlaces, "missed", counted)
        monkeypatch.setattr(Discovery, "renew", noted)
        put(workspace, "one")
        async with opened(workspace) as service:
            async with asyncio.timeout(60):
                await quiet.wait()
            assert len(set(rounds)) == 1, "nothing was looked at from the first moment of quiet on"
            put(workspace, "two")
            await until(service, {"tb__one", "tb__two"})
            assert looked[-1]["only"] is not None, "only what changed is looked at"

    asyncio.run(idle())


def test_where_nothing_can_be_watched_changes_are_seen_all_the_same(workspace, monkeypatch):
    def none():
        raise OSError(errno.EMFILE, "no more of them")

    async def work():
        async with opened(workspace) as service:
            put(workspace, "one")
            await until(service, {"tb__one"})
            (workspace / ".agents/tools/one").unlink()
            await until(service, set())

    monkeypatch.setattr(watches, "_opened", none)
    asyncio.run(work())


def test_and_where_not_everything_can_be_watched(workspace, monkeypatch):
    monkeypatch.setattr(watches, "MAX_WATCHES", 1)

    async def work():
        async with opened(workspace) as service:
            put(workspace, "one")
            await until(service, {"tb__one"})
            put(workspace, "two")
            await until(service, {"tb__one", "tb__two"})

    asyncio.run(work())


def test_a_source_that_cannot_say_where_it_looks_keeps_nothing_from_being_seen(workspace, monkeypatch):
    places, failed = SkillSource.places, []

    def failing(self):
        if not failed:
            failed.append(True)
            raise RuntimeError("not now")
        return places(self)

    async def work():
        async with opened(workspace) as service:
            async with asyncio.timeout(60):
                while not failed:
                    await asyncio.sleep(0)
            put(workspace, "one")
            await until(service, {"tb__one"})

    monkeypatch.setattr(SkillSource, "places", failing)
    asyncio.run(work())


def test_a_service_closes_at_the_moment_in_which_something_changes(workspace, monkeypatch):
    stop = catalogue_refresher.CatalogueRefresher.stop

    async def meanwhile(self):
        self._woken.set()
        await stop(self)

    async def work():
        async with opened(workspace) as service:
            put(workspace, "one")
            await until(service, {"tb__one"})

    monkeypatch.setattr(catalogue_refresher.CatalogueRefresher, "stop", meanwhile)
    asyncio.run(asyncio.wait_for(work(), 60))
