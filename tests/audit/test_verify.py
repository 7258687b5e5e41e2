"""Tampering shows: every byte, every line, every cut of a small record, and its head and key.

What is accepted by design, and tested to be accepted: a record exactly one line longer than its head says (a writer
died between the two), and bytes at its end that the head does not know (a writer died in the middle of a line).
"""

import itertools
import os
import re

import pytest

from haft.audit import entries, verify
from haft.audit.chain import Chain, Head, line_hash, parse_line, read_head, read_key

NAMED = re.compile(r"\brecords? \d+|\bhead\b|the record is missing")


def lines_of(record) -> list[bytes]:
    return (record / "record.log").read_bytes().splitlines(keepends=True)


def must_fail(record, what) -> str:
    verdict = verify(str(record))
    assert not verdict.intact, what
    assert NAMED.search(verdict.problem), (what, verdict.problem)
    return verdict.problem


def append(record, *bodies: bytes) -> None:
    chain = Chain(str(record))
    chain.append(bodies or [b'{"type":"end","run":"r_later"}'])
    chain.close()


def write_head(record, seq: int, digest: str, announced: int | None = None, announced_digest: str = "") -> None:
    head = Head(seq, digest, announced or seq, announced_digest or digest, genuine=True)
    (record / "head").write_bytes(head.to_bytes(read_key(str(record))))


def test_a_real_record_is_intact_and_has_every_call(record):
    verdict = verify(str(record))
    assert verdict.intact, verdict.problem
    assert verdict.torn == ()
    found = list(entries(str(record)))
    assert verdict.records == len(found) == len(lines_of(record))
    ends = [(entry["tool"], entry["status"]) for entry in found if entry["type"] == "end"]
    assert sorted(ends) == [
        ("double", "done"),
        ("double", "done"),
        ("double", "error"),
        ("no_such_tool", "error"),
        ("shell", "done"),
        ("write_file", "done"),
    ]
    assert [entry["tool"] for entry in found if entry["type"] == "start"] == ["write_file", "shell"]
    assert verdict.head == found[-1]["hash"]


def test_no_record_at_all_is_intact(tmp_path):
    assert verify(str(tmp_path)).intact


def test_a_record_whose_first_writer_died_before_its_first_line_is_intact_and_can_be_begun(tmp_path):
    (tmp_path / "record.log").touch()
    assert verify(str(tmp_path)).intact
    (tmp_path / "head").touch()
    assert verify(str(tmp_path)).intact
    (tmp_path / "head").write_bytes(Head(0, "0" * 64, 0, "0" * 64, genuine=True).to_bytes(b"k" * 32))
    assert verify(str(tmp_path)).intact
    append(tmp_path)
    assert verify(str(tmp_path)).intact


def test_a_record_that_was_emptied_together_with_its_key_shows(record):
    (record / "record.log").write_bytes(b"")
    (record / "key").unlink()
    must_fail(record, "emptied, and the key removed")


# Exhaustive on a small record.


