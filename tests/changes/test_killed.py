"""Killed with `kill -9` at every single thing a host does to the disk while it commits, undoes, redoes, applies: the
next start leaves the tree in one of the two correct states, says which, and the list of change sets agrees.

The same with the disk full at every one of them, with the one who cleans up killed in turn, and with the power gone
before what was put in place had been written out. `mortal` is the host that dies.
"""

import asyncio
import contextlib
import json
import logging
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from haft.audit import verify
from haft.changes import transactions
from haft.changes.commit import journal
from haft.changes.store.bounds import Bounds
from haft.changes.store.store import Store
from haft.contracts import TERMINAL
from haft.runs import Filter, History
from haft.service import ToolService, open_changes, recover_dead_hosts
from haft.storage import StateHome, open_stores
from haft.storage.sqlite.audit_log import FileLog
from sampling import IS_AGAIN, IS_WHOLE, steps

sys.path.insert(0, str(Path(__file__).parent))
import nasty
from fingerprint import difference, fingerprint

pytestmark = [
    pytest.mark.every_user,
    pytest.mark.skipif(sys.platform != "linux", reason="counts what is done to the disk as Linux does it"),
]

HOST = str(Path(__file__).with_name("mortal.py"))
LONG_AGO = 1_000_000_000
MANY = 400
"""More things than any of these does; a loop that gets here does not end."""

SOME = """
set -e
echo more >> a.txt
rm d/x
mkdir -p n/m; echo q > n/m/q; echo r > n/r
ln -s a.txt new-link
rm link; ln -s elsewhere link
rm -r gone
mv d/e d/E
chmod 600 d/y
rm file; mkdir file; echo in > file/in
rm -r directory; echo was > directory
chmod 700 shut; echo again >> shut/f; echo g > shut/g; touch -d @1000000000 shut/*; chmod 000 shut
chmod 755 ro; rm ro/f; echo h > ro/h; chmod 555 ro
chmod 711 mode
mkdir none
rmdir empty
rm -r whole; mkdir whole; echo other > whole/f
find . -path ./shut -prune -o -type f -newermt @1000000001 -exec touch -h -d @1000000000 {} +
"""
MORE = """
set -e
echo even more >> a.txt
rm -r n
echo d/z > d/z
chmod 700 shut; rm shut/g; chmod 000 shut
mkdir -p k/l; echo k > k/l/k; chmod 555 k/l k
find . -path ./shut -prune -o -type f -newermt @1000000001 -exec touch -h -d @1000000000 {} +
"""
HOOK = "mkdir -p .git/hooks; echo x > .git/hooks/pre-commit; touch -d @1000000000 .git/hooks/pre-commit; " + SOME

CASES = {
    "a call above the workspace": {"do": ["shell", SOME], "engine": "overlay"},
    "a call in the workspace": {"do": ["shell", SOME], "engine": "snapshot"},
    "a written file": {"do": ["write", "w/k/f.txt", "hello\n"]},
    "a file written again": {"do": ["write", "a.txt", "hello\n"]},
    "undo": {"first": [["shell", SOME]], "do": ["undo", 0]},
    "undo from the store": {"first": [["shell", SOME]], "do": ["undo", 0], "engine": "snapshot"},
    "redo": {"first": [["shell", SOME], ["undo", 0]], "do": ["redo", 0]},
    "apply": {"first": [["shell", HOOK]], "do": ["apply", 0]},
    "apply of what was taken back": {"first": [["shell", HOOK]], "do": ["apply", 0], "engine": "snapshot"},
    "held": {"do": ["shell", HOOK]},
    "held after it was taken back": {"do": ["shell", HOOK], "engine": "snapshot"},
    "undo of several": {"first": [["shell", SOME], ["write", "w", "w\n"], ["shell", MORE]], "do": ["undo", 0, 1, 2]},
    "a call that is copied in": {"do": ["shell", SOME], "engine": "overlay", "copies": True},
    "undo that is copied in": {"first": [["shell", SOME]], "do": ["undo", 0], "copies": True},
}


