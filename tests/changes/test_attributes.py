"""Extended attributes are part of what a file is: a change of them alone is told, brought into the workspace, undone
and redone, by both engines and for every user."""

import asyncio
import os
import struct
import sys

import pytest

from haft.changes.commit.attributes import attributes_of, can_be_set, differing_names, set_attributes
from haft.changes.commit.manifest import PathChange
from haft.changes.commit.read_entry import read_entry
from haft.changes.commit.tree import Tree
from haft.changes.diff.difference import difference
from haft.service import ToolService

pytestmark = [
    pytest.mark.every_user,
    pytest.mark.skipif(sys.platform != "linux", reason="Python knows them on Linux alone"),
]

NETWORK_BINDING = struct.pack("<IIIII", 0x02000000, 1 << 10, 0, 0, 0)
"""CAP_NET_BIND_SERVICE."""
ACCESS_LIST = "system.posix_acl_access"


async def yes(_request) -> bool:
    return True


@pytest.fixture
def workspace(tmp_path):
    place = tmp_path / "workspace"
    (place / "d").mkdir(parents=True)
    (place / "a").write_text("a\n")
    try:
        os.setxattr(place / "a", "user.kept", b"1")
    except OSError as error:
        pytest.skip(f"this filesystem has none: {error}")
    os.setxattr(place / "a", "user.gone", b"2")
    (place / "closed").write_text("c\n")
    os.setxattr(place / "closed", "user.kept", b"1")
    (place / "closed").chmod(0o000)
    return place


def use(workspace, go, **settings):
    async def main():
        home = workspace.parent / "home"
        async with ToolService.open(workspace, approver=yes, home=home, installed=False, settings=settings) as service:
            return await go(service)

    return asyncio.run(main())


def seen(path):
    return {name: os.getxattr(path, name) for name in os.listxattr(path) if name.startswith("user.")}


SETS = (
    f'{sys.executable} -c \'import os; os.setxattr("a", "user.new", b"3"); os.removexattr("a", "user.gone");'
    ' os.setxattr("d", "user.of", b"4")\''
)


@pytest.mark.parametrize("engine", ["auto", "snapshot"])
def test_a_change_of_attributes_alone_is_reported_committed_undone_and_redone(workspace, engine):
    before = {name: seen(workspace / name) for name in ("a", "d")}
    after = {"a": {"user.kept": b"1", "user.new": b"3"}, "d": {"user.of": b"4"}}

    def now():
        return {name: seen(workspace / name) for name in ("a", "d")}

    async def go(service):
        outcome = await service.call("shell", {"command": SETS})
        changes = outcome.changes
        assert (outcome.status, changes.state, changes.complete) == ("done", "committed", True), outcome.error
        assert {each.path: each.attributes for each in changes.files} == {
            "a": ("user.gone", "user.new"), "d": ("user.of",)
        }  # fmt: skip
        assert [each.to_json()["attributes"] for each in changes.files] == [["user.gone", "user.new"], ["user.of"]]
        assert now() == after
        for verb, wanted in ((service.undo, before), (service.redo, after), (service.undo, before)):
            assert (await verb(outcome.run_id)).status == "done"
            assert now() == wanted

    use(workspace, go, **{"changes.engine": engine})


@pytest.mark.parametrize("engine", ["auto", "snapshot"])
@pytest.mark.parametrize(
    "command", ["chmod 751 .", f'{sys.executable} -c \'import os; os.setxattr(".", "user.new", b"3")\'']
)
def test_a_change_of_the_workspace_directory_itself_is_not_passed_over(workspace, engine, command):
    async def go(service):
        outcome = await service.call("shell", {"command": command})
        assert outcome.status == "done", outcome.error
        assert not outcome.changes.complete
        assert "of the workspace directory itself" in outcome.changes.reason

    use(workspace, go, **{"changes.engine": engine})


def test_a_diff_names_the_attributes_that_came_and_went(workspace):
    with Tree(str(workspace)) as tree:
        before = read_entry(tree, "a")
        os.setxattr(workspace / "a", "user.new", b"3")
        os.setxattr(workspace / "a", "user.kept", b"other")
        os.removexattr(workspace / "a", "user.gone")
        told = difference([PathChange("a", before, read_entry(tree, "a"))], lambda _each, _side: None)
    assert told[0].note == "attribute user.gone removed, attribute user.kept changed, attribute user.new set"


