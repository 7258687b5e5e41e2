"""Who gets a slot next, by counting, not by the clock."""

import asyncio
import random
from collections import Counter

from haft.schedule import Admission, Caller, Slot

PLACES = 10


async def crowd(callers, places=PLACES, per_user=0):
    """Calls of these callers arrive in this order, and end in the order in which they began. Returns who began, in
    order, and the most calls that ran at once, of all and of each user."""
    admission = Admission(places, per_user)
    began, running, most, most_of_user = [], [], 0, Counter()

    async def call(caller):
        slot = Slot(admission, caller)
        await slot.wait(None)
        began.append(caller)
        running.append((caller, slot))

    tasks = [asyncio.create_task(call(caller)) for caller in callers]
    while len(began) < len(callers) or running:
        for _ in range(3):
            await asyncio.sleep(0)
        most = max(most, len(running))
        for who, count in Counter(caller.who for caller, _ in running).items():
            most_of_user[who] = max(most_of_user[who], count)
        assert running, "calls wait although nobody runs"
        running.pop(0)[1].release()
    await asyncio.gather(*tasks)
    assert (admission.free, admission.waiting) == (places, 0)
    return began, most, most_of_user


def test_a_thousand_calls_of_twenty_callers_take_turns_although_one_of_them_sends_nine_hundred():
    greedy = Caller("agent", "T-greedy")
    others = [Caller("agent", f"T-{n}") for n in range(19)]
    calls = [greedy] * 900 + [other for other in others for _ in range(5)] + [others[0]] * 5
    began, most, _ = asyncio.run(crowd(calls))
    assert (len(began), most) == (1000, PLACES)
    # Nobody waits for more than a round of the others: all calls of the others begin in their first rounds.
    last = max(at for at, caller in enumerate(began) if caller in others[1:])
    assert last < PLACES + 6 * 20
    share = Counter(began[: PLACES + 100])
    assert all(share[other] >= 4 for other in others)


def test_calls_of_one_caller_run_in_their_order():
    async def main():
        admission, order = Admission(1), []

        async def call(number):
            slot = Slot(admission)
            await slot.wait(None)
            order.append(number)
            slot.release()

        await asyncio.gather(*(call(number) for number in range(50)))
        return order

    assert asyncio.run(main()) == list(range(50))


def test_a_user_has_no_more_places_than_one_user_may_have_and_the_others_use_the_rest():
    calls = [Caller("one", f"T-{n % 3}") for n in range(60)] + [Caller("two", "T-x")] * 20
    began, most, most_of_user = asyncio.run(crowd(calls, per_user=4))
    assert most_of_user == {"one": 4, "two": 4}
    assert most == 8
    assert Counter(began) == Counter(calls)


def test_places_are_neither_lost_nor_given_twice_whatever_is_cancelled():
    async def main(seed):
        chance = random.Random(seed)
        admission = Admission(3, chance.choice((0, 1, 2)))
        held, waiting, most = [], [], 0

        async def call(caller):
            slot = Slot(admission, caller)
            await slot.wait(None)
            held.append(slot)

        for _ in range(200):
            step = chance.random()
            if step < 0.5:
                caller = Caller(chance.choice("ab"), chance.choice("xy"))
                waiting.append(asyncio.create_task(call(caller)))
            elif step < 0.7 and waiting:
                waiting.pop(chance.randrange(len(waiting))).cancel()
            elif held:
                held.pop(chance.randrange(len(held))).release()
            if chance.random() < 0.5:
                await asyncio.sleep(0)
            most = max(most, len(held))
        for _ in range(1000):
            await asyncio.sleep(0)
            if held:
                held.pop().release()
        assert all(task.done() for task in waiting)
        assert (admission.free, admission.waiting) == (3, 0)
        return most

    assert max(asyncio.run(main(seed)) for seed in range(60)) == 3
