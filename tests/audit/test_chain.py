"""Writing the audit log: from several processes and threads at once, and on a disk that fails."""

import errno
import os
import subprocess
import sys
import threading

import pytest

from haft.audit import entries, verify
from haft.audit.chain import Chain
from haft.contracts import StorageFailed
from haft.storage.sqlite.audit_log import FileLog

WRITER = """
import sys
from haft.audit.chain import Chain
from haft.storage.sqlite.audit_log import FileLog
sys.stdin.readline()
chain = Chain(FileLog(sys.argv[1]))
n = 0
while n < 100:
    size = 1 + (n % 3) * 4
    bodies = [b'{"type":"end","run":"%s-%d","ballast":"%s"}' % (sys.argv[2].encode(), n + k, b"x" * (n * 31 % 5000))
              for k in range(min(size, 100 - n))]
    chain.append(bodies)
    n += len(bodies)
chain.close()
"""


def test_four_processes_that_append_a_hundred_each_make_one_chain(tmp_path):
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, tmp_path, str(n)], stdin=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for n in range(4)
    ]
    for writer in writers:
        writer.stdin.write(b"go\n")
        writer.stdin.flush()
    assert [writer.communicate()[1] for writer in writers] == [b""] * 4
    verdict = verify(FileLog(str(tmp_path)))
    assert verdict.intact, verdict.problem
    assert (verdict.records, verdict.torn) == (400, ())
    runs = [entry["run"] for entry in entries(FileLog(str(tmp_path)))]
    for n in range(4):
        assert [run for run in runs if run.startswith(f"{n}-")] == [f"{n}-{k}" for k in range(100)]


def test_threads_of_one_process_take_turns(tmp_path):
    chain = Chain(FileLog(str(tmp_path)))
    threads = [threading.Thread(target=lambda: [chain.append([b"{}"] * 2) for _ in range(50)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    chain.close()
    assert verify(FileLog(str(tmp_path))).records == 400
    assert verify(FileLog(str(tmp_path))).intact


def test_verifying_while_others_write_finds_the_record_intact(tmp_path):
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, tmp_path, str(n)], stdin=subprocess.PIPE) for n in range(2)
    ]
    for writer in writers:
        writer.stdin.write(b"go\n")
        writer.stdin.close()
    while any(writer.poll() is None for writer in writers):
        verdict = verify(FileLog(str(tmp_path)))
        assert verdict.intact, verdict.problem
    for writer in writers:
        assert writer.wait() == 0
    assert verify(FileLog(str(tmp_path))).records == 200


@pytest.mark.parametrize("call", ["write", "pwrite"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
@pytest.mark.parametrize("count", [1, 3])
def test_a_disk_that_fails_for_a_while_is_an_error_and_the_chain_goes_on_intact(
    tmp_path, monkeypatch, call, number, count
):
    chain = Chain(FileLog(str(tmp_path)))
    chain.append([b'{"run":"before"}'])

    def fails(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, call, fails)
    for _ in range(2):
        with pytest.raises(StorageFailed, match=os.strerror(number)):
            chain.append([b'{"run":"meanwhile"}'] * count)
    monkeypatch.undo()
    assert verify(FileLog(str(tmp_path))).intact
    chain.append([b'{"run":"after"}'] * count)
    chain.close()
    verdict = verify(FileLog(str(tmp_path)))
    assert verdict.intact, verdict.problem
    assert [entry["run"] for entry in entries(FileLog(str(tmp_path)))][-1] == "after"


def test_a_line_of_many_pages_is_one_line_and_is_found_again(tmp_path):
    for n in range(3):
        chain = Chain(FileLog(str(tmp_path)))
        chain.append([b'{"n":%d,"ballast":"%s"}' % (n, b"x" * 300_000)])
        chain.close()
    assert verify(FileLog(str(tmp_path))).intact
    assert [entry["n"] for entry in entries(FileLog(str(tmp_path)))] == [0, 1, 2]


def test_the_record_is_its_owners_alone(tmp_path):
    chain = Chain(FileLog(str(tmp_path)))
    chain.append([b"{}"])
    chain.close()
    assert {path.name: oct(path.stat().st_mode & 0o777) for path in tmp_path.iterdir()} == {
        "record.log": "0o600",
        "head": "0o600",
        "key": "0o400",
    }


def test_a_directory_that_is_missing_is_an_error_of_storage(tmp_path):
    with pytest.raises(StorageFailed):
        Chain(FileLog(str(tmp_path / "nowhere")))
