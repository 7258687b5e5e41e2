"""The ledger: an order, states that move with others, and the questions that undo asks."""

from dataclasses import replace

import pytest

from haft.contracts import BadUsage, UnknownRun
from haft.storage import Row

ROW = Row(
    seq=0, run="", workspace="/w", area="/area", who="me", thread="T-1", parent=None, verb="call", reverses=(),
    engine="overlay", state="committed", reason=None, at=1.5, files=2, kept=True, latest="",
)  # fmt: skip


@pytest.fixture
def ledger(connection):
    return connection.ledger


def row(run, **changed):
    return replace(ROW, run=run, latest=run, **changed)


def runs(rows):
    return [each.run for each in rows]


def test_a_row_comes_back_as_it_was_put_with_the_next_number(ledger):
    assert ledger.latest() == 0
    ledger.put(row("r_1"))
    ledger.put(row("r_2", reverses=("r_1", "r_0"), verb="undo", parent="r_p", reason="ü", kept=False, files=0))
    first, second = ledger.all()
    assert first == replace(row("r_1"), seq=first.seq)
    assert second == replace(
        row("r_2", reverses=("r_1", "r_0"), verb="undo", parent="r_p", reason="ü", kept=False, files=0), seq=second.seq
    )
    assert 0 < first.seq < second.seq == ledger.latest()
    assert ledger.get("r_1") == first
    assert ledger.get("r_3") is None


def test_one_that_is_there_moves_to_the_end_unless_its_state_is_the_same(ledger):
    ledger.put(row("r_1", state="held"))
    ledger.put(row("r_2"))
    ledger.put(row("r_1", state="held", who="you"))
    assert runs(ledger.all()) == ["r_1", "r_2"]
    before = ledger.latest()
    ledger.put(row("r_1"))
    assert runs(ledger.all()) == ["r_2", "r_1"]
    assert runs(ledger.since(before)) == ["r_1"]


def test_what_becomes_of_others_is_put_with_it(ledger):
    ledger.put(row("r_1"))
    ledger.put(row("r_2", verb="undo", reverses=("r_1",)), [("r_1", "undone"), ("r_unknown", "undone")])
    undone = ledger.get("r_1")
    assert (undone.state, undone.latest) == ("undone", "r_2")
    assert ledger.last_undone("/w", "me").run == "r_1"
    assert ledger.last("/w", "me") is None, "an undo is no call"


def test_states_and_images_are_changed_one_by_one(ledger):
    ledger.put(row("r_1"))
    ledger.set_state("r_1", "discarded", "why")
    assert (ledger.get("r_1").state, ledger.get("r_1").reason) == ("discarded", "why")
    ledger.set_state("r_1", "committed")
    assert ledger.get("r_1").reason is None
    ledger.set_files("r_1", 7)
    assert (ledger.get("r_1").files, ledger.get("r_1").state) == (7, "committed")
    ledger.forget_images("r_1", "too old")
    assert (ledger.get("r_1").kept, ledger.get("r_1").reason) == (False, "too old")
    ledger.set_state("r_unknown", "held")
    assert runs(ledger.all()) == ["r_1"]
    ledger.sync()


def test_the_questions_of_undo(ledger):
    ledger.put(row("r_1", thread="T-2"))
    ledger.put(row("r_2", who="you", parent="r_1"))
    ledger.put(row("r_3", workspace="/v"))
    ledger.put(row("r_4", files=0))
    ledger.put(row("r_5", state="held"))
    assert ledger.last("/w", "me").run == "r_1"
    assert ledger.last("/w", "nobody") is None
    assert runs(ledger.of_parent("r_1")) == ["r_2"]
    assert runs(ledger.of_thread("/w", "T-1")) == ["r_2"]
    assert runs(ledger.all("/w", "held")) == ["r_5"]
    assert runs(ledger.all(state="committed")) == ["r_1", "r_2", "r_3", "r_4"]
    assert runs(ledger.all("/v")) == ["r_3"]


ODD = "\udcff/ü"
"""A name that is no text."""


def test_change_sets_are_found_by_the_paths_that_they_changed(ledger):
    ledger.put(row("r_1"), paths=["a", "b"])
    ledger.put(row("r_2"), paths=["b", ODD])
    ledger.put(row("r_3", workspace="/v"), paths=["a"])
    ledger.put(row("r_4"), paths=[f"many/{number}" for number in range(600)] + ["a"])
    first, second, _, last = (each.seq for each in ledger.all())
    assert runs(ledger.touching("/w", ["a"], limit=9)) == ["r_4", "r_1"]
    assert runs(ledger.touching("/w", ["a", "b"], limit=9, newest_first=False)) == ["r_1", "r_2", "r_4"]
    assert runs(ledger.touching("/w", ["a", "b"], limit=1)) == ["r_4"]
    assert runs(ledger.touching("/w", ["a", "b"], after=first, before=last, limit=9)) == ["r_2"]
    assert runs(ledger.touching("/w", [ODD], limit=9)) == ["r_2"]
    assert runs(ledger.touching("/w", [f"many/{number}" for number in range(600)], limit=9)) == ["r_4"]
    assert ledger.touching("/w", ["none"], limit=9) == []
    assert ledger.touched("/w", ["a", "b", ODD, "none"], after=first) == {"a", "b", ODD}
    assert ledger.touched("/w", ["b", ODD], after=second) == set()


def test_one_that_moves_to_the_end_is_found_there_by_its_paths(ledger):
    ledger.put(row("r_1", state="held"), paths=["a"])
    ledger.put(row("r_2"), paths=["a"])
    ledger.put(row("r_1"), paths=["a"])
    assert runs(ledger.touching("/w", ["a"], limit=9)) == ["r_1", "r_2"]


def test_one_is_found_by_the_beginning_that_no_other_has(ledger):
    for run in ("r_abc1", "r_abc2", "r_b"):
        ledger.put(row(run))
    assert ledger.find("r_abc1").run == "r_abc1"
    assert ledger.find("r_b").run == "r_b"
    with pytest.raises(BadUsage, match=r"r_abc2.*r_abc1"):
        ledger.find("r_abc")
    for name in ("r_x00", "r_a"):
        with pytest.raises(UnknownRun):
            ledger.find(name)


def test_those_that_wait_and_those_that_can_be_undone_are_counted(ledger):
    ledger.put(row("r_1", at=5.0))
    ledger.put(row("r_2", at=3.0))
    ledger.put(row("r_3", area="/other", at=4.0))
    ledger.put(row("r_4", state="held"))
    ledger.put(row("r_5", verb="undo"))
    ledger.put(row("r_6", kept=False))
    ledger.put(row("r_7", files=0))
    assert ledger.undoable() == {"/area": (2, 3.0), "/other": (1, 4.0)}
    assert runs(ledger.held()) == ["r_4"]
