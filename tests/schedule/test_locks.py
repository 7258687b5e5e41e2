"""Locks between processes: real processes, of which some are killed."""

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from haft.contracts import Deadlock
from haft.schedule import Locks

sys.path.insert(0, str(Path(__file__).parent))
from locking_process import locks_in, wanted


class Host:
    """Another process that takes locks."""

    def __init__(self, directory, name):
        command = [sys.executable, str(Path(__file__).with_name("locking_process.py")), str(directory), name]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.says() == "ready"

    def says(self):
        return self.process.stdout.readline().strip()

    def told(self, *words):
        self.process.stdin.write(" ".join(words) + "\n")
        self.process.stdin.flush()

    def claim(self, run, paths, callers="-"):
        self.told("claim", run, paths, callers)
        return self.says()

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


@pytest.fixture
def hosts(tmp_path):
    started = []

    def start(name):
        started.append(Host(tmp_path, name))
        return started[-1]

    yield start
    for host in started:
        host.process.stdin.close()
        host.process.wait()
        host.process.stdout.close()


def test_a_call_of_another_process_waits_and_is_told_for_whom(hosts):
    one, two = hosts("one"), hosts("two")
    assert one.claim("r1", "a") == "granted r1"
    assert two.claim("r2", "a/b") == "waits r2 r1 -"
    assert two.claim("r3", "c") == "granted r3"
    one.told("release", "r1")
    assert two.says() == "granted r2"


def test_the_locks_of_a_killed_process_are_free(hosts):
    one, two = hosts("one"), hosts("two")
    assert one.claim("r1", "a") == "granted r1"
    assert one.claim("r2", "a") == "waits r2 r1 -"
    assert two.claim("r3", "a") == "waits r3 r1 -"
    one.kill()
    assert two.says() == "granted r3"
    assert hosts("three").claim("r4", "b") == "granted r4"


def test_a_process_that_comes_after_a_killed_one_does_not_wait_at_all(hosts, tmp_path):
    one, other = hosts("one"), hosts("other")
    assert one.claim("r1", "a") == "granted r1"
    one.kill()
    assert other.claim("r2", "a") == "granted r2"
    assert not list((tmp_path / "claims").glob("*-one.*"))


def test_damaged_claims_count_for_nothing(hosts, tmp_path):
    one, two = hosts("one"), hosts("two")
    assert one.claim("r1", "a") == "granted r1"
    assert two.claim("r0", "z") == "granted r0"
    for name, text in (("101-other", "{"), ("102-other", "[]"), ("103-other", '{"run": "r"}'), ("²-other", "{}")):
        (tmp_path / "claims" / f"{name}.claim").write_text(text)
    assert one.claim("r4", "c") == "granted r4"  # The hosts look again.
    assert two.claim("r2", "a") == "waits r2 r1 -"
    assert two.claim("r3", "b") == "granted r3"
    one.told("release", "r1")
    assert two.says() == "granted r2"


def test_a_circle_through_two_processes_is_refused_to_who_would_close_it(hosts):
    one, two = hosts("one"), hosts("two")
    assert one.claim("p1", "a") == "granted p1"
    assert two.claim("p2", "b") == "granted p2"
    assert one.claim("c1", "b", "p1") == "waits c1 p2 -"
    assert two.claim("c2", "a", "p2") == "deadlock c2"
    two.told("release", "p2")
    assert one.says() == "granted c1"


def test_who_waits_in_another_process_is_told_that_the_holder_waits_for_a_person(hosts):
    one, two = hosts("one"), hosts("two")
    assert one.claim("r1", "a") == "granted r1"
    assert two.claim("r2", "a") == "waits r2 r1 -"
    one.told("person", "r1")
    assert two.says() == "waits r2 r1 person"


def test_hundreds_of_calls_on_three_files_run_one_at_a_time_for_each_file_and_in_order(tmp_path):
    async def main():
        locks, own = locks_in(tmp_path, "one")
        order = {name: [] for name in "abc"}

        async def call(number):
            name = "abc"[number % 3]
            hold = await locks.claim(wanted(f"r{number}", [name]))
            if hold.must_wait:
                await hold.wait(lambda *_: None)
            order[name].append(number)
            await asyncio.sleep(0)
            assert order[name][-1] == number  # Nobody else began meanwhile.
            hold.release()

        await asyncio.gather(*(call(number) for number in range(300)))
        assert order == {name: [*range(at, 300, 3)] for at, name in enumerate("abc")}
        locks.close()
        own.release(unlink=True)

    asyncio.run(main())
    assert [path.name for path in (tmp_path / "claims").iterdir()] == ["table"]


def test_a_call_that_stops_waiting_lets_the_next_one_on(tmp_path):
    async def main():
        locks = Locks(None, "alone", lambda _: True)
        first = await locks.claim(wanted("r1", ["a"]))
        second = await locks.claim(wanted("r2", ["a", "b"]))
        third = await locks.claim(wanted("r3", ["b"]))
        assert second.must_wait and third.must_wait
        waiting = asyncio.create_task(second.wait(lambda *_: None))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        second.release()
        assert not third.must_wait
        first.release()

    asyncio.run(main())


def test_a_refused_claim_leaves_nothing_behind(tmp_path):
    async def main():
        locks, own = locks_in(tmp_path, "one")
        parents = [await locks.claim(wanted(f"p{name}", [name])) for name in "ab"]
        child = await locks.claim(wanted("c1", ["b"], ["pa"]))
        assert child.must_wait
        with pytest.raises(Deadlock) as caught:
            await locks.claim(wanted("c2", ["a"], ["pb"]))
        assert "it would wait for pa" in caught.value.message and caught.value.retryable
        for hold in (*parents, child):
            hold.release()
        again = await locks.claim(wanted("r9", ["a", "b"]))
        assert not again.must_wait
        locks.close()
        own.release(unlink=True)

    asyncio.run(main())
