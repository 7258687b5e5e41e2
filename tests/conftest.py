"""Which tests run, and in what order. And what tests of processes share: a mark that everything a test starts carries,
and a way to find what is left of it.
"""

import gc
import os
import shutil
import sys
import tempfile
import time
import uuid
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import settings

sys.path.append(str(Path(__file__).parent))
import sampling
from forge import Forge, forged_helpers
from warm import Warm

# How long an example takes says nothing: the machine may be busy.
settings.register_profile("haft", deadline=None)
settings.load_profile("haft")

# Nobody answers in tests that do not say otherwise: what would wait in the inbox is refused at once.
os.environ.setdefault("HAFT_APPROVAL_EXPIRES_SECONDS", "0")
# Tools that whoever runs the tests has for themselves are not theirs to list.
os.environ["AMP_TOOLBOX"] = ""
# Version managers put scripts before programs, and each `python3` of a test would start half a dozen processes.
_PLAIN = os.pathsep.join(place for place in os.environ["PATH"].split(os.pathsep) if not place.endswith("/shims"))
if shutil.which("python3", path=_PLAIN):
    os.environ["PATH"] = _PLAIN


def pytest_report_header():
    return sampling.words()


def pytest_collection_modifyitems(config, items):
    """What takes longest begins first, so that others run beside it. With HAFT_DAILY, a third of many jail runs is
    kept, and of the tests that take turns. With HAFT_FEWER, where tests run a second time as another user, today's of
    them are kept, each with some of its parameters."""
    if sampling.IS_AGAIN:
        kept = {id(item) for group in _by_test(items) for item in _again(group)}
        config.hook.pytest_deselected(items=[item for item in items if id(item) not in kept])
        items[:] = [item for item in items if id(item) in kept]
    elif sampling.IS_DAILY:
        left_out = [item for group in _by_test(items) if _is_jailed(group) for item in _not_today(group)]
        left_out += [item for group in _taking_turns(items) for item in _not_today(group)]
        config.hook.pytest_deselected(items=left_out)
        ids = {*map(id, left_out)}
        items[:] = [item for item in items if id(item) not in ids]
    items.sort(key=lambda item: item.get_closest_marker("first") is None)


def pytest_collection_finish():
    """Thousands of tests stay in memory to the end: nobody has to look through them for what can go."""
    gc.collect()
    gc.freeze()


MOST_OF_ONE = 2
"""Of one test with many parameters, where it runs a second time."""


def _by_test(items):
    groups = {}
    for item in items:
        groups.setdefault(item.nodeid.partition("[")[0], []).append(item)
    return groups.values()


JAILS = {"sandbox", "changes", "processes", "sources", "users"}
FEWEST_DRAWN = 4
"""Of so many parameters and more, a third is drawn."""


def _is_jailed(items):
    return len(items) >= FEWEST_DRAWN and items[0].path.parent.name in JAILS


def _taking_turns(items):
    """The tests of each file whose tests take turns, and the scenarios of each example."""
    groups = {}
    for item in items:
        if item.get_closest_marker("takes_turns") or ".scenario." in item.path.name:
            groups.setdefault(item.nodeid.partition("::")[0], []).append(item)
    return groups.values()