CORE = ("a call above the workspace", "undo", "redo")
"""Here the steps that are tried lie closer together. With HAFT_MORE every one is, everywhere."""


NAMES = [*CASES]
if IS_AGAIN:
    # What an ordinary user's layer does otherwise, and what goes another way than a layer.
    NAMES = [*CORE, "undo of several", "a call that is copied in"]


def every(name, few):
    """How many steps to go on from one death to the next."""
    if IS_WHOLE:
        return 1
    if name in CORE and few == 9:
        return 25 if IS_AGAIN else 17
    return few * 18


@pytest.fixture(scope="module")
def forge():
    arguments = [sys.executable, HOST]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.stdin.close()


@pytest.fixture
def lives(forge, tmp_path, monkeypatch):
    """One life after the other, each with a workspace and a state home of its own."""
    monkeypatch.setattr(os, "fsync", lambda _descriptor: None)  # No power fails here but where a test says so.
    monkeypatch.setattr(journal, "sync_filesystem", lambda _descriptor: None)
    made = []

    def live(case, at=0, **more):
        made.append(Life(forge, tmp_path / str(len(made)), case, at, **more))
        return made[-1]

    yield live
    for life in made:
        life.erase()


class Life:
    """A host from its birth to its end, and what it left."""

    def __init__(self, forge, place, case, at, **more):
        place.mkdir()
        self.place = place
        self.forge = forge
        self.case = case
        self.workspace = place / "workspace"
        self.home = StateHome(str(place / "home"))
        furnish(self.workspace)
        self.at_first = fingerprint(self.workspace)
        self.said = said = self.order(**case, at=at, **more)
        self.runs = [words["run"] for words in said if "run" in words]
        self.firsts = [words["first"] for words in said if "first" in words]
        self.done = next((words["done"] for words in said if "done" in words), None)
        self.failed = next((words["failed"] for words in said if "failed" in words), None)
        self.survived = said[-1]["gone"] == 0
        assert self.failed is None, self.failed
        assert len(self.firsts) == len(case.get("first", ()))

    def order(self, **words):
        words = {"workspace": str(self.workspace), "home": self.home.path, **words}
        self.forge.stdin.write(json.dumps(words) + "\n")
        self.forge.stdin.flush()
        said = []
        while not said or "gone" not in said[-1]:
            said.append(json.loads(self.forge.stdout.readline()))
        return said

    @property
    def run(self):
        """The one it died of."""
        return self.runs[-1]

    def recover(self):
        """As the next start does. A host killed just as it started its helper has a child that holds the lock for the
        moment between fork and exec."""
        deadline = time.monotonic() + 20
        recover_dead_hosts(self.home)
        while self.is_unrecovered():
            assert time.monotonic() < deadline, "a dead host's lock is still held"
            time.sleep(0.01)
            recover_dead_hosts(self.home)

    def is_unrecovered(self):
        return os.path.isdir(self.home.hosts) and any(name.endswith(".lock") for name in os.listdir(self.home.hosts))

    def tree(self):
        return fingerprint(self.workspace)

    def states(self):
        changes = open_changes(self.home)
        try:
            return {row.run: row.state for row in changes.ledger.all()}
        finally:
            changes.close()

    def erase(self):
        if self.place.exists():
            nasty.erase(os.fsencode(self.place))

    def use(self, go):
        async def main():
            settings = {"changes.engine": self.case.get("engine", "auto")}
            async with ToolService.open(
                self.workspace, approver=yes, home=self.home.path, installed=False, settings=settings
            ) as service:
                return await go(service)

        return asyncio.run(main())


async def yes(_request):
    return True


