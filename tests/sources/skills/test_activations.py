"""Which skills are active, in which thread, from whichever process."""

import json
import os
import stat
import threading

import pytest

from haft.contracts import StorageFailed
from haft.sources.skills import Activations


@pytest.fixture
def home(tmp_path):
    return tmp_path / "state"


@pytest.fixture
def active(home, tmp_path):
    (tmp_path / "workspace").mkdir()
    return Activations(str(home), str(tmp_path / "workspace"))


def file_of(home):
    (found,) = (home / "skills").glob("*.json")
    return found


def test_looking_makes_nothing(active, home):
    assert active.of(None) == active.of("T-1") == active.anywhere() == frozenset()
    assert active.stamp() is None and active.threads("a") == []
    assert not home.exists()


def test_in_the_workspace_it_is_active_in_every_thread(active):
    assert active.activate("a", None)
    assert active.of(None) == active.of("T-1") == {"a"}
    assert not active.activate("a", None)
    assert active.deactivate("a", None)
    assert not active.deactivate("a", None)
    assert active.of("T-1") == frozenset()


def test_in_a_thread_it_is_active_there_alone(active):
    assert active.activate("a", "T-1") and active.activate("b", "T-2") and active.activate("c", None)
    assert active.of("T-1") == {"a", "c"} and active.of("T-2") == {"b", "c"} and active.of("T-3") == {"c"}
    assert active.of(None) == {"c"} and active.anywhere() == {"a", "b", "c"}
    assert active.threads("a") == ["T-1"] and active.threads("c") == []
    assert not active.deactivate("a", "T-2") and active.deactivate("a", "T-1")
    assert active.of("T-1") == {"c"}


def test_it_is_kept_and_seen_by_others_and_the_stamp_tells(active, home, tmp_path):
    other = Activations(str(home), str(tmp_path / "workspace"))
    active.activate("a", None)
    before = other.stamp()
    assert before is not None and other.of(None) == {"a"}
    active.activate("a", None)
    assert other.stamp() == before, "nothing changed"
    active.activate("b", None)
    assert other.stamp() != before and other.of(None) == {"a", "b"}


def test_workspaces_are_apart_and_a_link_to_one_is_the_same(active, home, tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / "link").symlink_to("workspace")
    active.activate("a", None)
    assert Activations(str(home), str(tmp_path / "other")).of(None) == frozenset()
    assert Activations(str(home), str(tmp_path / "link")).of(None) == {"a"}


def test_the_file_is_its_owners_alone_and_replaced_whole(active, home):
    old = os.umask(0)
    try:
        active.activate("a", None)
        active.activate("b", None)
    finally:
        os.umask(old)
    assert [stat.S_IMODE(path.stat().st_mode) for path in (home / "skills").iterdir()] == [0o600, 0o600]
    assert stat.S_IMODE((home / "skills").stat().st_mode) == 0o700
    assert json.loads(file_of(home).read_text())["active"] == ["a", "b"]


def test_only_the_newest_threads_are_kept(active, home, monkeypatch):
    monkeypatch.setattr("haft.sources.skills.activations.MOST_THREADS", 3)
    for number in range(4):
        active.activate("a", f"T-{number}")
    assert active.threads("a") == ["T-1", "T-2", "T-3"]
    active.activate("b", "T-1")
    active.activate("a", "T-4")
    assert active.threads("a") == ["T-3", "T-1", "T-4"], "what was used last stays longest"


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", '"x"', '{"threads": []}', '{"active": {}}', '{"threads": {"T": 5}}', "[" * 100_000, "\xff\xfe"],
)
def test_a_file_that_cannot_be_read_counts_as_empty_with_a_warning(active, home, caplog, text):
    active.activate("a", None)
    file_of(home).write_bytes(text.encode("latin-1"))
    assert active.of("T") == frozenset()
    assert "cannot be read" in caplog.text and "no skill counts as active" in caplog.text
    assert active.activate("b", None) and active.of(None) == {"b"}


def test_what_is_no_name_in_it_is_passed_over(active, home):
    active.activate("a", None)
    file_of(home).write_text('{"active": ["x", 5, null], "threads": {"T": [[]], "U": ["y"]}, "more": 1}')
    assert active.of(None) == {"x"} and active.anywhere() == {"x", "y"}


def test_a_directory_in_its_place_counts_as_empty_and_cannot_be_written(active, home, caplog):
    active.activate("a", None)
    file_of(home).unlink()
    (home / "skills" / active._name).mkdir()
    assert active.of(None) == active.anywhere() == frozenset() and "cannot be read" in caplog.text
    with pytest.raises(StorageFailed):
        active.activate("a", None)


def test_a_pipe_in_its_place_is_not_waited_for(active, home):
    active.activate("a", None)
    file_of(home).unlink()
    os.mkfifo(home / "skills" / "pipe")
    (home / "skills" / "pipe").rename(home / "skills" / active._name)
    assert active.of(None) == frozenset()


def test_many_at_once_lose_nothing(active, home, tmp_path):
    def work(number):
        own = Activations(str(home), str(tmp_path / "workspace"))
        for skill in range(5):
            own.activate(f"s{skill}", f"T-{number}")
            own.activate(f"w{number}-{skill}", None)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(active.of(None)) == 30
    assert all(len(active.of(f"T-{number}")) == 35 for number in range(6))


def test_a_state_home_that_cannot_be_written_is_said(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(StorageFailed, match="could not be saved"):
        Activations(str(tmp_path / "file"), str(tmp_path)).activate("a", None)
