"""Cgroups, on directories that look like them: which are usable, what is written where, and what is swept away."""

import os
import subprocess

import pytest

from haft.helper import cgroups
from haft.helper.cgroups import Group, Hierarchy, sweep, usable

pytestmark = pytest.mark.every_user

LIMITS = {"memory_bytes": 1_000_000, "max_processes": 10}
V1_MEMORY = ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes", "memory.oom_control", "memory.max_usage_in_bytes")
V2 = ("memory.max", "memory.swap.max", "memory.events", "memory.peak", "pids.max", "pids.events")


@pytest.fixture
def kernel(monkeypatch):
    """Directories that are made get the files that the kernel would put there, and lose them when removed."""
    made, removed = os.mkdir, os.rmdir
    state = {"files": (), "says": {}}

    def mkdir(name, mode=0o777, *, dir_fd=None):
        made(name, mode, dir_fd=dir_fd)
        if not str(name).startswith("haft-"):
            return
        place = os.open(name, os.O_RDONLY, dir_fd=dir_fd)
        for file in ("cgroup.procs", *state["files"]):
            with open(os.open(file, os.O_WRONLY | os.O_CREAT, 0o644, dir_fd=place), "w") as written:
                written.write(state["says"].get(file, ""))
        os.close(place)

    def rmdir(name, *, dir_fd=None):
        assert str(name).startswith("haft-")
        place = os.open(name, os.O_RDONLY, dir_fd=dir_fd)
        for file in os.listdir(place):
            os.unlink(file, dir_fd=place)
        os.close(place)
        removed(name, dir_fd=dir_fd)

    monkeypatch.setattr(cgroups.os, "mkdir", mkdir)
    monkeypatch.setattr(cgroups.os, "rmdir", rmdir)
    return state


@pytest.fixture
def group_of(monkeypatch):
    """In which groups this process is."""

    def set_groups(groups):
        monkeypatch.setattr(cgroups, "own_groups", lambda: groups)

    return set_groups


def told(place):
    """What was written, by file."""
    return {path.name: path.read_text() for path in place.iterdir() if path.read_text()}


# Which are usable.


@pytest.mark.parametrize(
    ("offered", "usable_ones"),
    [
        ("cpu memory pids\n", {"cpu", "memory", "pids"}),
        ("memory\n", {"memory"}),
        ("pids io\n", {"pids"}),
        ("cpu\n", {"cpu"}),
        ("io\n", None),
        ("", None),
    ],
)
def test_version_2_offers_what_its_parent_hands_down(offered, usable_ones, tmp_path, kernel, group_of):
    kernel["files"] = V2
    (tmp_path / "user.slice").mkdir()
    (tmp_path / "user.slice/cgroup.subtree_control").write_text(offered)
    group_of({"": "/user.slice/session.scope"})
    found = usable("haft-1", [(2, frozenset(), str(tmp_path))])
    assert [set(each.controllers) for each in found] == ([] if usable_ones is None else [usable_ones])
    assert all(each.parent == str(tmp_path / "user.slice") for each in found)
    assert os.listdir(tmp_path / "user.slice") == ["cgroup.subtree_control"]  # the trial left nothing


def test_in_the_root_of_version_2_groups_stand_below(tmp_path, kernel, group_of):
    kernel["files"] = V2
    (tmp_path / "cgroup.subtree_control").write_text("memory pids")
    group_of({"": "/"})
    (found,) = usable("haft-1", [(2, frozenset(), str(tmp_path))])
    assert found.parent == str(tmp_path)


def test_version_1_stands_in_where_version_2_has_nothing(tmp_path, kernel, group_of):
    kernel["files"] = (*V1_MEMORY, "pids.max")
    for name in ("unified", "memory/own", "pids"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "unified/cgroup.subtree_control").write_text("")
    group_of({"": "/", "memory": "/own", "pids": "/"})
    roots = [
        (1, frozenset({"rw", "memory"}), str(tmp_path / "memory")),
        (1, frozenset({"rw", "cpu"}), str(tmp_path / "cpu")),
        (1, frozenset({"rw", "pids"}), str(tmp_path / "pids")),
        (2, frozenset(), str(tmp_path / "unified")),
    ]
    found = usable("haft-1", roots)
    assert [(each.version, set(each.controllers), each.parent) for each in found] == [
        (1, {"memory"}, str(tmp_path / "memory/own")),
        (1, {"pids"}, str(tmp_path / "pids")),
    ]


def test_what_version_2_counts_is_not_asked_of_version_1(tmp_path, kernel, group_of):
    kernel["files"] = (*V2, *V1_MEMORY)
    for name in ("unified", "memory", "pids"):
        (tmp_path / name).mkdir()
    (tmp_path / "unified/cgroup.subtree_control").write_text("pids")
    group_of({"": "/"})
    roots = [
        (1, frozenset({"memory"}), str(tmp_path / "memory")),
        (1, frozenset({"pids"}), str(tmp_path / "pids")),
        (2, frozenset(), str(tmp_path / "unified")),
    ]
    assert [(each.version, set(each.controllers)) for each in usable("haft-1", roots)] == [
        (2, {"pids"}),
        (1, {"memory"}),
    ]


def test_a_hierarchy_whose_files_are_missing_or_where_nothing_can_be_made_is_not_usable(
    tmp_path, kernel, group_of, monkeypatch
):
    (tmp_path / "cgroup.subtree_control").write_text("memory pids")
    group_of({"": "/"})
    roots = [(2, frozenset(), str(tmp_path)), (2, frozenset(), str(tmp_path / "gone"))]
    assert usable("haft-1", roots) == []  # no limits in there
    kernel["files"] = V2
    assert len(usable("haft-1", roots)) == 1

    def refused(*words, **more):
        raise PermissionError

    monkeypatch.setattr(cgroups.os, "mkdir", refused)
    assert usable("haft-1", roots) == []


