"""The store of contents: each kept once, whole or not at all, and checked when it comes back."""

import fcntl
import hashlib
import os
import random
import resource
import signal
import subprocess
import sys
import time
import tracemalloc

import pytest

from haft.changes.store.blobs import Blobs, DamagedBlob
from haft.contracts import ToolFailed
from haft.files.sync import sync_filesystem
from sampling import SELDOM

pytestmark = pytest.mark.every_user(share=SELDOM)

NOISE = random.Random(7).randbytes(3_000_000)
TEXT = b"a line that comes again and again\n" * 100_000
CONTENTS = [
    b"",
    b"x",
    bytes(5),
    b"word " * 103,
    NOISE[:70_000],
    TEXT[:70_000],
    NOISE,
    TEXT,
    bytes(2_000_000),
    NOISE[:9_000] + bytes(1_500_000) + b"end",
]


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@pytest.fixture
def blobs(tmp_path):
    return Blobs(str(tmp_path / "store"))


def put(blobs, path, content: bytes) -> str:
    path.write_bytes(content)
    with path.open("rb") as file:
        file.seek(3)  # Where the descriptor stands must not matter.
        return blobs.put(file.fileno(), len(content))


def files_in(blobs) -> list[str]:
    return sorted(name for _, _, names in os.walk(blobs._directory) for name in names if name != "removed")


@pytest.mark.parametrize("content", CONTENTS, ids=lambda content: f"{len(content)}-{digest(content)[:6]}")
def test_what_was_put_comes_back(blobs, tmp_path, content):
    assert put(blobs, tmp_path / "file", content) == digest(content)
    assert blobs.has(digest(content))
    assert blobs.read(digest(content)) == content
    assert blobs.read(digest(content), 10) == content[:10]
    with blobs.open(digest(content)) as file:
        assert b"".join(iter(lambda: file.read(1000), b"")) == content
    with (tmp_path / "back").open("wb") as file:
        blobs.write_to(digest(content), file.fileno())
    assert (tmp_path / "back").read_bytes() == content
    assert list(blobs.digests()) == [digest(content)]


@pytest.mark.parametrize("content", CONTENTS, ids=lambda content: f"{len(content)}-{digest(content)[:6]}")
def test_bytes_and_a_file_of_them_are_one_blob(blobs, tmp_path, content):
    assert blobs.put_bytes(content) == put(blobs, tmp_path / "file", content)
    assert len(files_in(blobs)) == blobs.used()[0] == 1


def test_only_what_becomes_smaller_is_compressed(blobs, tmp_path):
    put(blobs, tmp_path / "text", TEXT)
    put(blobs, tmp_path / "noise", NOISE)
    blobs.put_bytes(b"x" * 511)
    assert {name.endswith(".z") for name in files_in(blobs) if name[:4] == digest(TEXT)[2:6]} == {True}
    assert [name for name in files_in(blobs) if name.endswith(".z")] == [digest(TEXT)[2:] + ".z"]
    count, taken = blobs.used()
    assert count == 3
    assert len(NOISE) <= taken < len(NOISE) + len(TEXT) // 10


def test_holes_take_no_room_in_the_store_nor_after(blobs, tmp_path):
    with (tmp_path / "sparse").open("wb") as file:
        file.write(b"begin")
        file.seek(64_000_000)
        file.write(b"end")
    if os.stat(tmp_path / "sparse").st_blocks * 512 > 1_000_000:
        pytest.skip("this filesystem has no holes")
    with (tmp_path / "sparse").open("rb") as file:
        kept = blobs.put(file.fileno(), 64_000_003)
    assert blobs.used()[1] < 1_000_000
    with (tmp_path / "back").open("wb") as file:
        blobs.write_to(kept, file.fileno())
    assert os.stat(tmp_path / "back").st_blocks * 512 < 1_000_000
    assert (tmp_path / "back").read_bytes() == (tmp_path / "sparse").read_bytes()


