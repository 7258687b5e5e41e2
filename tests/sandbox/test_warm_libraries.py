"""Libraries that compute on several processors: kept loaded without their threads, and whole in each call."""

import asyncio
import json
import sys
from pathlib import Path

import pytest

from sampling import IS_WHOLE

sys.path.insert(0, str(Path(__file__).parent))
from loaded import Loaded, OwnEnvironment, written, yes

from haft.service import ToolService
from haft.surfaces.cli.main import run as haft

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="nothing is kept loaded elsewhere")

THREADS = "len(os.listdir('/proc/self/task'))"
BLAS = """
import os, threading, time
if os.environ.get({variable!r}) != {value!r}:
    threading.Thread(target=time.sleep, args=(99,), daemon=True).start()
"""
"""Starts a thread when it is imported, as numpy's library does, unless it is told to do with one."""
DUCKDB = """
import threading, time
class _Slow(threading.Thread):
    def __init__(self, end):
        super().__init__(daemon=True)
        self._ends, self._over = end, threading.Event()
    def run(self):
        self._ends.wait()
        self._over.set()
        time.sleep(0.05)
    def join(self):
        self._over.wait()
_count, _wanted = 3, threading.Event()
def _begin():
    global _end
    _end = [threading.Event() for _ in range(_count - 1)]
    _threads[:] = [_Slow(each) for each in _end]
    for each in _threads:
        each.start()
_threads = []
_begin()
class _Rows:
    def fetchone(self):
        return (_count,)
def execute(words):
    global _count
    if words.startswith("SET threads = "):
        for each in _end:
            each.set()
        for each in _threads:
            each.join()
        _count = int(words.rpartition(" ")[2])
        _begin()
    return _Rows()
"""
"""Has a connection of its own when it is imported, with threads that can be ended, as duckdb 1 has: they
are still there for a moment when it says that they have ended."""


@pytest.fixture
def loaded(tmp_path, monkeypatch):
    environment = OwnEnvironment(tmp_path / "environment")
    monkeypatch.setattr("haft.toolsets.templates._OnUse._real", lambda _self: environment)
    monkeypatch.setattr("haft.service.templates.TemplateEnvironments", lambda *_given: environment)
    return Loaded(tmp_path, environment)


@pytest.mark.every_user
@pytest.mark.parametrize(
    ("variable", "value"),
    [("OPENBLAS_NUM_THREADS", "1"), ("OMP_NUM_THREADS", "1"), ("MKL_NUM_THREADS", "1"),
     ("JE_ARROW_MALLOC_CONF", "background_thread:false")],
)  # fmt: skip
def test_a_library_is_told_to_do_with_one_thread_while_it_is_loaded_and_the_call_is_not(loaded, variable, value):
    loaded.environment.library("blas", BLAS.format(variable=variable, value=value))
    loaded.write("computes", top="import blas", run=f"return [os.environ.get({variable!r}), {THREADS}]")

    async def go():
        async with loaded:
            assert (await loaded.warmed("computes")).output == "[None, 2]"
            assert (await loaded.warm_call("computes")).output == "[None, 1]"

    asyncio.run(go())


@pytest.mark.every_user
def test_the_threads_of_a_connection_end_while_it_is_kept_and_are_back_in_each_call(loaded):
    loaded.environment.library("duckdb", DUCKDB)
    loaded.write("queries", top="import duckdb", run=f"return [duckdb.execute('?').fetchone()[0], {THREADS}]")

    async def go():
        async with loaded:
            assert (await loaded.warmed("queries")).output == "[3, 3]"
            for _ in range(2):
                assert (await loaded.warm_call("queries")).output == "[3, 3]"

    asyncio.run(go())


def test_one_that_starts_threads_all_the_same_is_named_wherever_someone_looks(loaded, capsys, monkeypatch):
    loaded.environment.library("busy", BLAS.format(variable="NO_SUCH_VARIABLE", value="1"))
    loaded.environment.library("calm", "")
    loaded.write("odd", top="import calm, busy", run="return 1")

    async def go():
        async with loaded:
            assert (await loaded.call("odd")).output == "1"
            assert await loaded.settled("odd") == "`busy` starts threads when it is imported"

    asyncio.run(go())
    monkeypatch.setenv("HAFT_HOME", str(loaded.home))
    at, why = ["-w", str(loaded.workspace)], "`busy` starts threads when it is imported"
    assert haft([*at, "templates", "list", "--in", str(loaded.templates)]) == 0
    assert f"a new process for each call: {why}" in capsys.readouterr().err
    assert haft([*at, "tools", "show", str(loaded.folder("odd"))]) == 0
    assert f"haft starts a new process for each call: {why}." in capsys.readouterr().out
    assert haft([*at, "tools", "show", str(loaded.folder("odd")), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["environment"]["cold"] == why


@pytest.mark.every_user
def test_a_call_knows_its_environment_cold_and_loaded(loaded):
    loaded.write("knows", run="return [os.environ['VIRTUAL_ENV'], os.environ['PATH'].split(':')[0], sys.prefix]")
    root = str(Path(loaded.environment.current("").python).parent.parent)

    async def go():
        async with loaded:
            wanted = str([root, f"{root}/bin", root])
            assert (await loaded.warmed("knows")).output == wanted
            assert (await loaded.warm_call("knows")).output == wanted

    asyncio.run(go())


REAL = {
    "numpy": ("import numpy", "return [int(numpy.arange(5).sum()), 1]", ["10", "1"]),
    "pandas": (
        "import pandas, numpy",
        "return [int(pandas.DataFrame({'a': numpy.arange(5)}).a.sum()), 1]",
        ["10", "1"],
    ),
    "duckdb==1.4.1": (
        "import duckdb",
        "return duckdb.sql('select sum(range), 1 from range(5)').fetchone()",
        ["10", "1"],
    ),
}


@pytest.mark.parametrize("package", REAL if IS_WHOLE else ["numpy"])
def test_real_ones_from_the_index_are_kept_loaded(tmp_path, monkeypatch, package):
    """They are threads of compiled code, which no test can imitate."""
    top, run, wanted = REAL[package]
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    folder = written(tmp_path / "templates" / "computes", run, top=top)
    (folder / "requirements.txt").write_text(f"pydantic\n{package}\n")
    (tmp_path / "workspace").mkdir()

    async def go():
        service = ToolService.open(
            tmp_path / "workspace",
            approver=yes,
            home=tmp_path / "home",
            installed=False,
            settings={"templates.paths": [str(tmp_path / "templates")], "limits.max_seconds": 120},
        )
        async with service:
            for count in range(3):
                outcome = await service.call("computes", {})
                assert (outcome.status, outcome.output.strip("()[]").split(", ")) == ("done", wanted), outcome.error
                while not count and not service.loaded:
                    assert not (warm_pool := service._sandbox._warm_pool).unfit, warm_pool.unfit
                    await asyncio.sleep(0.01)
            assert service.loaded == 1

    asyncio.run(go())
