"""Approvals: each step is taken once, and what was shown is forgotten when it is over."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from haft.storage import Answered

sys.path.insert(0, str(Path(__file__).parent))
from storages import NOW, WAITING

YES = Answered(approved=True, who="bob", seen=WAITING.digest, at=NOW, grants={"network": True}, arguments={"a": [1]})


@pytest.fixture
def approvals(connection):
    return connection.approvals


def put(approvals, *ids, **changed):
    for name in ids:
        approvals.put(replace(WAITING, id=name, run=name.replace("a_", "r_"), **changed), forget_before=0.0)


def ids(found):
    return [each.id for each in found]


def test_a_request_comes_back_as_it_was_put(approvals):
    approvals.put(WAITING, forget_before=0.0)
    assert approvals.open(NOW) == [WAITING]
    assert approvals.named("a_1")[0].digest == WAITING.digest


def test_open_ones_are_listed_oldest_first_by_workspace_until_they_expire(approvals):
    put(approvals, "a_2", "a_1")
    put(approvals, "a_3", workspace="/v")
    put(approvals, "a_4", expires_at=NOW)
    assert ids(approvals.open(NOW)) == ["a_1", "a_2", "a_3"]
    assert ids(approvals.open(NOW, "/v")) == ["a_3"]
    assert ids(approvals.named("a_")) == ["a_4", "a_3", "a_2", "a_1"]
    assert ids(approvals.named("r_2")) == ["a_2"]
    assert approvals.named("a_9") == []


def test_the_first_answer_counts_and_is_taken_once(approvals):
    put(approvals, "a_1")
    assert approvals.answer_to("a_1") is None
    assert approvals.answer("a_1", YES)
    assert not approvals.answer("a_1", replace(YES, approved=False))
    assert not approvals.close_open("a_1")
    assert approvals.answer_to("a_1") == YES
    assert approvals.take_answered("a_1")
    assert not approvals.take_answered("a_1")
    assert approvals.answer_to("a_1") is None
    (over,) = approvals.named("a_1")
    assert (over.state, over.answer, over.shown) == ("taken", YES, {})


def test_an_answer_that_does_not_count_is_removed_and_another_one_may_come(approvals):
    put(approvals, "a_1")
    assert not approvals.reopen("a_1"), "there is no answer yet"
    assert approvals.answer("a_1", replace(YES, proof="forged"))
    assert approvals.answer_to("a_1").proof == "forged"
    assert approvals.reopen("a_1")
    assert approvals.answer_to("a_1") is None
    assert ids(approvals.open(NOW)) == ["a_1"]
    assert approvals.answer("a_1", YES)
    assert approvals.take_answered("a_1")
    assert not approvals.reopen("a_1"), "the host has taken it"


def test_an_answer_that_comes_too_late_is_none(approvals):
    put(approvals, "a_1", expires_at=NOW)
    assert not approvals.answer("a_1", YES)
    approvals.prolong("a_1", NOW + 5)
    assert approvals.answer("a_1", YES)
    assert not approvals.answer("a_unknown", YES)


def test_a_closed_request_cannot_be_answered_and_forgets_what_it_showed(approvals):
    put(approvals, "a_1")
    assert approvals.close_open("a_1")
    assert not approvals.close_open("a_1")
    assert not approvals.answer("a_1", YES)
    (over,) = approvals.named("a_1")
    assert (over.state, over.shown) == ("closed", {})


def test_a_closed_request_keeps_the_answer_of_the_approver(approvals):
    put(approvals, "a_1")
    assert approvals.close_open("a_1", replace(YES, paths=["a"]))
    assert approvals.answer_to("a_1") is None
    (over,) = approvals.named("a_1")
    assert (over.state, over.answer, over.shown) == ("closed", replace(YES, paths=["a"]), {})


def test_only_an_open_request_can_show_something_else(approvals):
    put(approvals, "a_1")
    before = approvals.named("a_1")[0]
    assert approvals.show_anew("a_1", {**before.shown, "diff": "less"})
    (now,) = approvals.open(NOW)
    assert now.shown == {**before.shown, "diff": "less"} and now.digest != before.digest
    approvals.answer("a_1", YES)
    assert not approvals.show_anew("a_1", {})


def test_answers_that_nobody_took_are_found_by_the_call(approvals):
    put(approvals, "a_1", "a_2")
    put(approvals, "a_3", tried=True)
    put(approvals, "a_4", fingerprint="g")
    assert not approvals.has_answered("f")
    for name in ("a_1", "a_3", "a_4"):
        approvals.answer(name, YES)
    assert approvals.has_answered("f")
    assert ids(approvals.answered("f", NOW)) == ["a_1"]
    assert approvals.answered("f", NOW + 60) == []
    assert not approvals.has_answered("none")


def test_those_that_expired_long_ago_are_forgotten_when_the_next_comes(approvals):
    put(approvals, "a_1", expires_at=5.0)
    put(approvals, "a_2", expires_at=10.0)
    approvals.put(replace(WAITING, id="a_3"), forget_before=10.0)
    assert ids(approvals.named("a_")) == ["a_3", "a_2"]