def furnish(workspace):
    workspace.mkdir()
    for path in ("a.txt", "d/x", "d/y", "d/e/z", "gone/a/b", "gone/c", "file", "directory/f", "shut/f", "ro/f", "ro/g",
                 "mode/f", "whole/f", "whole/g"):  # fmt: skip
        (workspace / path).parent.mkdir(parents=True, exist_ok=True)
        (workspace / path).write_text(f"{path}\n")
    (workspace / "empty").mkdir()
    (workspace / "link").symlink_to("a.txt")
    for path in workspace.rglob("*"):
        os.utime(path, (LONG_AGO, LONG_AGO), follow_symlinks=False)
    (workspace / "ro").chmod(0o555)
    (workspace / "shut").chmod(0o000)


def names(home):
    """What lies in the places of change sets that are under way."""
    found = []
    for live in Path(home.changes).glob("*/live"):
        found += [str(path.relative_to(live)) for path in live.rglob("*")]
    return found


def same(one, other, *, times=True):
    return not difference(one, other, ignoring=() if times else ("mtime_ns",))


def judged(life, before, after, caplog):
    """Which of the two states the tree is in; that all else agrees with it."""
    exact = life.case["do"][0] != "write"
    now = life.tree()
    is_before, is_after = same(before, now), same(after, now, times=exact)
    assert is_before or is_after, [*difference(before, now), "and from what it should become:", *difference(after, now)]
    assert names(life.home) == []
    verdict = verify(FileLog(life.home.audit))
    assert verdict.intact, verdict.problem
    history = History(life.home)
    with contextlib.closing(history):
        assert all(run.status in TERMINAL for run in history.runs(Filter(limit=1000)))
    verb, states = life.case["do"][0], life.states()
    subject = life.runs[0] if verb == "apply" else life.run
    state = states.get(subject)
    if verb in ("undo", "redo"):
        assert state in (None, "committed")
        reversed_ = state == "committed"
        expected = "undone" if reversed_ == (verb == "undo") else "committed"
        assert [states[life.runs[number]] for number in life.case["do"][1:]] == [expected] * len(life.case["do"][1:])
    else:
        assert state in (None, "held", "committed")
    if (life.workspace / ".git" / "hooks").exists():
        assert verb == "apply" or life.case.get("engine") == "snapshot"
    if is_before != is_after:
        assert (state == "committed") == is_after or is_unkept(life, state)
    told = [record.getMessage() for record in caplog.records if record.name == "haft"]
    if told:
        assert all(subject in words for words in told)
        said = "finished" if state == "committed" else "held" if state == "held" else "reverted"
        assert all(said in words for words in told), (told, state)
    return "after" if is_after else "before"


def is_unkept(life, state):
    """A call in the workspace itself that died before its journal was written has changed it: its run says so."""
    return state is None and life.case.get("engine") == "snapshot" and life.case["do"][0] == "shell"


def goes_on(life, before, after):
    """From where the tree is, to the other state and back."""
    exact = life.case["do"][0] != "write"
    verb, states = life.case["do"][0], life.states()
    first = life.runs[: len(life.case.get("first", ()))]

    async def go(service):
        async def good(run):
            outcome = await run
            assert outcome.status == "done", outcome.error
            assert outcome.error is None

        def now(wanted):
            assert difference(wanted, life.tree(), ignoring=() if exact else ("mtime_ns",)) == []

        if verb in ("undo", "redo"):
            chosen = [first[number] for number in life.case["do"][1:]]
            back, forth = (service.redo, service.undo) if verb == "undo" else (service.undo, service.redo)
            if states.get(life.run) == "committed":
                await good(back(*chosen))
                now(before)
            await good(forth(*chosen))
            now(after)
            await good(back(*chosen))
            now(before)
            return
        run = first[0] if verb == "apply" else life.run
        if states.get(run) == "held":
            await good(service.apply(run))
            now(after)
        if states.get(run) is not None:
            await good(service.undo(run))
            now(before)
            await good(service.redo(run, force=b".git/hooks" in after))  # It is asked for once more.
            now(after)

    life.use(go)
    assert names(life.home) == []