def _not_today(items):
    kept = sampling.some(items, -(-len(items) // 3), items[0].nodeid.partition("[")[0])
    return [item for item in items if item not in kept]


def _again(items):
    """What is tried once more today of one test: nothing, where a share was given for it that was not drawn."""
    drawn, mark = sampling.chance(items[0].nodeid.partition("[")[0]), items[0].get_closest_marker("every_user")
    if mark is not None and drawn.random() >= mark.kwargs.get("share", sampling.OFTEN):
        return []
    return _covering(drawn.sample(items, len(items)))


def _covering(items):
    """Some of them, with as many values of every parameter as that can be, each about as often as the others."""
    values = {item: [*_values(item)] for item in items}
    missing = {value for item in items for value in values[item]}
    if not missing:
        return items
    kept, times = [], Counter()
    while missing and len(kept) < MOST_OF_ONE:
        kept.append(max(items, key=lambda item: (len(missing & {*values[item]}), -sum(times[v] for v in values[item]))))
        missing.difference_update(values[kept[-1]])
        times.update(values[kept[-1]])
    return kept


def _values(item):
    return [(name, id(value)) for name, value in item.callspec.params.items()] if hasattr(item, "callspec") else []


@pytest.fixture(scope="session")
def warm():
    """The command line, loaded once."""
    started = Warm()
    yield started
    started.close()


@pytest.fixture(scope="session")
def helper_forge():
    from haft.processes.helper import SOURCE

    made = Forge(SOURCE)
    yield made
    made.close()


AS_HOSTS_DO = ("helper", "processes", "users", "test_attacks.py", "test_denied.py", "test_working.py")
"""Packages and modules whose tests start helpers as hosts do."""


@pytest.fixture(scope="module", autouse=True)
def _forged_helpers(request):
    parts = request.path.relative_to(Path(__file__).parent).parts
    if sys.platform != "linux" or not {parts[0], parts[-1]}.isdisjoint(AS_HOSTS_DO):
        yield
        return
    with forged_helpers(request.getfixturevalue("helper_forge")):
        yield


@pytest.fixture(scope="session", autouse=True)
def _one_trial():
    """Whether calls can work above a workspace is tried once on each filesystem, not once in each state home. A test of
    the trial itself has the fixture `own_trial`."""
    from haft.changes.engine_selector import EngineSelector

    found = set()

    async def tried(self):
        places = (self.transactions.area.path, self.transactions.workspace)
        basis = (*(os.stat(place).st_dev for place in places), repr(await self._trial.layer_basis()))
        if basis in found:
            return None
        problem = await _really_tried(self)
        if problem is None:  # What failed in one place may work in another.
            found.add(basis)
        return problem

    _really_tried, EngineSelector._try_overlay = EngineSelector._try_overlay, tried
    EngineSelector._really_try_overlay = _really_tried
    yield
    EngineSelector._try_overlay = _really_tried


@pytest.fixture
def own_trial(monkeypatch):
    from haft.changes.engine_selector import EngineSelector

    monkeypatch.setattr(EngineSelector, "_try_overlay", EngineSelector._really_try_overlay)


@pytest.fixture
def outside_tmp():
    """A directory that is not in `/tmp`: a workspace in `/tmp` has a `/tmp` of its own for each call."""
    base = Path(tempfile.mkdtemp(dir="/var/tmp"))
    yield base
    shutil.rmtree(base, ignore_errors=True)


def _left_of(mark: str) -> list[str]:
    """The processes, zombies aside, that carry `mark` in their environment or arguments."""
    wanted, found = mark.encode(), []
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:  # Of a zombie both are empty.
            with open(f"/proc/{name}/cmdline", "rb") as file:
                arguments = file.read()
            if wanted not in arguments:
                with open(f"/proc/{name}/environ", "rb") as file:
                    if wanted not in file.read():
                        continue
        except OSError:
            continue
        found.append(f"{name}: {arguments.replace(bytes(1), b' ').decode(errors='replace')}")
    return found


@pytest.fixture
def mark() -> str:
    return f"mark-{uuid.uuid4().hex}"


@pytest.fixture
def left_of():
    return _left_of


@pytest.fixture
def eventually():
    """Wait until a condition holds; fails when it does not within a generous time."""

    def eventually(condition, seconds: float = 20.0, what: str = ""):
        deadline = time.monotonic() + seconds
        while not (found := condition()):
            if time.monotonic() >= deadline:
                pytest.fail(f"did not happen within {seconds:g} s: {what or condition}")
            time.sleep(0.01)
        return found

    return eventually
