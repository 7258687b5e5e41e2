"""Claims against a simple model: no two that meet are granted, they are granted in order, and all of them end."""

import random

import pytest

from haft.schedule.claims import Claim, ClaimTable
from sampling import some

PATHS = ("a", "a/b", "a/c", "d", "d/e", "f")


class Model:
    """Runs that make calls, end, and give up at random, and what must hold at each step."""

    def __init__(self, seed):
        self.chance = random.Random(seed)
        self.table = ClaimTable()
        self.live = {}
        self.refused = 0
        self.ticket = 0

    def arrive(self):
        """A call arrives, or a call that has its locks makes one."""
        self.ticket += 1
        above = [each for each in self.live.values() if self.is_granted(each) and len(each.callers) < 3]
        caller = self.chance.choice(above) if above and self.chance.random() < 0.5 else None
        claim = Claim(
            self.ticket,
            self.chance.choice(("h1", "h2")),
            f"r{self.ticket}",
            tuple(self.chance.sample(PATHS, self.chance.randrange(3))),
            ("db",) if self.chance.random() < 0.2 else (),
            () if caller is None else (caller.run, *caller.callers),
        )
        blockers = self.table.would_wait_for(claim)
        if self.table.find_circle(claim, blockers) is not None:
            self.refused += 1
            return
        self.table.add(claim, blockers)
        self.live[claim.ticket] = claim

    def is_granted(self, claim):
        return not self.table.blockers(claim)

    def has_calls(self, claim):
        return any(claim.run in other.callers for other in self.live.values())

    def end(self, claim):
        del self.live[claim.ticket]
        before = {each.ticket for each in self.live.values() if self.is_granted(each)}
        granted = self.table.remove(claim.ticket)
        now = {each.ticket for each in self.live.values() if self.is_granted(each)}
        assert {each.ticket for each in granted} == now - before
        assert before <= now

    def can_end(self):
        return [each for each in self.live.values() if self.is_granted(each) and not self.has_calls(each)]

    def check(self):
        live = list(self.live.values())
        for claim in live:
            for other in live:
                if claim.ticket < other.ticket and claim.meets(other) and claim.run not in other.callers:
                    assert not (self.is_granted(claim) and self.is_granted(other)), (claim, other)
            if not self.is_granted(claim):
                assert all(each.ticket < claim.ticket for each in self.table.blockers(claim))


@pytest.mark.parametrize("first", some(range(0, 400, 100), 1, "claims"))
def test_no_two_claims_that_meet_are_granted_and_all_claims_end(first):
    refused = 0
    for seed in range(first, first + 100):
        model = Model(seed)
        for _ in range(60):
            step = model.chance.random()
            waiting = [each for each in model.live.values() if not model.is_granted(each)]
            if step < 0.5 or not model.live:
                model.arrive()
            elif step < 0.6 and waiting:
                model.end(model.chance.choice(waiting))
            elif ready := model.can_end():
                model.end(model.chance.choice(ready))
            model.check()
        while model.live:
            ready = model.can_end()
            assert ready, f"seed {seed}: nobody can go on"
            model.end(model.chance.choice(ready))
            model.check()
        refused += model.refused
    assert refused  # Otherwise no circle was ever tried.


def claims(*wanted):
    """A table with claims, each given as its paths, its callers, and what else matters."""
    table, found = ClaimTable(), []
    for ticket, (run, writes, callers) in enumerate(wanted, 1):
        claim = Claim(ticket, "h", run, tuple(writes), (), tuple(callers))
        blockers = table.would_wait_for(claim)
        found.append((claim, table.find_circle(claim, blockers)))
        if found[-1][1] is None:
            table.add(claim, blockers)
    return table, found


def test_claims_that_meet_wait_in_the_order_of_arrival():
    table, [(first, _), (second, _), (third, _), (other, _)] = claims(
        ("r1", ["a"], []), ("r2", ["a/b"], []), ("r3", ["a"], []), ("r4", ["b"], [])
    )
    assert [table.blockers(each) for each in (first, second, third, other)] == [[], [first], [first, second], []]
    assert table.remove(1) == [second]
    assert table.remove(2) == [third]


def test_an_early_claim_is_not_overtaken_by_a_late_one_that_meets_only_half_of_it():
    table, [_, (both, _), (late, _)] = claims(("r1", ["a"], []), ("r2", ["a", "b"], []), ("r3", ["b"], []))
    assert table.blockers(late) == [both]


def test_a_nested_call_does_not_wait_for_its_callers_or_for_who_waits_for_them():
    table, [_, (waiting, _), (child, circle)] = claims(
        ("parent", ["a"], []), ("other", ["a", "b"], []), ("child", ["a", "b"], ["parent"])
    )
    assert circle is None and not table.blockers(child)
    assert [each.run for each in table.blockers(waiting)] == ["parent"]
    table.remove(child.ticket)
    assert table.remove(1) == [waiting]


def test_two_children_of_one_parent_take_turns():
    table, [_, _, (second, circle)] = claims(
        ("parent", ["a"], []), ("c1", ["b"], ["parent"]), ("c2", ["b"], ["parent"])
    )
    assert circle is None
    assert [each.run for each in table.blockers(second)] == ["c1"]


def test_the_child_that_would_close_a_circle_of_two_parents_is_found():
    _, [*_, (first, no_circle), (_, circle)] = claims(
        ("p1", ["a"], []), ("p2", ["b"], []), ("c1", ["b"], ["p1"]), ("c2", ["a"], ["p2"])
    )
    assert no_circle is None
    assert circle.run == "p1"
    assert first.run == "c1"


def test_a_circle_through_a_waiting_claim_and_a_grandchild_is_found():
    _, [*_, (_, circle)] = claims(
        ("p1", ["a"], []),
        ("p2", ["b"], []),
        ("grandchild", ["b"], ["child of p1", "p1"]),
        ("waits", ["d", "a"], []),
        ("c2", ["d"], ["p2"]),
    )
    assert circle.run == "waits"


def test_claims_of_one_resource_take_turns():
    table = ClaimTable()
    first, second = (Claim(n, "h", f"r{n}", (), ("postgres:main",)) for n in (1, 2))
    for claim in (first, second):
        table.add(claim, table.would_wait_for(claim))
    assert table.blockers(second) == [first]


def test_a_call_that_nobody_waits_for_is_not_compared_with_all_waits():
    table, asked = ClaimTable(), []

    def other_waits(run):
        asked.append(run)
        return ()

    for ticket in range(50):
        claim = Claim(ticket, "h", f"r{ticket}", ("a",))
        blockers = table.would_wait_for(claim)
        assert len(blockers) == ticket
        assert table.find_circle(claim, blockers, other_waits) is None
        table.add(claim, blockers)
    assert not asked
    assert table.first_blocker(claim, ()).run == "r0"
    assert table.first_blocker(claim, (7, 3, 99)).run == "r3"


def test_a_second_claim_of_a_run_that_another_run_waits_for_closes_a_circle():
    table = ClaimTable()
    for claim in (Claim(1, "h", "r1", ("a",)), Claim(2, "h", "r2", ("b",)), Claim(3, "h", "r2", ("a",))):
        table.add(claim, table.would_wait_for(claim))
    last = Claim(4, "h", "r1", ("b",))
    assert table.find_circle(last, table.would_wait_for(last)).run == "r2"