def test_a_large_file_takes_little_memory(blobs, tmp_path):
    path = tmp_path / "large"
    path.write_bytes(TEXT * 10)
    put(blobs, tmp_path / "file", b"warm")
    tracemalloc.start()
    try:
        with path.open("rb") as file:
            kept = blobs.put(file.fileno(), len(TEXT) * 10)
        with (tmp_path / "back").open("wb") as file:
            blobs.write_to(kept, file.fileno())
        assert tracemalloc.get_traced_memory()[1] < 8_000_000
    finally:
        tracemalloc.stop()


def test_what_is_not_there_is_not_found(blobs):
    missing = digest(b"never put")
    assert not blobs.has(missing)
    assert not blobs.has("unreadable")
    assert list(blobs.digests()) == []
    assert blobs.used() == (0, 0)
    blobs.sweep()
    blobs.sync()
    with pytest.raises(FileNotFoundError):
        blobs.open(missing)
    with pytest.raises(FileNotFoundError):
        blobs.read(missing)


def test_what_is_removed_is_gone_and_the_store_says_that_something_is(blobs):
    kept, other = blobs.put_bytes(TEXT), blobs.put_bytes(NOISE)
    word = blobs.removals()
    blobs.put_bytes(b"more")
    assert blobs.removals() == word
    blobs.remove(kept)
    blobs.remove(digest(b"never put"))
    assert not blobs.has(kept)
    assert blobs.has(other)
    assert blobs.removals() != word


