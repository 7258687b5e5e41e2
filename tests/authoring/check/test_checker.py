"""Many at once: so many and no more, in order, and slow ones once again."""

import asyncio

import pytest

from haft.authoring.check import check_targets, checker, targets_of
from haft.authoring.check.checker import AT_ONCE, MOST_AGAIN
from haft.contracts import Exit
from haft.sources.checks import behaviour


class Launcher:
    """Answers for every program, and counts."""

    def __init__(self):
        self.started = []
        self.running = self.most = 0

    async def run(self, command, sink):
        self.started.append(command.argv[0])
        self.running += 1
        self.most = max(self.most, self.running)
        await asyncio.sleep(0)
        name = command.argv[0].rpartition("/")[2]
        about = "Run the tests of this project. Use it instead of a shell."
        sink.output("stdout", f"name: {name}\ndescription: {about}\n".encode())
        self.running -= 1
        return Exit(0)


@pytest.fixture
def targets(tmp_path, sources):
    for number in range(40):
        (tmp_path / f"t{number:02}").write_text("#!/bin/sh\n")
        (tmp_path / f"t{number:02}").chmod(0o755)
    return list(targets_of(sources, str(tmp_path)))


def test_so_many_are_asked_at_once_and_reported_in_order(sources, targets):
    launcher = Launcher()
    found = asyncio.run(check_targets(sources, targets, launcher))
    assert [report.target for (report,) in found] == [target.path for target in targets]
    assert launcher.most == AT_ONCE
    assert sorted(launcher.started) == [target.path for target in targets]


def test_slow_ones_are_asked_again_alone_the_first_few(sources, targets, monkeypatch):
    monkeypatch.setattr(behaviour, "SLOW_SECONDS", -1)
    launcher = Launcher()
    found = asyncio.run(check_targets(sources, targets, launcher))
    assert all(report.has("describe-slow") for (report,) in found)
    assert launcher.started[40:] == [target.path for target in targets[:MOST_AGAIN]]


def test_slow_once_is_not_slow(sources, targets, monkeypatch):
    class Warming(Launcher):
        async def run(self, command, sink):
            monkeypatch.setattr(behaviour, "SLOW_SECONDS", 1000 if self.started else -1)
            return await super().run(command, sink)

    launcher = Warming()
    ((report,),) = asyncio.run(check_targets(sources, targets[:1], launcher))
    assert len(launcher.started) == 2 and not report.findings


def test_those_that_hang_make_room_for_others(sources, targets, monkeypatch):
    class Hanging(Launcher):
        async def run(self, command, sink):
            self.started.append(command.argv[0])
            if len(self.started) == len(targets):
                self.all_there.set()
            await asyncio.wait_for(self.all_there.wait(), 30)
            return Exit(1)

    async def ask():
        launcher = Hanging()
        launcher.all_there = asyncio.Event()
        await check_targets(sources, targets, launcher)
        return launcher.started

    monkeypatch.setattr(checker, "_PATIENCE", 0.01)
    assert len(targets) > AT_ONCE and len(asyncio.run(ask())) == len(targets)
