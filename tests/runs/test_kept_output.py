"""Kept output against the simplest model of it: the head, the tail, and how much is missing between."""

import os
import struct
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haft.contracts import RunId
from haft.runs import kept_output as kept_module
from haft.runs.kept_output import KeptOutput, KeptReader, has_kept, kept_frames

RUN = RunId("r_0123456789abcdef01234567")


def frames(outputs):
    return list(kept_frames(str(outputs), RUN))


def check(found, pieces, bound):
    """What must hold of frames that were kept of `pieces`."""
    whole = b"".join(data for _stream, data in pieces)
    gaps = [position for position, frame in enumerate(found) if frame.skipped]
    assert len(gaps) <= 1
    cut = gaps[0] if gaps else len(found)
    head = b"".join(frame.data for frame in found[:cut])
    tail = b"".join(frame.data for frame in found[cut:])
    skipped = found[cut].skipped if gaps else 0
    assert len(head) + skipped + len(tail) == len(whole)
    assert whole.startswith(head)
    assert whole.endswith(tail)
    assert len(head) + len(tail) <= max(bound, 3)
    if skipped:
        assert len(head) == max(1, bound // 2)
        assert len(tail) >= max(1, bound // 4)
    else:
        assert head == whole
    # Every byte has the number and the stream of the piece that brought it.
    owners = [(seq, stream) for seq, (stream, data) in enumerate(pieces) for _ in data]
    told = [(frame.seq, frame.stream) for frame in found for _ in frame.data]
    assert told == owners[: len(head)] + owners[len(whole) - len(tail) :]


@given(
    st.lists(st.tuples(st.sampled_from(["stdout", "stderr"]), st.binary(max_size=40)), max_size=40),
    st.integers(min_value=1, max_value=120),
)
def test_head_and_tail_are_kept_and_what_is_missing_is_known_to_the_byte(pieces, bound):
    with tempfile.TemporaryDirectory() as outputs:
        kept = KeptOutput(outputs, RUN, bound)
        for seq, (stream, data) in enumerate(pieces):
            kept.append(seq, float(seq), stream, data)
            # Another process may read at any moment, and sees as much as was written until then.
            check(frames(outputs), pieces[: seq + 1], bound)
        kept.close()
        assert kept.total == sum(len(data) for _stream, data in pieces)


@given(st.lists(st.tuples(st.binary(max_size=40), st.booleans()), max_size=40), st.integers(1, 120))
def test_a_reader_that_comes_back_sees_every_byte_once_or_is_told_how_many_it_missed(pieces, bound):
    with tempfile.TemporaryDirectory() as outputs:
        kept, reader = KeptOutput(outputs, RUN, bound), KeptReader(outputs, RUN)
        whole, position = b"", 0
        for seq, (data, looks) in enumerate([*pieces, (b"", True)]):
            kept.append(seq, 0.0, "stdout", data)
            whole += data
            for frame in reader.frames() if looks else ():
                position += frame.skipped
                assert whole[position : position + len(frame.data)] == frame.data
                position += len(frame.data)
            assert not looks or position == len(whole)
        kept.close()


@pytest.mark.parametrize("size", [*range(46, 54), *range(72, 78), *range(97, 104), *range(122, 128), 1000])
def test_every_edge_of_the_bound_in_single_bytes(tmp_path, size):
    kept = KeptOutput(str(tmp_path), RUN, 100)
    pieces = [("stdout", bytes([number % 256])) for number in range(size)]
    for seq, (stream, data) in enumerate(pieces):
        kept.append(seq, 0.0, stream, data)
    kept.close()
    check(frames(tmp_path), pieces, 100)


def test_a_frame_that_is_cut_off_is_not_there_yet(tmp_path):
    kept = KeptOutput(str(tmp_path), RUN, 1000)
    kept.append(0, 0.0, "stdout", b"first")
    kept.append(1, 0.0, "stderr", b"second")
    kept.close()
    (path,) = [os.path.join(where, name) for where, _, names in os.walk(tmp_path) for name in names]
    whole = Path(path).read_bytes()
    first_end = len(whole) - len(b"second") - 17
    for size in range(len(whole)):
        with open(path, "wb") as file:
            file.write(whole[:size])
        expected = [b"first"] if size >= first_end else []
        assert [frame.data for frame in frames(tmp_path)] == expected


def test_what_lies_on_disk_is_never_much_more_than_the_bound(tmp_path):
    kept = KeptOutput(str(tmp_path), RUN, 100_000)
    for seq in range(1000):
        kept.append(seq, 0.0, "stdout", b"x" * 1000)
        size = sum(
            os.path.getsize(os.path.join(where, name)) for where, _, names in os.walk(tmp_path) for name in names
        )
        assert size <= 100_000 * 1.03
    kept.close()


def test_a_full_disk_ends_the_keeping_and_not_the_run(tmp_path, monkeypatch):
    kept = KeptOutput(str(tmp_path), RUN, 1000)
    kept.append(0, 0.0, "stdout", b"kept")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "writev", full)
    kept.append(1, 0.0, "stdout", b"lost")
    monkeypatch.undo()
    kept.append(2, 0.0, "stdout", b"lost too")
    kept.close()
    assert "No space left" in str(kept.failure)
    assert [frame.data for frame in frames(tmp_path)] == [b"kept"]


def test_a_run_that_wrote_nothing_has_nothing(tmp_path):
    kept = KeptOutput(str(tmp_path), RUN, 10)
    assert not has_kept(str(tmp_path), RUN)
    kept.append(0, 0.0, "stdout", b"x" * 100)
    kept.close()
    assert has_kept(str(tmp_path), RUN)


def lines_from(outputs, first):
    """What is kept from a line on, and how many lines were passed over; as whoever prints it sees it."""
    found, number = {}, 1
    for frame in kept_frames(str(outputs), RUN, first):
        number = frame.line
        for piece in frame.data.splitlines(keepends=True):
            found[number] = found.get(number, b"") + piece
            number += piece.endswith(b"\n")
    return {number: line for number, line in found.items() if number >= first}


@given(
    st.lists(st.text("ab\n", max_size=30).map(str.encode), min_size=1, max_size=40),
    st.integers(min_value=8, max_value=400),
    st.integers(min_value=1, max_value=40),
)
def test_lines_read_from_a_mark_are_those_read_from_the_start(pieces, bound, every):
    with tempfile.TemporaryDirectory() as outputs, pytest.MonkeyPatch.context() as patch:
        patch.setattr(kept_module, "_MARK_EVERY", every)
        kept = KeptOutput(outputs, RUN, bound)
        for seq, data in enumerate(pieces):
            kept.append(seq, float(seq), "stdout", data)
        kept.close()
        everything = lines_from(outputs, 1)
        for first in (*everything, max(everything, default=1) + 3):
            expected = {number: line for number, line in everything.items() if number >= first}
            assert lines_from(outputs, first) == expected, first


def test_lines_of_a_large_output_are_found_without_reading_what_stands_before_them(tmp_path, monkeypatch):
    kept = KeptOutput(str(tmp_path), RUN, 1 << 26)
    for seq in range(512):
        kept.append(seq, 0.0, "stdout", b"%063d\n" % seq * 512)
    kept.close()
    reads = []

    class Counting:
        def __init__(self, *words):
            self._file = open(*words)

        def __enter__(self):
            return self

        def __exit__(self, *_):
            self._file.close()

        def __getattr__(self, name):
            return getattr(self._file, name)

        def read(self, *size):
            data = self._file.read(*size)
            reads.append(len(data))
            return data

    monkeypatch.setattr(kept_module, "open", Counting, raising=False)
    frame = next(frame for frame in kept_frames(str(tmp_path), RUN, 200_000) if frame.line + 512 > 200_000)
    assert frame.data.startswith(b"%063d\n" % (frame.line // 512))
    assert sum(reads) < 3 << 20  # of 16 MiB


def test_marks_that_are_torn_or_point_beyond_the_end_change_nothing(tmp_path):
    kept = KeptOutput(str(tmp_path), RUN, 1 << 26)
    for seq in range(64):
        kept.append(seq, 0.0, "stdout", b"%063d\n" % seq * 512)
    kept.close()
    [marks] = tmp_path.rglob("*.lines")
    whole = lines_from(tmp_path, 30_000)
    marks.write_bytes(b"\xff" * 24 + marks.read_bytes()[24:] + b"\0\0\0")
    assert lines_from(tmp_path, 30_000) == whole
    marks.unlink()
    assert lines_from(tmp_path, 30_000) == whole


@pytest.mark.parametrize(
    "forge",
    [
        lambda position, size, lines: (position - 5, size, lines),
        lambda position, size, lines: (lines, position, size),
        lambda _position, _size, _lines: (0, 0, 0),
    ],
    ids=["within a frame", "turned", "zeros"],
)
def test_marks_that_cannot_be_true_are_not_believed(tmp_path, forge):
    kept = KeptOutput(str(tmp_path), RUN, 1 << 26)
    for seq in range(128):
        kept.append(seq, 0.0, "stdout", b"%063d\n" % seq * 512)
    kept.close()
    [marks] = tmp_path.rglob("*.lines")
    whole = lines_from(tmp_path, 60_000)
    forged = [forge(*mark) for mark in struct.iter_unpack(">QQQ", marks.read_bytes())]
    marks.write_bytes(b"".join(struct.pack(">QQQ", *mark) for mark in forged))
    assert lines_from(tmp_path, 60_000) == whole
    marks.unlink()
    marks.mkdir()
    assert lines_from(tmp_path, 60_000) == whole


def test_marks_that_find_no_room_end_themselves_and_not_the_output(tmp_path, monkeypatch):
    write = os.write

    def full(descriptor, data):
        return write(descriptor, data if len(data) != 24 else data[:16])

    kept = KeptOutput(str(tmp_path), RUN, 1 << 26)
    kept.append(0, 0.0, "stdout", b"%063d\n" % 0 * 512)
    monkeypatch.setattr(os, "write", full)
    for seq in range(1, 80):
        kept.append(seq, 0.0, "stdout", b"%063d\n" % seq * 512)
    monkeypatch.undo()
    for seq in range(80, 160):
        kept.append(seq, 0.0, "stdout", b"%063d\n" % seq * 512)
    kept.close()
    assert kept.failure is None
    [marks] = tmp_path.rglob("*.lines")
    found = lines_from(tmp_path, 60_000)
    marks.unlink()
    assert lines_from(tmp_path, 60_000) == found
