"""Which programs are kept loaded, with starters that are none; and the scratch places that calls share one after
another."""

import asyncio
import os
import stat
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from haft.contracts import HaftError, StartFailed
from haft.helper import scratch
from haft.sandbox import warm_pool as warm_pools
from haft.sandbox.warm_pool import Key, WarmPool

HELPER, OTHER = object(), object()


class Starter:
    """Is free until it is taken."""

    def __init__(self) -> None:
        self.is_over, self.is_free = False, True

    def close(self) -> None:
        self.is_over = True


def key(name="name", version="1", setup="") -> Key:
    return Key(name, version, setup)


async def quiet(warm_pool) -> None:
    while warm_pool._loading:
        await asyncio.gather(*warm_pool._loading.values(), return_exceptions=True)
        await asyncio.sleep(0)


async def kept(warm_pool, which, helper=HELPER) -> Starter:
    """One more, loaded."""
    starter = Starter()

    async def load():
        return starter

    warm_pool.load_later(which, helper, load)
    await quiet(warm_pool)
    return starter


@pytest.fixture
def run(monkeypatch):
    monkeypatch.setattr(warm_pools, "PAUSE_SECONDS", 0)
    return asyncio.run


def test_one_is_taken_by_one_call_at_a_time(run):
    async def go():
        warm_pool = WarmPool()
        assert warm_pool.take(key(), HELPER) is None
        starter = await kept(warm_pool, key())
        assert warm_pool.take(key(), HELPER) is starter
        assert warm_pool.take(key(), HELPER) is None
        warm_pool.give_back(starter)
        assert warm_pool.take(key(), HELPER) is starter
        assert warm_pool.take(key(setup="other"), HELPER) is None
        warm_pool.close()
        assert starter.is_over and warm_pool.count == 0

    run(go())


@pytest.mark.parametrize("what", ["version", "helper", "over"])
def test_what_will_not_be_called_again_ends_with_the_next_look(run, what):
    async def go():
        warm_pool = WarmPool()
        starter = await kept(warm_pool, key())
        starter.is_over = what == "over"
        warm_pool.take(key(version="2" if what == "version" else "1"), OTHER if what == "helper" else HELPER)
        assert starter.is_over and warm_pool.count == 0

    run(go())


def test_one_that_is_busy_ends_when_it_is_given_back(run):
    async def go():
        warm_pool = WarmPool()
        starter = await kept(warm_pool, key())
        warm_pool.take(key(), HELPER)
        assert warm_pool.take(key(version="2"), HELPER) is None and not starter.is_over
        starter.is_free = False
        warm_pool.give_back(starter)
        assert starter.is_over and warm_pool.count == 0

    run(go())


def test_of_one_program_there_are_so_many_and_no_more(run):
    async def go():
        warm_pool = WarmPool()
        for _ in range(warm_pools.MAX_ALIKE + 2):
            await kept(warm_pool, key())
        assert warm_pool.count == warm_pools.MAX_ALIKE
        warm_pool.close()

    run(go())


def test_who_was_not_called_for_longest_ends_first_and_nobody_who_is_busy(run):
    async def go():
        warm_pool = WarmPool(most=2)
        one, two = await kept(warm_pool, key("one")), await kept(warm_pool, key("two"))
        warm_pool.give_back(warm_pool.take(key("one"), HELPER))
        three = await kept(warm_pool, key("three"))
        assert (one.is_over, two.is_over, three.is_over) == (False, True, False)
        warm_pool.take(key("one"), HELPER)
        warm_pool.take(key("three"), HELPER)
        await kept(warm_pool, key("four"))
        assert not one.is_over and not three.is_over
        warm_pool.close()

    run(go())


def test_what_cannot_be_kept_is_not_tried_again_in_that_version(run):
    async def go():
        warm_pool, tries = WarmPool(), []

        async def load():
            tries.append(1)
            raise StartFailed("it prints")

        for _ in range(3):
            warm_pool.load_later(key(), HELPER, load)
            await quiet(warm_pool)
        assert len(tries) == 1 and warm_pool.unfit == {("name", "1"): "it prints"}
        await kept(warm_pool, key(version="2"))
        assert warm_pool.count == 1
        warm_pool.close()

    run(go())


@pytest.mark.parametrize("error", [HaftError("later"), OSError(11, "later")])
def test_what_went_wrong_by_chance_is_tried_again(run, error):
    async def go():
        warm_pool, tries = WarmPool(), []

        async def load():
            tries.append(1)
            raise error

        for _ in range(2):
            warm_pool.load_later(key(), HELPER, load)
            await quiet(warm_pool)
        assert len(tries) == 2 and not warm_pool.unfit

    run(go())