@pytest.mark.parametrize("content", [NOISE, TEXT, TEXT[:5000], b"short"], ids=["raw", "packed", "small", "tiny"])
@pytest.mark.parametrize("harm", ["flip", "cut", "swap"])
def test_damage_is_noticed(blobs, tmp_path, content, harm):
    kept = blobs.put_bytes(content)
    place = blobs._find(kept)
    with open(place, "r+b") as file:
        data = file.read()
        if harm == "flip":
            file.seek(len(data) // 2)
            file.write(bytes([data[len(data) // 2] ^ 0x40]))
        elif harm == "cut":
            file.truncate(len(data) - 1)
        else:
            file.seek(0)
            file.write(b"something else entirely")
    with (tmp_path / "back").open("wb") as file, pytest.raises(DamagedBlob):
        blobs.write_to(kept, file.fileno())
    with pytest.raises(DamagedBlob) as caught:
        blobs.read(kept)
    assert caught.value.digest == kept


def test_an_empty_leftover_of_a_power_loss_is_no_blob(blobs):
    kept = blobs.put_bytes(TEXT)
    os.truncate(blobs._find(kept), 0)
    assert not blobs.has(kept)
    assert blobs.put_bytes(TEXT) == kept
    assert blobs.read(kept) == TEXT


@pytest.mark.parametrize("content", [NOISE, TEXT + NOISE, NOISE[:500_000]], ids=["raw", "packed", "small"])
def test_a_disk_that_takes_no_more_leaves_no_broken_blob(blobs, tmp_path, content):
    (tmp_path / "file").write_bytes(content)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        with (tmp_path / "file").open("rb") as file, pytest.raises(OSError):
            blobs.put(file.fileno(), len(content))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)
    assert files_in(blobs) == []
    assert put(blobs, tmp_path / "file", content) == digest(content)


@pytest.mark.parametrize("moment", [1, 2, 11, 12, 13, 14, 25])
def test_a_file_that_changes_meanwhile_is_kept_as_it_was_read(blobs, tmp_path, moment):
    path = tmp_path / "file"
    path.write_bytes(NOISE)
    pieces = 0

    def changing() -> bool:
        nonlocal pieces
        pieces += 1
        if pieces == moment:
            with path.open("r+b") as file:
                file.seek(1_000_000)
                file.write(b"changed")
                file.truncate(2_500_000)
        return False

    with path.open("rb") as file:
        kept = blobs.put(file.fileno(), len(NOISE), changing)
    assert digest(blobs.read(kept)) == kept


def test_a_file_that_grew_is_kept_whole(blobs, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(TEXT)
    with path.open("rb") as file:
        assert blobs.put(file.fileno(), 10) == digest(TEXT)
        assert blobs.put(file.fileno(), 10**9) == digest(TEXT)


def test_a_stopped_put_leaves_nothing(blobs, tmp_path):
    (tmp_path / "file").write_bytes(NOISE)
    for pieces in (0, 14):
        answers = iter([False] * pieces + [True])
        with (tmp_path / "file").open("rb") as file, pytest.raises(ToolFailed, match="stopped"):
            blobs.put(file.fileno(), len(NOISE), lambda answers=answers: next(answers))
    assert files_in(blobs) == []


def test_a_filesystem_that_shares_blocks_is_asked_to(blobs, tmp_path, monkeypatch):
    # The machines of the tests have no such filesystem: its answer is given by a copy.
    def clone(target, request, source):
        assert request == 0x40049409
        os.pwrite(target, os.pread(source, 10_000_000, 0), 0)
        return 0

    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(fcntl, "ioctl", clone)
    assert put(blobs, tmp_path / "file", TEXT) == digest(TEXT)
    assert files_in(blobs) == [digest(TEXT)[2:]]
    assert blobs.read(digest(TEXT)) == TEXT


def test_only_old_unfinished_files_are_swept(blobs, tmp_path):
    kept = blobs.put_bytes(TEXT)
    for name, age in (("tmp-1-a", 7200), ("tmp-2-b", 10)):
        place = tmp_path / "store" / name
        place.write_bytes(b"half")
        os.utime(place, (time.time() - age, time.time() - age))
    assert blobs.used()[0] == 1
    blobs.sweep()
    assert files_in(blobs) == sorted([digest(TEXT)[2:] + ".z", "tmp-2-b"])
    assert list(blobs.digests()) == [kept]


PUT_MANY = """
import sys
from haft.changes.store.blobs import Blobs
blobs = Blobs(sys.argv[1])
sys.stdin.readline()
for round in range(5):
    for number in range(40):
        blobs.put_bytes(b"%d " % number * 5000)
    with open(sys.argv[2], "rb") as file:
        blobs.put(file.fileno(), 3_000_000)
    if len(sys.argv) > 3:
        for number in range(0, 40, 3):
            import hashlib
            blobs.remove(hashlib.sha256(b"%d " % number * 5000).hexdigest())
print("done")
"""


def test_processes_may_put_and_remove_the_same_at_once(blobs, tmp_path):
    (tmp_path / "large").write_bytes(NOISE)
    arguments = [sys.executable, "-c", PUT_MANY, str(tmp_path / "store"), str(tmp_path / "large")]
    started = [
        subprocess.Popen(
            arguments + ["remove"] * (number == 3), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for number in range(4)
    ]
    for process in started:
        process.stdin.write("\n")
        process.stdin.flush()
    for process in started:
        assert process.communicate(timeout=120)[0] == "done\n"
        assert process.returncode == 0
    for number in range(40):
        blobs.put_bytes(b"%d " % number * 5000)
    assert sorted(blobs.digests()) == sorted([digest(b"%d " % n * 5000) for n in range(40)] + [digest(NOISE)])
    assert all(digest(blobs.read(kept)) == kept for kept in blobs.digests())
    assert len(files_in(blobs)) == 41


def test_a_kill_leaves_no_broken_blob(blobs, tmp_path, eventually):
    (tmp_path / "large").write_bytes(TEXT * 30)
    for _ in range(5):
        process = subprocess.Popen(
            [sys.executable, "-c", PUT_MANY, str(tmp_path / "store"), str(tmp_path / "large")],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        process.stdin.write("\n")
        process.stdin.flush()
        before = set(files_in(blobs))
        eventually(lambda known=before: any(name.startswith("tmp-") for name in set(files_in(blobs)) - known))
        process.kill()
        process.wait()
        process.stdin.close()
    assert all(digest(blobs.read(kept)) == kept for kept in blobs.digests())


def test_everything_can_be_made_durable_at_once(blobs, tmp_path):
    blobs.put_bytes(TEXT)
    blobs.sync()
    descriptor = os.open(tmp_path, os.O_RDONLY)
    sync_filesystem(descriptor)
    os.close(descriptor)
    if sys.platform == "linux":
        with pytest.raises(OSError):
            sync_filesystem(descriptor)
