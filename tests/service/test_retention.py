"""What `[retention]` removes, and what stays."""

import asyncio
import contextlib

from haft import ToolService
from haft.changes import Bounds
from haft.service import AuditLogFacade, History, Retention, StateHome, StoreFacade
from haft.storage import Filter

A_MOMENT = 1e-9
"""So many days."""


def made(tmp_path, workspace="workspace"):
    """The runs of a new workspace: one that read, one that can be undone, and one that is held."""
    (tmp_path / workspace).mkdir()

    async def main():
        opening = ToolService.open(tmp_path / workspace, home=tmp_path / "home", approver=lambda _request: True)
        async with opening as service:
            read = await service.call("list_directory", {"path": "."})
            wrote = await service.call("write_file", {"path": "a", "content": "x"})
            said = await service.call("shell", {"command": "seq 100000"})
            assert read.ok and wrote.ok and said.ok, (read, wrote, said)
            return read.run_id, wrote.run_id, said.run_id

    return asyncio.run(main())


def pruned(tmp_path, days, workspaces=None, **options):
    home = StateHome(str(tmp_path / "home"))
    with contextlib.closing(StoreFacade(home, Bounds(10**9, 90), Retention(days, workspaces or {}))) as store:
        return store.prune(**options)


def names(tmp_path):
    with contextlib.closing(History(StateHome(str(tmp_path / "home")))) as history:
        return {run.id for run in history.runs(Filter(limit=100))}


def outputs(tmp_path):
    return {path.name.partition(".")[0] for path in (tmp_path / "home" / "outputs").glob("*/*")}


def test_old_runs_go_and_the_audit_log_says_so(tmp_path):
    read, wrote, said = made(tmp_path)
    assert pruned(tmp_path, 30).old_runs == 0
    assert pruned(tmp_path, A_MOMENT, dry_run=True).old_runs == 2
    assert names(tmp_path) == {read, wrote, said} and said in outputs(tmp_path)
    assert pruned(tmp_path, A_MOMENT).old_runs == 2
    assert names(tmp_path) == {wrote}, "what can be undone stays"
    assert said not in outputs(tmp_path)
    log = AuditLogFacade(StateHome(str(tmp_path / "home")))
    last = log.last(1)[0]
    assert (last["type"], last["removed"], last["count"], set(last["runs"])) == ("retention", "runs", 2, {read, said})
    assert log.verify().intact
    assert {read, said} <= {entry.get("run") for entry in log.entries()}, "their records stay"


def test_a_workspace_can_have_days_of_its_own(tmp_path):
    kept, short = made(tmp_path, "kept"), made(tmp_path, "short")
    own = {str(tmp_path / "short"): A_MOMENT, str(tmp_path / "kept"): 0}
    assert pruned(tmp_path, 30, own).old_runs == 2
    assert names(tmp_path) == {*kept, short[1]}