_known = {}


def both(lives, case):
    """The tree before and after, and how many things are done on the way: the same each time."""
    key = json.dumps(case)
    if key not in _known:
        _known[key] = _both(lives, case)
    return _known[key]


def _both(lives, case):
    complete = lives(case)
    assert complete.done is not None
    assert any(step.startswith("ledger.") for step in complete.done["seen"]), "the list is not under the meter"
    after = complete.tree()
    before = complete.at_first
    if case.get("first"):
        partial = lives({**case, "do": ["shell", "true"]})
        before = partial.tree()
    if case["do"] == ["shell", HOOK]:
        after = wanted_after_apply(lives, case)
    return before, after, complete.done["ops"]


def wanted_after_apply(lives, case):
    return lives({**case, "first": [case["do"]], "do": ["apply", 0]}).tree()


@pytest.mark.parametrize("name", NAMES)
def test_killed_at_every_step_it_is_finished_or_reverted(name, lives, caplog):
    case = CASES[name]
    before, after, ops = both(lives, case)
    assert not same(before, after)
    found = []
    stride = every(name, 9)
    for at in steps(MANY, stride, f"killed: {name}"):
        caplog.clear()
        life = lives(case, at)
        if life.survived:
            break
        with caplog.at_level(logging.WARNING, "haft"):
            life.recover()
        found.append(judged(life, before, after, caplog))
        goes_on(life, before, after)
        life.erase()
    assert len(found) >= len(steps(ops - 3, stride, f"killed: {name}"))
    if case.get("engine") != "snapshot":
        assert found == sorted(found, reverse=True), "once it is finished, it stays so"
        if stride == 1:
            assert set(found) == ({"before"} if name == "held" else {"before", "after"})


@pytest.mark.parametrize("name", NAMES)
def test_who_cleans_up_may_be_killed_at_every_step_too(name, lives, caplog):
    case = CASES[name]
    before, after, ops = both(lives, case)
    for at in steps(ops, every(name, 17) * 2, f"killed before: {name}"):
        life = lives(case, at)
        for deadline in steps(MANY, every(name, 6), f"killed cleaning up: {name} {at}"):
            caplog.clear()
            said = life.order(do=["recover"], at=deadline)
            assert not any("failed" in words for words in said), said
            if said[-1]["gone"] == 0 and not life.is_unrecovered():
                break
        judged(life, before, after, caplog)
        goes_on(life, before, after)
        life.erase()


