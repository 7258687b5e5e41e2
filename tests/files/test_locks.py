import os
import subprocess
import sys
import threading

import pytest

from haft.files import HeldLock, locked, try_lock


def test_a_held_lock_cannot_be_taken_until_it_is_released(tmp_path):
    path = str(tmp_path / "host")
    lock = HeldLock.create(path)
    assert os.listdir(tmp_path) == ["host"]
    assert try_lock(path) is None
    lock.release(unlink=False)
    taken = try_lock(path)
    assert taken is not None and taken.held
    taken.release(unlink=True)
    taken.release(unlink=True)
    assert not taken.held
    assert os.listdir(tmp_path) == []


def test_the_lock_ends_with_its_process_however_it_ends(tmp_path):
    path = str(tmp_path / "host")
    program = (
        "import sys, time; from haft.files import HeldLock;"
        "lock = HeldLock.create(sys.argv[1]); print('held', flush=True); time.sleep(60)"
    )
    process = subprocess.Popen([sys.executable, "-c", program, path], stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"held\n"
    assert try_lock(path) is None
    process.kill()
    process.wait()
    process.stdout.close()
    taken = try_lock(path)
    assert taken is not None
    taken.release(unlink=True)


def test_a_program_that_is_started_meanwhile_does_not_keep_the_lock(tmp_path):
    path = str(tmp_path / "host")
    lock = HeldLock.create(path)
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, close_fds=False)
    lock.release(unlink=False)
    taken = try_lock(path)
    assert taken is not None
    taken.release(unlink=True)
    process.communicate(b"\n")


def test_a_lock_whose_file_is_missing_can_be_taken(tmp_path):
    taken = try_lock(str(tmp_path / "gone"))
    assert taken is not None
    assert try_lock(str(tmp_path / "gone")) is None
    taken.release(unlink=True)


def test_a_lock_on_a_file_that_was_removed_meanwhile_is_not_the_lock(tmp_path, monkeypatch):
    import fcntl

    path = str(tmp_path / "host")
    (tmp_path / "host").write_text("")
    flock = fcntl.flock
    removed = []

    def remove_first(descriptor, operation):
        if not removed:
            removed.append(os.fstat(descriptor).st_ino)
            os.rename(path, path + ".old")
        flock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", remove_first)
    taken = try_lock(path)
    assert taken is not None
    assert os.stat(path).st_ino != removed[0]
    taken.release(unlink=True)


def test_releasing_does_not_remove_the_file_of_somebody_else(tmp_path):
    path = str(tmp_path / "host")
    lock = HeldLock.create(path)
    os.rename(path, path + ".moved")
    (tmp_path / "host").write_text("not ours")
    lock.release(unlink=True)
    assert (tmp_path / "host").read_text() == "not ours"


def test_only_one_at_a_time_is_in_a_locked_section(tmp_path):
    path = tmp_path / "counter"
    path.write_text("0")

    def count():
        for _ in range(50):
            with open(path, "r+") as file, locked(file.fileno(), timeout=30):
                value = int(path.read_text())
                path.write_text(str(value + 1))

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert path.read_text() == "200"


def test_a_locked_section_gives_up_after_its_timeout(tmp_path):
    path = str(tmp_path / "lock")
    holder = HeldLock.create(path)
    with open(path, "rb") as file:
        with pytest.raises(TimeoutError, match=r"not free within 0\.01 seconds"):
            with locked(file.fileno(), timeout=0.01):
                pass
        holder.release(unlink=False)
        with locked(file.fileno(), timeout=0):
            assert try_lock(path) is None
        taken = try_lock(path)
        assert taken is not None
        taken.release(unlink=True)


def test_a_forked_child_does_not_keep_its_parents_lock_alive(tmp_path):
    path = str(tmp_path / "lock")
    lock = HeldLock.create(path)
    go_reading, go_writing = os.pipe()
    here_reading, here_writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(go_writing)
        os.write(here_writing, b"x")
        os.read(go_reading, 1)  # until the parent is done
        os._exit(0)
    try:
        os.read(here_reading, 1)
        assert try_lock(path) is None
        os.close(lock._descriptor)  # as the kernel does when the holder dies
        lock._descriptor = -1
        taken = try_lock(path)
        assert taken is not None
        taken.release(unlink=True)
    finally:
        os.close(go_writing)
        os.waitpid(child, 0)
        for descriptor in (go_reading, here_reading, here_writing):
            os.close(descriptor)
