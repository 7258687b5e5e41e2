"""The inbox on disk: the first answer wins, what is over forgets what it showed, an approval outlives its host once."""

import time
from dataclasses import replace

import pytest

from haft.contracts import BadUsage, HostId, RunId, ThreadId, UnknownRequest, new_run_id
from haft.policy import Answered, Inbox, Waiting, digest_of, fingerprint_of, new_request_id
from haft.storage import StateHome, open_stores


@pytest.fixture
def connection(tmp_path):
    connection = open_stores(StateHome(str(tmp_path))).connect()
    yield connection
    connection.close()


@pytest.fixture
def inbox(connection):
    return Inbox(connection)


def question(**changed) -> Waiting:
    shown = {"tool": "shell", "arguments": {"command": "make"}, "toAllow": []}
    now = time.time()
    waiting = Waiting(
        id=new_request_id(),
        run=RunId(new_run_id()),
        host=HostId("h_1"),
        workspace="/w",
        who="ann",
        thread=ThreadId("T-1"),
        created_at=now,
        expires_at=now + 60,
        tried=False,
        fingerprint="f",
        shown=shown,
    )
    return replace(waiting, **changed)


def yes(waiting, **changed) -> Answered:
    return replace(Answered(approved=True, who="bob", seen=waiting.digest, at=time.time()), **changed)


def test_what_waits_is_listed_oldest_first_and_by_workspace(inbox):
    first, second, elsewhere = question(), question(), question(workspace="/other")
    for each in (first, second, elsewhere):
        inbox.put(each)
    assert inbox.waiting("/w") == [first, second]
    assert inbox.waiting() == [first, second, elsewhere]


def test_the_first_answer_wins(inbox):
    waiting = question()
    inbox.put(waiting)
    assert inbox.answer(waiting, yes(waiting))
    assert not inbox.answer(waiting, yes(waiting, approved=False))
    assert inbox.answer_to(waiting.id).approved is True
    assert inbox.waiting() == []


def test_what_has_expired_cannot_be_answered(inbox):
    waiting = question(expires_at=time.time() - 1)
    inbox.put(waiting)
    assert not inbox.answer(waiting, yes(waiting))
    assert inbox.waiting() == []


def test_a_request_that_was_answered_or_closed_forgets_what_it_showed(inbox, connection):
    taken, closed = question(), question()
    for each in (taken, closed):
        inbox.put(each)
    inbox.answer(taken, yes(taken))
    assert inbox.end(taken.id, "taken")
    assert inbox.end(closed.id)
    assert connection.database.rows("SELECT shown FROM approvals") == [("{}",), ("{}",)]
    assert not inbox.answer(closed, yes(closed))


def test_an_answered_request_cannot_be_closed_unseen(inbox):
    waiting = question()
    inbox.put(waiting)
    inbox.answer(waiting, yes(waiting))
    assert not inbox.end(waiting.id)
    assert inbox.answer_to(waiting.id) is not None


def test_it_is_found_by_its_name_its_runs_name_and_their_beginnings(inbox):
    waiting = question()
    inbox.put(waiting)
    for name in (waiting.id, waiting.run, waiting.run[:20], waiting.id[:20]):
        assert inbox.find(name) == waiting
    with pytest.raises(UnknownRequest):
        inbox.find("a_ffff")
    with pytest.raises(UnknownRequest):
        inbox.find("a")
    inbox.put(question())
    with pytest.raises(BadUsage, match="more than one"):
        inbox.find(waiting.id[:8])


def test_a_yes_that_its_host_did_not_live_to_take_serves_once(inbox):
    waiting = question()
    inbox.put(waiting)
    inbox.answer(waiting, yes(waiting))
    assert inbox.take_unused_approval("f", lambda _host: True) is None
    assert inbox.take_unused_approval("other", lambda _host: False) is None
    assert inbox.take_unused_approval("f", lambda _host: False).id == waiting.id
    assert inbox.take_unused_approval("f", lambda _host: False) is None


@pytest.mark.parametrize(
    "changed",
    [{"approved": False}, {"seen": digest_of("something else")}],
    ids=["a rejection", "an approval of something else"],
)
def test_nothing_but_a_yes_to_what_was_shown_is_kept(inbox, changed):
    waiting = question()
    inbox.put(waiting)
    inbox.answer(waiting, yes(waiting, **changed))
    assert inbox.take_unused_approval("f", lambda _host: False) is None


def test_approving_a_trial_run_is_no_grant(inbox):
    waiting = question(tried=True)
    inbox.put(waiting)
    inbox.answer(waiting, yes(waiting))
    assert inbox.take_unused_approval("f", lambda _host: False) is None


def test_a_fingerprint_depends_on_everything_and_not_on_order():
    call = {"tool": "shell", "arguments": {"command": "make"}, "cwd": "."}
    assert fingerprint_of(call) == fingerprint_of(dict(reversed(call.items())))
    for name in call:
        assert fingerprint_of(call) != fingerprint_of({**call, name: "x"})