@pytest.mark.parametrize("part", range(4))
def test_every_flipped_bit_shows(record, part):
    path = record / "record.log"
    # The last four records: what stands before them is checked in the same way, line by line.
    whole = path.read_bytes()
    start = len(whole) - sum(map(len, lines_of(record)[-4:]))
    head = read_head(str(record))
    with path.open("r+b", buffering=0) as file:
        for position in range(start + part, len(whole), 4):
            file.seek(position)
            file.write(bytes([whole[position] ^ (1 << (position // 4 % 8))]))
            must_fail(record, f"byte {position}")
            file.seek(position)
            file.write(whole[position : position + 1])
    assert verify(str(record)).intact
    assert read_head(str(record)) == head


def test_every_other_byte_in_place_of_one_shows(record):
    """Every value of a byte, on a sample of bytes: the first line's frame and some of its body."""
    path = record / "record.log"
    whole = path.read_bytes()
    with path.open("r+b", buffering=0) as file:
        for position in [0, 1, 2, 65, 66, 130, 131, 132, 200, len(whole) - 2, len(whole) - 1]:
            for value in range(256):
                if value != whole[position]:
                    file.seek(position)
                    file.write(bytes([value]))
                    must_fail(record, f"byte {position} = {value}")
            file.seek(position)
            file.write(whole[position : position + 1])


@pytest.mark.parametrize("byte", [b"0", b" ", b"\n", b"x", b"\0"])
def test_every_inserted_byte_shows(record, byte):
    path = record / "record.log"
    whole = path.read_bytes()
    first_end = whole.index(b"\n")
    # Behind the last line nothing is looked for: there it would be torn bytes that the head does not know.
    for position in [*range(0, 140, 3), first_end, first_end + 1, first_end + 2, len(whole) - 2]:
        path.write_bytes(whole[:position] + byte + whole[position:])
        must_fail(record, f"{byte!r} before byte {position}")


def test_every_deleted_byte_shows(record):
    path = record / "record.log"
    whole = path.read_bytes()
    for position in [*range(0, 140, 3), whole.index(b"\n"), len(whole) - 2, len(whole) - 1]:
        path.write_bytes(whole[:position] + whole[position + 1 :])
        must_fail(record, f"byte {position}")


def test_every_deletion_of_lines_shows(record):
    lines = lines_of(record)
    for start, end in itertools.combinations(range(len(lines) + 1), 2):
        (record / "record.log").write_bytes(b"".join(lines[:start] + lines[end:]))
        problem = must_fail(record, f"lines {start} to {end}")
        assert f"record {start + 1} " in problem


def test_every_swap_of_two_lines_shows(record):
    lines = lines_of(record)
    for one, two in itertools.combinations(range(len(lines)), 2):
        changed = list(lines)
        changed[one], changed[two] = lines[two], lines[one]
        (record / "record.log").write_bytes(b"".join(changed))
        assert f"record {one + 1} " in must_fail(record, f"{one} and {two}")


def test_every_duplicated_line_shows_wherever_it_is_put(record):
    lines = lines_of(record)
    for which, where in itertools.product(range(len(lines)), range(len(lines) + 1)):
        (record / "record.log").write_bytes(b"".join([*lines[:where], lines[which], *lines[where:]]))
        must_fail(record, f"{which} at {where}")


def test_every_truncation_shows(record):
    for size in reversed(range((record / "record.log").stat().st_size)):
        os.truncate(record / "record.log", size)
        must_fail(record, f"cut to {size} bytes")
    (record / "record.log").unlink()
    must_fail(record, "removed")


def test_a_rewrite_with_right_hashes_shows_by_the_head(record):
    lines = [parse_line(raw[:-1]) for raw in lines_of(record)]
    for changed in range(len(lines)):
        written, previous = [], "0" * 64
        for number, line in enumerate(lines):
            body = line.body.replace(b'"who":"', b'"who":"not-') if number == changed else line.body
            digest = line_hash(line.seq, previous, body)
            written.append(b"%d %s %s %s\n" % (line.seq, previous.encode(), digest.encode(), body))
            previous = digest
        (record / "record.log").write_bytes(b"".join(written))
        must_fail(record, f"line {changed} rewritten")


# The head and the key.


def test_every_flipped_byte_of_the_head_shows(record):
    whole = (record / "head").read_bytes()
    with (record / "head").open("r+b", buffering=0) as file:
        for position in range(len(whole)):
            for bit in (position % 8, 5):
                file.seek(position)
                file.write(bytes([whole[position] ^ (1 << bit)]))
                assert "head" in must_fail(record, f"byte {position}")
            file.seek(position)
            file.write(whole[position : position + 1])
    assert verify(str(record)).intact


def test_a_head_that_is_removed_emptied_or_cut_shows(record):
    os.truncate(record / "head", (record / "head").stat().st_size - 1)
    assert verify(str(record)).intact, "without its newline it says the same"
    for size in reversed(range((record / "head").stat().st_size)):
        os.truncate(record / "head", size)
        must_fail(record, f"cut to {size}")
    (record / "head").unlink()
    assert "head is missing" in must_fail(record, "removed")


def test_a_key_that_is_replaced_or_removed_shows(record):
    (record / "key").chmod(0o600)
    (record / "key").write_bytes(b"k" * 32)
    assert "head was changed" in must_fail(record, "replaced")
    (record / "key").unlink()
    assert "head was changed" in must_fail(record, "removed")


def test_a_head_rolled_back_by_more_than_one_line_shows(record):
    lines = [parse_line(raw[:-1]) for raw in lines_of(record)]
    for line in lines[:-2]:
        write_head(record, line.seq, line.hash)
        assert f"record {line.seq + 2} was added behind the head" in must_fail(record, f"rolled back to {line.seq}")


# What is accepted by design.


def test_a_record_exactly_one_line_longer_than_its_head_is_accepted(record):
    lines = [parse_line(raw[:-1]) for raw in lines_of(record)]
    write_head(record, lines[-2].seq, lines[-2].hash)
    assert verify(str(record)).intact


def test_an_announced_group_is_accepted_as_far_as_it_was_written(record):
    lines = lines_of(record)
    parsed = [parse_line(raw[:-1]) for raw in lines]
    first, last = parsed[1], parsed[-1]
    write_head(record, first.seq, first.hash, last.seq, last.hash)
    for count in range(2, len(lines) + 1):
        (record / "record.log").write_bytes(b"".join(lines[:count]))
        assert verify(str(record)).intact
    write_head(record, first.seq, first.hash, last.seq, "f" * 64)
    assert "not the one that was announced" in must_fail(record, "another group than announced")


def test_torn_bytes_that_the_head_does_not_know_are_accepted(record):
    lines = lines_of(record)
    before = parse_line(lines[-2][:-1])
    write_head(record, before.seq, before.hash)
    whole = b"".join(lines)
    for size in reversed(range(len(whole) - len(lines[-1]), len(whole))):
        os.truncate(record / "record.log", size)
        verdict = verify(str(record))
        assert verdict.intact, (size, verdict.problem)
        assert verdict.records == before.seq


# Going on afterwards must not hide it.


def test_going_on_after_a_torn_tail_leaves_a_voucher_and_the_record_intact(record):
    lines = lines_of(record)
    before = parse_line(lines[-2][:-1])
    whole = b"".join(lines)
    start = len(whole) - len(lines[-1])
    for size in [
        *range(start + 1, start + 150, 7),
        *range(start + 150, len(whole), 29),
        len(whole) - 2,
        len(whole) - 1,
    ]:
        write_head(record, before.seq, before.hash)
        (record / "record.log").write_bytes(whole[:size])
        append(record)
        verdict = verify(str(record))
        assert verdict.intact, (size, verdict.problem)
        # A line that lacks nothing but its newline is no torn line.
        assert verdict.torn == (() if size == len(whole) - 1 else (before.seq + 1,))
        assert list(entries(str(record)))[-1]["run"] == "r_later"


def test_torn_twice_over_is_vouched_for_together(record):
    with (record / "record.log").open("ab") as file:
        file.write(b'8 torn\n9 and torn again {"')
    append(record)
    verdict = verify(str(record))
    assert verdict.intact, verdict.problem
    assert len(verdict.torn) == 1


def test_a_voucher_vouches_only_for_the_bytes_it_saw(record):
    with (record / "record.log").open("ab") as file:
        file.write(b"torn bytes")
    append(record)
    path = record / "record.log"
    path.write_bytes(path.read_bytes().replace(b"torn bytes", b"born bytes"))
    must_fail(record, "the torn bytes were changed")


TAMPERINGS = {
    "cut by a line": lambda record, lines: (record / "record.log").write_bytes(b"".join(lines[:-1])),
    "cut by half": lambda record, lines: (record / "record.log").write_bytes(b"".join(lines[: len(lines) // 2])),
    "cut in the middle of a line": lambda record, lines: (record / "record.log").write_bytes(b"".join(lines)[:-50]),
    "emptied": lambda record, lines: (record / "record.log").write_bytes(b""),
    "last line edited": lambda record, lines: (record / "record.log").write_bytes(
        b"".join(lines).replace(b'"who":"', b'"who":"not-')
    ),
    "last line replaced by one with a right hash": lambda record, lines: (record / "record.log").write_bytes(
        b"".join(lines[:-1]) + forged(lines[-2], 1)
    ),
    "lines added": lambda record, lines: (record / "record.log").write_bytes(b"".join(lines) + forged(lines[-1], 3)),
    "head removed": lambda record, lines: (record / "head").unlink(),
    "cut, and the head removed": lambda record, lines: (
        (record / "record.log").write_bytes(b"".join(lines[:-2])),
        (record / "head").unlink(),
    ),
    "cut, and the head edited": lambda record, lines: (
        (record / "record.log").write_bytes(b"".join(lines[:-2])),
        (record / "head").write_bytes((record / "head").read_bytes().replace(b"0" * 16, b"1" * 16)),
    ),
    "key replaced": lambda record, lines: ((record / "key").unlink(), (record / "key").write_bytes(b"k" * 32)),
}


def forged(last: bytes, count: int) -> bytes:
    line = parse_line(last[:-1])
    seq, digest, written = line.seq, line.hash, b""
    for _ in range(count):
        seq, previous = seq + 1, digest
        digest = line_hash(seq, previous, b'{"type":"end","run":"r_forged"}')
        written += b"%d %s %s %s\n" % (seq, previous.encode(), digest.encode(), b'{"type":"end","run":"r_forged"}')
    return written


@pytest.mark.parametrize("what", TAMPERINGS)
def test_a_writer_that_goes_on_does_not_hide_that_the_record_was(record, what):
    TAMPERINGS[what](record, lines_of(record))
    must_fail(record, what)
    for _ in range(3):
        append(record)
        must_fail(record, f"{what}, then written on")


def test_a_writer_that_is_at_work_while_the_tail_is_cut_does_not_hide_it(record):
    chain = Chain(str(record))
    chain.append([b'{"type":"end","run":"r_1"}', b'{"type":"end","run":"r_2"}'])
    lines = lines_of(record)
    (record / "record.log").write_bytes(b"".join(lines[:-1]))
    chain.append([b'{"type":"end","run":"r_3"}'])
    chain.close()
    assert f"records {len(lines)} to {len(lines)} were cut off" in must_fail(record, "cut while it was written")


class Killed(BaseException):
    pass


@pytest.mark.parametrize("count", [1, 4])
def test_writers_that_die_between_lines_and_head_one_after_the_other_leave_the_record_intact(record, count):
    class Dying(Chain):
        def _move_head(self, head):
            if head.seq == last:
                raise Killed
            super()._move_head(head)

    for _ in range(4):
        last = len(lines_of(record)) + count
        chain = Dying(str(record))
        with pytest.raises(Killed):
            chain.append([b'{"type":"end","run":"r_1"}'] * count)
        chain.close()
        verdict = verify(str(record))
        assert verdict.intact, verdict.problem
        assert verdict.records == last
    append(record)
    assert verify(str(record)).intact
