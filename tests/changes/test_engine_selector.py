"""Which engine covers a call: an engine that an outcome names was in force for that call, whatever held before.

For every user: root and ordinary users have different overlays.
"""

import asyncio
import os
import sys
from dataclasses import replace

import pytest

from haft.contracts import Layer, StartFailed
from haft.sandbox.helper_requests import HelperRequests
from haft.service import ToolService
from haft.service.doctor import diagnose
from haft.storage import StateHome

pytestmark = [
    pytest.mark.every_user,
    pytest.mark.usefixtures("own_trial"),
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux has overlays"),
]


async def yes(_request) -> bool:
    return True


@pytest.fixture
def place(tmp_path):
    (tmp_path / "workspace").mkdir()
    (tmp_path / "workspace" / "a.txt").write_text("a\n")
    return tmp_path


def with_service(place, go, *, approver=yes, **settings):
    async def main():
        async with ToolService.open(
            place / "workspace", approver=approver, home=place / "home", installed=False, settings=settings
        ) as service:
            return await go(service)

    return asyncio.run(main())


def shell(place, command, mode="auto", approver=yes, **more):
    async def go(service):
        return await service.call("shell", {"command": command}, **more)

    return with_service(place, go, approver=approver, **{"sandbox.mode": mode})


@pytest.fixture
def worked(place):
    """A state home in which calls have worked above the workspace."""
    outcome = shell(place, "touch b.txt")
    if outcome.changes.engine != "overlay":
        pytest.skip(f"this machine has none: {outcome.changes.reason}")
    return place


def test_without_the_sandbox_a_call_is_covered_by_snapshots_even_where_layers_worked_before(worked):
    outcome = shell(worked, "rm a.txt; echo new > c.txt", "off")
    changes = outcome.changes
    assert (outcome.status, changes.engine, changes.state) == ("done", "snapshot", "committed")
    assert {each.path: each.type for each in changes.files} == {"a.txt": "delete", "c.txt": "create"}
    assert "`sandbox.mode` is `off`" in changes.reason

    async def undo(service):
        assert (await service.undo(outcome.run_id)).status == "done"

    with_service(worked, undo, **{"sandbox.mode": "off"})
    assert sorted(os.listdir(worked / "workspace")) == ["a.txt", "b.txt"]


def test_without_the_sandbox_a_trial_run_asks_first_and_says_that_it_cannot_be_tried(worked):
    asked = []

    async def no(request):
        asked.append(request.reason)
        return False

    outcome = shell(worked, "rm a.txt", "off", approver=no, trial=True)
    assert outcome.status == "rejected-by-user"
    assert "a trial run is not possible" in asked[0] and "`sandbox.mode` is `off`" in asked[0]
    assert (worked / "workspace" / "a.txt").exists()


def test_without_the_sandbox_a_git_hook_is_held_and_not_in_the_workspace(worked):
    outcome = shell(worked, "mkdir -p .git/hooks; echo x > .git/hooks/pre-commit", "off")
    assert (outcome.changes.engine, outcome.changes.state) == ("snapshot", "held")
    assert not (worked / "workspace" / ".git" / "hooks" / "pre-commit").exists()


def test_the_doctor_tells_how_calls_are_covered_without_the_sandbox(worked, monkeypatch):
    def said():
        checks = diagnose(StateHome(str(worked / "home")), str(worked / "workspace"), dict(os.environ))
        return next(check for check in checks if check.check == "change tracking")

    assert (said().state, "in a layer" in said().detail) == ("ok", True)
    monkeypatch.setenv("HAFT_SANDBOX_MODE", "off")
    assert said().state == "warn"
    assert "by snapshots" in said().detail and "`sandbox.mode` is `off`" in said().detail


def test_with_the_sandbox_again_calls_work_in_layers_again(worked):
    assert shell(worked, "true", "off").changes.engine == "snapshot"
    outcome = shell(worked, "rm a.txt")
    assert (outcome.changes.engine, outcome.changes.complete, outcome.changes.state) == ("overlay", True, "committed")


def test_the_sandbox_starts_nothing_for_a_layer_that_it_cannot_mount(place):
    async def go(service):
        from haft.contracts import Command

        class Deaf:
            def output(self, stream, data): ...
            def processes_ended(self, children): ...

        launcher = service._sandbox.launcher("workspace", layer=Layer("r_x.layer", "", (0, 0)))
        with pytest.raises(StartFailed, match="layer"):
            await launcher.run(Command(["touch", "outside"]), Deaf())

    with_service(place, go, **{"sandbox.mode": "off"})
    assert not (place / "workspace" / "outside").exists()


def test_an_outcome_says_so_where_a_command_did_not_work_in_its_layer(worked, monkeypatch):
    told = HelperRequests.in_sandbox

    def without_layer(self, confinement, command, directory, kind=None):
        return told(self, replace(confinement, layer=None), command, directory, kind)

    monkeypatch.setattr(HelperRequests, "in_sandbox", without_layer)
    changes = shell(worked, "rm a.txt").changes
    assert not (worked / "workspace" / "a.txt").exists()
    assert (changes.complete, changes.state) == (False, "none")
    assert "outside" in changes.reason