@pytest.mark.parametrize("name", ["a call above the workspace", "undo", "apply", "undo that is copied in"])
def test_who_cleans_up_may_find_the_disk_full_at_every_step(name, lives, caplog):
    case = CASES[name]
    before, after, ops = both(lives, case)
    for at in steps(MANY, every(name, 7), f"full while cleaning up: {name}"):
        caplog.clear()
        life = lives(case, ops * 2 // 3)
        said = life.order(do=["recover"], at=at, how="full-on")
        struck = next(words["done"]["struck"] for words in said if "done" in words)
        with caplog.at_level(logging.WARNING, "haft"):
            life.recover()
        judged(life, before, after, caplog)
        goes_on(life, before, after)
        life.erase()
        if not struck:
            break


@pytest.mark.parametrize("how", ["full", "full-on"])
@pytest.mark.parametrize("name", NAMES)
def test_a_full_disk_at_every_step_leaves_everything_as_it_was(name, how, lives, caplog):
    case = CASES[name]
    before, after, _ops = both(lives, case)
    for at in steps(MANY, every(name, 10 if how == "full" else 19), f"{how}: {name}"):
        caplog.clear()
        life = lives(case, at, how=how)
        assert life.survived
        if not life.done["struck"]:
            break
        now, exact = life.tree(), case["do"][0] != "write"
        if life.done["status"] == "done":
            assert difference(after, now, ignoring=() if exact else ("mtime_ns",)) == [], life.done
        elif case.get("engine") != "snapshot" or case["do"][0] != "shell":
            assert life.done["state"] != "committed", life.done
            assert difference(before, now) == [], life.done
        with caplog.at_level(logging.WARNING, "haft"):
            life.recover()
        judged(life, before, after, caplog)
        assert same(now, life.tree()), "what was said stays true"
        goes_on(life, before, after)
        life.erase()


@pytest.mark.parametrize("name", NAMES)
def test_what_an_outcome_says_of_a_disk_that_fails_at_any_step_holds_once_it_works_again(name, lives, caplog):
    case = CASES[name]
    before, after, _ops = both(lives, case)
    verb, exact = case["do"][0], case["do"][0] != "write"
    in_place = case.get("engine") == "snapshot" and verb == "shell"
    stride = every(name, 13)
    for number, at in enumerate(steps(2 * MANY, stride, f"failing: {name}")):
        caplog.clear()
        # For good, or now and then: some of what was done can then be taken back, and some cannot.
        life = lives(case, (at + 1) // 2 if stride == 1 else at, how=("failing", "faltering")[number % 2])
        assert life.survived
        if not life.done["struck"]:
            break
        life.recover()
        now, said = life.tree(), life.done
        subject = life.runs[0] if verb == "apply" else life.run
        state = life.states().get(subject)
        if said["status"] == "done" and verb != "apply":
            assert said["state"] in ("committed", "none" if name.startswith("held") else "committed"), said
        if said["state"] == "committed" or (verb == "apply" and said["status"] == "done"):
            assert difference(after, now, ignoring=() if exact else ("mtime_ns",)) == [], said
            assert state == "committed" or (in_place and not said["complete"]), (state, said)
        else:
            assert difference(before, now) == [], said
            assert state == ("held" if said["state"] == "held" or verb == "apply" else None), (state, said)
        judged(life, before, after, caplog)
        goes_on(life, before, after)
        life.erase()


def test_an_apply_that_the_disk_stopped_half_way_says_that_it_is_committed_and_not_complete(lives):
    case = CASES["apply"]
    _before, after, ops = both(lives, case)
    life = lives(case, ops // 2, how="failing")
    said = life.done
    assert (said["status"], said["state"], said["complete"]) == ("error", "committed", False)
    assert "some of its changes may not be in the workspace yet" in said["error"][1]
    life.recover()
    assert difference(after, life.tree()) == []
    assert life.states() == {life.runs[0]: "committed"}
    environment = {**os.environ, "HAFT_HOME": life.home.path}
    arguments = [sys.executable, "-m", "haft", "show", life.run]
    shown = subprocess.run(arguments, cwd=life.workspace, env=environment, capture_output=True, text=True, check=True)
    assert "changes: committed" in shown.stdout
    assert "the disk failed in the middle of the commit" in shown.stdout
    assert f"haft undo {life.run}" not in shown.stdout  # It has no change set of its own.


@pytest.mark.parametrize("how", ["kill", "failing"])
def test_what_is_dropped_stays_dropped_and_is_held_until_then(how, lives):
    case = {"first": [["shell", HOOK]], "do": ["drop", 0]}
    _before, after, _ops = both(lives, CASES["apply"])
    seen = set()
    for at in range(1, MANY):
        life = lives(case, at, how=how)
        if life.survived and not life.done["struck"]:
            break
        life.recover()
        run, place = life.runs[0], life.home.changes
        state = life.states()[run]
        seen.add(state)
        if life.survived:
            assert state == ("discarded" if life.done["status"] == "done" else "held"), life.done
        assert difference(life.at_first, life.tree()) == []
        outcome = life.use(lambda service, run=run: service.apply(run))
        assert (outcome.status == "done") == (state == "held"), outcome.error
        assert difference(after if state == "held" else life.at_first, life.tree()) == []
        with contextlib.closing(Store(place, open_stores(life.home), life.home.blobs, Bounds(10**9, 90))) as store:
            store.prune()
        assert [*Path(place).glob("*/held/*")] == []
        life.erase()
    assert seen == {"held", "discarded"}


def test_a_commit_that_a_power_failure_interrupted_is_reverted(lives, caplog):
    case = CASES["a call above the workspace"]
    before, _after, ops = both(lives, case)
    seen = set()
    for at in range(ops - 12, ops + 1):
        caplog.clear()
        life = lives(case, at, unsynced=True)
        # What was put in place, and had not been written out, comes back empty.
        path = life.workspace / "a.txt"
        put = path.read_text() != "a.txt\n"
        seen.add(put)
        if not put:
            continue
        os.truncate(path, 0)
        pretend_a_reboot(life)
        with caplog.at_level(logging.WARNING, "haft"):
            life.recover()
        assert difference(before, life.tree()) == []
        assert "reverted" in caplog.text or "held" in caplog.text
        assert life.states()[life.run] in ("held", "discarded")
        assert names(life.home) == []
        assert verify(FileLog(life.home.audit)).intact
    assert True in seen


@pytest.mark.parametrize(
    ("name", "lost"),
    [
        ("a call above the workspace", "a.txt"),
        ("a call above the workspace", "n/m/q"),
        ("undo", "a.txt"),
        ("undo from the store", "gone/a/b"),
        ("redo", "a.txt"),
    ],
)
def test_a_commit_that_was_not_on_the_disk_when_the_power_failed_is_reverted(name, lost, lives, caplog):
    case = CASES[name]
    before, after, _ops = both(lives, case)
    life = lives(case, MANY, unsynced=True)
    assert not life.survived
    assert same(after, life.tree())
    os.truncate(life.workspace / lost, 0)
    pretend_a_reboot(life)
    with caplog.at_level(logging.WARNING, "haft"):
        life.recover()
    assert difference(before, life.tree()) == []
    assert "reverted" in caplog.text
    states = life.states()
    assert states[life.run] == "discarded"
    if name != "a call above the workspace":
        assert states[life.runs[0]] == ("undone" if name == "redo" else "committed")


def test_a_sync_on_behalf_of_an_earlier_commit_does_not_count_for_one_under_way(tmp_path, monkeypatch):
    """What it puts in place after that is not on the disk, and recovery has to know."""
    (tmp_path / "workspace").mkdir()
    noted, take_steps = [], transactions.commit

    async def main():
        home = tmp_path / "home"
        async with ToolService.open(tmp_path / "workspace", approver=yes, home=home, installed=False) as service:

            def sync_meanwhile(*words):
                service._transactions._sync()
                noted.extend(home.glob("changes/*/live/*/*.unsynced"))
                return take_steps(*words)

            monkeypatch.setattr(transactions, "commit", sync_meanwhile)
            await service.call("shell", {"command": "echo x > x"})

    asyncio.run(main())
    assert len(noted) == 1
    assert not noted[0].exists()


def test_a_list_that_lost_its_last_lines_with_the_power_is_completed(lives, caplog):
    case = CASES["undo"]
    life = lives(case, MANY, unsynced=True)
    changes = open_changes(life.home)
    database = changes.ledger._connection.database
    with database.transaction():
        database.execute("DELETE FROM change_sets WHERE run = ?", [life.run])
        database.execute("UPDATE change_sets SET state = 'committed'", [])
    changes.close()
    pretend_a_reboot(life)
    life.recover()
    assert life.states() == {life.runs[0]: "undone", life.run: "committed"}


def pretend_a_reboot(life):
    for note in Path(life.home.changes).glob("*/live/*/*.unsynced"):
        note.write_text("another run of the machine")