def test_what_hangs_is_given_up(run, monkeypatch):
    monkeypatch.setattr(warm_pools, "LOADING_SECONDS", 0.02)

    async def go():
        warm_pool = WarmPool()

        async def load():
            await asyncio.sleep(1000)

        warm_pool.load_later(key(), HELPER, load)
        await quiet(warm_pool)
        assert "not loaded within" in warm_pool.unfit["name", "1"]

    run(go())


def test_what_is_being_loaded_when_it_closes_is_never_kept(run):
    async def go():
        warm_pool = WarmPool()
        begun = asyncio.Event()

        async def load():
            begun.set()
            await asyncio.sleep(1000)

        warm_pool.load_later(key(), HELPER, load)
        await begun.wait()
        warm_pool.close()
        await quiet(warm_pool)
        assert warm_pool.count == 0 and not warm_pool.unfit

    run(go())


def test_one_that_nobody_takes_ends_and_one_that_is_taken_does_not(run):
    async def go():
        warm_pool = WarmPool(idle_seconds=0.02)
        one = await kept(warm_pool, key("one"))
        warm_pool.take(key("one"), HELPER)
        two = await kept(warm_pool, key("two"))
        while not two.is_over:
            await asyncio.sleep(0.005)
        assert not one.is_over
        warm_pool.give_back(one)
        while not one.is_over:
            await asyncio.sleep(0.005)

    run(asyncio.wait_for(go(), 20))


NAMES = st.lists(st.sampled_from(["a", "b", "c/d", "c/e", "c/f/g", "h"]), unique=True, max_size=5)


def tree(root: str, names, words: str = "x") -> None:
    for name in names:
        path = os.path.join(root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if name == "h":
            os.symlink("/", path)
        else:
            with open(path, "w") as file:
                file.write(words)


def looks(root: str):
    found = []
    for top, _, names in os.walk(root):
        about = os.lstat(top)
        found.append((top, about.st_mode, about.st_mtime_ns))
        found += [(os.path.join(top, one), stat.S_IFMT(os.lstat(os.path.join(top, one)).st_mode)) for one in names]
    return sorted(found)


@settings(max_examples=60)
@given(before=NAMES, added=NAMES)
def test_what_was_added_is_removed_and_nothing_tells_of_it(tmp_path_factory, before, added):
    root = str(tmp_path_factory.mktemp("scratch"))
    tree(root, before)
    place = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        known, seen = scratch.inventory(place), looks(root)
        tree(root, set(added) - set(before))
        os.utime(root, (1, 1))
        scratch.restore(place, known)
        assert looks(root) == seen
    finally:
        os.close(place)


def rewritten(path: str) -> None:
    about = os.stat(path)
    Path(path).write_text("y")
    os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))


CHANGES = {
    "written": lambda root: Path(root, "c/d").write_text("more"),
    "written with the time it had": lambda root: rewritten(f"{root}/c/d"),
    "removed": lambda root: os.remove(f"{root}/a"),
    "replaced": lambda root: (os.rename(f"{root}/a", f"{root}/z"), Path(root, "a").write_text("x")),
    "renamed": lambda root: os.rename(f"{root}/a", f"{root}/z"),
    "opened to all": lambda root: os.chmod(f"{root}/c", 0o777),
    "root opened to all": lambda root: os.chmod(root, 0o777),
    "directory replaced": lambda root: (os.rename(f"{root}/c", f"{root}/z"), tree(root, ["c/d"])),
    "linked": lambda root: os.link(f"{root}/a", f"{root}/z"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_what_was_there_and_is_another_is_noticed(tmp_path, what):
    root = str(tmp_path)
    tree(root, ["a", "c/d"])
    place = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        known = scratch.inventory(place)
        CHANGES[what](root)
        with pytest.raises(scratch.NotAsBefore):
            scratch.restore(place, known)
    finally:
        os.close(place)


def test_a_link_is_removed_and_not_what_it_leads_to(tmp_path):
    (tmp_path / "root").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "file").write_text("x")
    place = os.open(tmp_path / "root", os.O_RDONLY | os.O_DIRECTORY)
    known = scratch.inventory(place)
    (tmp_path / "root" / "link").symlink_to(tmp_path / "outside")
    scratch.restore(place, known)
    os.close(place)
    assert not os.listdir(tmp_path / "root") and (tmp_path / "outside" / "file").exists()


def test_more_than_is_looked_at_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(scratch, "MAX_ENTRIES", 5)
    place = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    known = scratch.inventory(place)
    tree(str(tmp_path), [f"n{n}" for n in range(6)])
    with pytest.raises(scratch.NotAsBefore):
        scratch.restore(place, known)
    os.close(place)