@pytest.mark.parametrize("engine", ["auto", "snapshot"])
def test_what_was_deleted_comes_back_with_its_attributes(workspace, engine):
    async def go(service):
        outcome = await service.call("shell", {"command": "rm -rf a closed d"})
        assert outcome.changes.state == "committed"
        assert (await service.undo(outcome.run_id)).status == "done"

    os.setxattr(workspace / "d", "user.of", b"d")
    use(workspace, go, **{"changes.engine": engine})
    assert seen(workspace / "a") == {"user.kept": b"1", "user.gone": b"2"}
    assert seen(workspace / "d") == {"user.of": b"d"}
    assert (workspace / "closed").stat().st_mode & 0o777 == 0
    (workspace / "closed").chmod(0o600)
    assert seen(workspace / "closed") == {"user.kept": b"1"}


def closed_by_an_access_list(path):
    """Its owner may do nothing with it, and their group may read it."""
    owner, group, mask, others, nobody = 1, 4, 16, 32, 0xFFFFFFFF
    rows = [(owner, 0, nobody), (group, 0, nobody), (8, 4, os.getgid()), (mask, 4, nobody), (others, 0, nobody)]
    words = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *row) for row in rows)
    try:
        os.setxattr(path, ACCESS_LIST, words)
    except OSError as error:
        pytest.skip(f"this filesystem has no access lists: {error}")


@pytest.mark.parametrize("engine", ["auto", "snapshot"])
@pytest.mark.parametrize(
    "command", ["touch -d 1999-01-01 closed", "rm closed", "chmod 400 closed", "rmdir d", "chmod 400 d"]
)
def test_what_its_owner_may_not_read_comes_back_with_its_access_list_and_its_attributes(workspace, engine, command):
    def now():
        time_ns = (workspace / "closed").stat().st_mtime_ns
        return time_ns, [(path.stat().st_mode, os.getxattr(path, ACCESS_LIST)) for path in closed]

    async def go(service):
        outcome = await service.call("shell", {"command": command})
        assert (outcome.status, outcome.changes.state) == ("done", "committed"), outcome.error
        assert [each.path for each in outcome.changes.files] == [command.split()[-1]]
        undone = await service.undo(outcome.run_id)
        assert undone.status == "done", undone.error

    closed = [workspace / "closed", workspace / "d"]
    os.setxattr(workspace / "d", "user.kept", b"1")
    for path in closed:
        closed_by_an_access_list(path)
    before = now()
    use(workspace, go, **{"changes.engine": engine})
    assert now() == before
    for path in closed:
        path.chmod(0o700)
        assert seen(path) == {"user.kept": b"1"}


def test_a_file_that_is_written_again_keeps_its_attributes(workspace):
    async def go(service):
        outcome = await service.call("write_file", {"path": "a", "content": "other"})
        assert [each.attributes for each in outcome.changes.files] == [()]

    use(workspace, go)
    assert seen(workspace / "a") == {"user.kept": b"1", "user.gone": b"2"}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give capabilities")
def test_a_file_that_would_run_with_capabilities_is_held(workspace):
    async def go(service):
        words = f"import os; os.setxattr('a', 'security.capability', {NETWORK_BINDING!r})"
        outcome = await service.call("shell", {"command": f'{sys.executable} -c "{words}"'})
        assert (outcome.changes.state, outcome.error.code) == ("held", "sandbox-denied")
        assert "capabilities" in outcome.error.message

    use(workspace, go, **{"sandbox.mode": "off"})
    assert "security.capability" not in os.listxattr(workspace / "a")


def test_values_that_are_too_large_to_be_kept_are_distinguished_and_not_set(tmp_path, monkeypatch):
    monkeypatch.setattr("haft.changes.commit.attributes._MOST_BYTES", 100)
    path = tmp_path / "x"
    path.touch()
    try:
        os.setxattr(path, "user.large", b"a" * 200)
    except OSError as error:
        pytest.skip(f"this filesystem has none: {error}")
    one = attributes_of(str(path))
    os.setxattr(path, "user.large", b"b" * 200)
    assert differing_names(one, attributes_of(str(path))) == ("user.large",)
    assert not can_be_set(one)
    assert set_attributes(str(path), one) == ["user.large"]
    assert os.getxattr(path, "user.large") == b"b" * 200
