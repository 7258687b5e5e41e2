"""Topics: every subscriber gets each event once and in order, until a gap that says where to go on; whoever stalls
costs the others nothing."""

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from haft.surfaces.http.streams.topics import MOST_WAITING, Subscriber, Topic

ALL = type("All", (), {"shown": lambda self, event: event.chunk})()
EVEN = type("Even", (), {"shown": lambda self, event: event.chunk if event.number % 2 == 0 else None})()


def gap(first):
    return b"gap %d;" % first


def event(number, size=1):
    return b"%d %s;" % (number, b"x" * size)


class Reader:
    """A subscriber, and what it must get according to the list of all events."""

    def __init__(self, topic, view, last, ends):
        self.subscriber = Subscriber(ends_at_gap=ends)
        self.view = view
        self.topic = topic
        self.after = last
        self.gap_seen = False
        assert topic.join(self.subscriber, view, last)

    def take(self, published):
        """Take one chunk, and compare it with what was published."""
        waiting = self.subscriber.waiting_bytes
        assert waiting <= max(MOST_WAITING, max((len(each) for each in published.values()), default=0))
        chunk = self.subscriber.take()
        for text in (chunk or b"").split(b";")[:-1]:
            word, _, rest = text.partition(b" ")
            after = -1 if self.after is None else self.after
            expected = [n for n in sorted(published) if n > after and self.view_shows(n)]
            if word == b"gap":
                assert int(rest) == expected[0]
                self.gap_seen = True
                self.after = None
            else:
                number = int(word)
                if self.after is None:  # After a gap, the events go on somewhere later.
                    assert self.view_shows(number)
                else:
                    assert number == expected[0]
                assert text + b";" == published[number]
                self.after = number
        return chunk is not None

    def view_shows(self, number):
        return self.view is ALL or number % 2 == 0


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("publish"), st.lists(st.sampled_from([1, 100, 9_000, 20_000]), min_size=1, max_size=6)),
        st.tuples(st.just("tick"), st.none()),
        st.tuples(st.just("read"), st.integers(0, 5)),
        st.tuples(st.just("drain"), st.integers(0, 5)),
        st.tuples(st.just("join"), st.tuples(st.booleans(), st.integers(0, 3))),
        st.tuples(st.just("leave"), st.integers(0, 5)),
    ),
    max_size=60,
)


@settings(max_examples=200, deadline=None)
@given(steps=STEPS, ends=st.booleans())
def test_any_schedule_of_readers_gets_every_event_once_and_in_order(steps, ends):
    topic = Topic(gap)
    published: dict[int, bytes] = {}
    readers: list[Reader] = []
    number = 0
    for step, how in steps:
        if step == "publish":
            for size in how:
                published[number] = event(number, size)
                topic.publish(number, published[number])
                number += 1
        elif step == "tick":
            topic.tick()
        elif step == "join":
            is_all, ahead = how
            # A reader that has read the store may be ahead of what left so far.
            readers.append(Reader(topic, ALL if is_all else EVEN, min(number - 1, topic.last + ahead), ends))
        elif readers:
            reader = readers[how % len(readers)]
            if step == "leave":
                topic.leave(reader.subscriber)
                readers.remove(reader)
            elif step == "read":
                reader.take(published)
            else:
                while reader.take(published):
                    pass
    topic.tick()
    for reader in readers:
        while reader.take(published):
            pass
        seen_to_the_end = [n for n in published if reader.after is not None and n > reader.after]
        assert reader.gap_seen or not any(map(reader.view_shows, seen_to_the_end))
        assert not (ends and reader.gap_seen) or reader.subscriber.is_over


def test_one_that_never_reads_costs_the_others_nothing():
    topic, reading, stalled = Topic(gap), Subscriber(), Subscriber()
    for each in (reading, stalled):
        topic.join(each, ALL, -1)
    got = b""
    for number in range(1000):
        topic.publish(number, event(number, 500))
        topic.tick()
        while (chunk := reading.take()) is not None:
            got += chunk
    assert got == b"".join(event(number, 500) for number in range(1000))
    assert stalled.waiting_bytes <= MOST_WAITING
    kept = b""
    while (chunk := stalled.take()) is not None:
        kept += chunk
    events = kept.split(b";")[:-1]
    assert got.startswith(b";".join(events[:-1]) + b";")
    assert events[-1] == b"gap %d" % (len(events) - 1)


def test_after_a_gap_the_events_go_on():
    topic, slow = Topic(gap), Subscriber()
    topic.join(slow, ALL, -1)
    for number in range(10):
        topic.publish(number, event(number, MOST_WAITING // 2))
        topic.tick()
    assert [slow.take()[:5], slow.take()[:5]] == [event(0, 5)[:5], b"gap 1"]
    topic.publish(10, event(10))
    topic.tick()
    assert slow.take() == event(10)


def test_a_single_long_event_arrives():
    topic, reader = Topic(gap), Subscriber()
    topic.join(reader, ALL, -1)
    topic.publish(0, event(0, 10 * MOST_WAITING))
    topic.tick()
    assert reader.take() == event(0, 10 * MOST_WAITING)


def test_who_has_read_too_little_must_read_on_before_it_joins():
    topic = Topic(gap)
    topic.publish(0, event(0))
    topic.tick()
    assert not topic.join(Subscriber(), ALL, -1)


def test_the_end_comes_after_everything_else_and_nothing_after_it():
    topic, reader = Topic(gap), Subscriber()
    topic.join(reader, ALL, -1)
    topic.publish(0, event(0))
    topic.tick()
    reader.end(b"bye")
    topic.publish(1, event(1))
    topic.tick()
    assert [reader.take(), reader.take(), reader.take(), reader.is_over] == [event(0), b"bye", None, True]


def test_when_a_topic_ends_so_do_those_who_saw_it_that_way():
    topic, alone, ahead, other = Topic(gap), Subscriber(), Subscriber(), Subscriber()
    topic.join(alone, ALL, -1)
    topic.join(ahead, ALL, 5)
    topic.join(other, EVEN, -1)
    topic.publish(0, event(0))
    topic.tick()
    topic.end(ALL)
    assert [alone.is_over, ahead.is_over, other.is_over] == [True, True, False]
    assert [alone.take(), alone.take()] == [event(0), None]


def test_a_waiting_reader_is_woken_by_events_beats_and_the_end():
    async def woken(by):
        topic, reader = Topic(gap), Subscriber()
        topic.join(reader, ALL, -1)
        waiting = asyncio.ensure_future(reader.wait())
        await asyncio.sleep(0)
        assert not waiting.done()
        by(topic, reader)
        await asyncio.wait_for(waiting, 10)
        return reader.take()

    def publish(topic, _reader):
        topic.publish(0, event(0))
        topic.tick()

    assert asyncio.run(woken(publish)) == event(0)
    assert asyncio.run(woken(lambda _topic, reader: reader.beat(b"beat"))) == b"beat"
    assert asyncio.run(woken(lambda _topic, reader: reader.end(b"bye"))) == b"bye"