def test_where_nothing_is_known_nothing_is_usable(monkeypatch):
    def unknown():
        raise FileNotFoundError

    monkeypatch.setattr(cgroups, "own_groups", unknown)
    assert usable("haft-1") == []


def test_this_machines_own_can_be_read():
    assert isinstance(cgroups.mounts(), list)
    assert all(path.startswith("/") for path in cgroups.own_groups().values())


# What is written where.


def test_version_2_is_told_in_one_place(tmp_path, kernel):
    kernel["files"] = V2
    group = Group([Hierarchy(2, frozenset({"memory", "pids"}), str(tmp_path))], "haft-1-1")
    group.join()
    group.limit(LIMITS)
    assert told(tmp_path / "haft-1-1") == {
        "cgroup.procs": "0",
        "memory.max": "1000000",
        "memory.swap.max": "0",
        "pids.max": "28",
    }
    assert len(group.descriptors) == 1
    group.limit({"memory_bytes": 0, "max_processes": 0})
    found = told(tmp_path / "haft-1-1")
    assert [found[name][:3] for name in ("memory.max", "memory.swap.max", "pids.max")] == ["max"] * 3


def test_version_1_is_told_in_each_place(tmp_path, kernel):
    kernel["files"] = (*V1_MEMORY, "pids.max")
    hierarchies = []
    for name in ("memory", "pids"):
        (tmp_path / name).mkdir()
        hierarchies.append(Hierarchy(1, frozenset({name}), str(tmp_path / name)))
    group = Group(hierarchies, "haft-1-1")
    group.join()
    group.limit(LIMITS)
    written = told(tmp_path / "memory/haft-1-1")
    assert written["memory.limit_in_bytes"] == "1000000"
    assert written["memory.memsw.limit_in_bytes"] == "1000000"
    assert told(tmp_path / "pids/haft-1-1")["pids.max"] == "28"
    assert {told(tmp_path / name / "haft-1-1")["cgroup.procs"] for name in ("memory", "pids")} == {"0"}
    group.remove()
    assert os.listdir(tmp_path / "memory") == os.listdir(tmp_path / "pids") == []


def test_without_swap_accounting_the_limit_of_memory_stands_alone(tmp_path, kernel):
    kernel["files"] = ("memory.limit_in_bytes", "memory.oom_control")
    group = Group([Hierarchy(1, frozenset({"memory"}), str(tmp_path))], "haft-1-1")
    group.limit(LIMITS)
    assert told(tmp_path / "haft-1-1") == {"memory.limit_in_bytes": "1000000"}
    assert (group.counts_memory, group.counts_tasks) == (True, False)
    assert group.refused_forks() == 0


@pytest.mark.parametrize(
    ("version", "file"),
    [(2, "memory.events"), (1, "memory.oom_control")],
)
def test_only_what_was_counted_during_a_call_is_its_own(version, file, tmp_path, kernel):
    kernel["files"] = (*V2, *V1_MEMORY)
    kernel["says"] = {file: "low 0\noom_kill 3\n", "pids.events": "max 7\n"}
    group = Group([Hierarchy(version, frozenset({"memory", "pids"}), str(tmp_path))], "haft-1-1")
    group.limit(LIMITS)
    group.begin()
    assert (group.killed_for_memory(), group.refused_forks()) == (False, 0)
    (tmp_path / "haft-1-1" / file).write_text("low 0\noom_kill 4\n")
    (tmp_path / "haft-1-1/pids.events").write_text("max 9\n")
    assert (group.killed_for_memory(), group.refused_forks()) == (True, 2)
    group.begin()
    assert (group.killed_for_memory(), group.refused_forks()) == (False, 0)


@pytest.mark.parametrize(("version", "file"), [(2, "memory.peak"), (1, "memory.max_usage_in_bytes")])
def test_the_most_that_was_used_is_known_where_the_kernel_says_so(version, file, tmp_path, kernel):
    kernel["files"] = (file,)
    kernel["says"] = {file: "123456\n"}
    group = Group([Hierarchy(version, frozenset({"memory"}), str(tmp_path))], "haft-1-1")
    assert group.memory_used() == 123456
    (tmp_path / "haft-1-1" / file).write_text("unknown")
    assert group.memory_used() == 0


# What is swept away.


def test_groups_of_helpers_that_are_gone_are_removed_and_no_others(tmp_path):
    gone = subprocess.Popen(["true"])
    gone.wait()
    names = [
        f"haft-{gone.pid}-1",
        f"haft-{gone.pid}-trial",
        f"haft-{os.getpid()}-1",
        "haft-x",
        "haft",
        f"other-{gone.pid}",
    ]
    for name in names:
        (tmp_path / name).mkdir()
    (tmp_path / f"haft-{gone.pid}-2/inner").mkdir(parents=True)  # as one with processes: it cannot be removed
    sweep([Hierarchy(2, frozenset({"pids"}), str(tmp_path))])
    assert sorted(os.listdir(tmp_path)) == sorted([*names[2:], f"haft-{gone.pid}-2"])


def test_a_helper_removes_its_own_at_its_end_and_not_those_of_one_with_a_longer_number(tmp_path):
    own = cgroups.tag()
    for name in (f"{own}-1", f"{own}-2", "haft-1-1"):
        (tmp_path / name).mkdir()
    hierarchies = [Hierarchy(1, frozenset({"pids"}), str(tmp_path))]
    sweep(hierarchies, own[:-1])
    assert len(os.listdir(tmp_path)) == 3
    sweep(hierarchies, own)
    assert os.listdir(tmp_path) == ["haft-1-1"]
