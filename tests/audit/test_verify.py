"""Tampering shows: every byte, every line, every cut of a small record, its head and key, and whatever lies behind it.

What is accepted by design, and tested to be accepted: the beginning of a write that the head announces, because a
writer died in its middle.
"""

import hashlib
import itertools
import os
import re

import pytest

import sampling
from haft.audit import entries, last_entries, line_checker, verify
from haft.audit.chain import Chain
from haft.audit.head import Head, boot_id, read_head
from haft.audit.lines import line_hash, line_seal, next_line, parse_line
from haft.storage.sqlite.audit_log import FileLog

NAMED = re.compile(r"\brecords? \d+|\bhead\b|the audit log is missing")


def lines_of(record) -> list[bytes]:
    return (record / "record.log").read_bytes().splitlines(keepends=True)


def must_fail(record, what) -> str:
    verdict = verify(FileLog(str(record)))
    assert not verdict.intact, what
    assert NAMED.search(verdict.problem), (what, verdict.problem)
    return verdict.problem


def append(record, *bodies: bytes) -> None:
    chain = Chain(FileLog(str(record)))
    chain.append(bodies or [b'{"type":"end","run":"r_later"}'])
    chain.close()


def written(seq: int, previous: str, digest: str, body: bytes, seal: str | None = None) -> bytes:
    return b" ".join(word.encode() for word in (str(seq), previous, digest, seal) if word is not None) + b" %s\n" % body


def write_head(record, seq: int, digest: str, announced: int | None = None, announced_digest: str = "") -> None:
    size = (record / "record.log").stat().st_size
    head = Head(seq, digest, announced or seq, announced_digest or digest, size, boot=boot_id())
    (record / "head").write_bytes(head.to_bytes(FileLog(str(record)).key()))


class Killed(BaseException):
    pass


def announced_only(record, *bodies: bytes) -> bytes:
    """Kill a writer between announcing and writing; what it would have written."""

    def kill(piece):
        announced.append(piece)
        raise Killed

    announced = []
    chain = Chain(FileLog(str(record)))
    chain.append([b'{"type":"end","run":"r_last"}'])
    chain._log.append = kill
    with pytest.raises(Killed):
        chain.append(bodies)
    chain.close()
    return announced[0]


def test_a_real_record_is_intact_and_has_every_call(record):
    verdict = verify(FileLog(str(record)))
    assert verdict.intact, verdict.problem
    assert verdict.torn == ()
    found = list(entries(FileLog(str(record))))
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
    assert verify(FileLog(str(tmp_path))).intact


def test_a_record_whose_first_writer_died_before_its_first_line_is_intact_and_can_be_begun(tmp_path):
    (tmp_path / "record.log").touch()
    assert verify(FileLog(str(tmp_path))).intact
    (tmp_path / "head").touch()
    assert verify(FileLog(str(tmp_path))).intact
    (tmp_path / "head").write_bytes(Head(0, "0" * 64, 0, "0" * 64).to_bytes(b"k" * 32))
    assert verify(FileLog(str(tmp_path))).intact
    append(tmp_path)
    assert verify(FileLog(str(tmp_path))).intact


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
    head = read_head(FileLog(str(record)))
    with path.open("r+b", buffering=0) as file:
        for position in range(start + part, len(whole), 4):
            file.seek(position)
            file.write(bytes([whole[position] ^ (1 << (position // 4 % 8))]))
            must_fail(record, f"byte {position}")
            file.seek(position)
            file.write(whole[position : position + 1])
    assert verify(FileLog(str(record))).intact
    assert read_head(FileLog(str(record))) == head


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
    for position in [*range(0, 180, 3), first_end, first_end + 1, first_end + 2, len(whole) - 2, len(whole)]:
        path.write_bytes(whole[:position] + byte + whole[position:])
        must_fail(record, f"{byte!r} before byte {position}")


def test_every_deleted_byte_shows(record):
    path = record / "record.log"
    whole = path.read_bytes()
    for position in [*range(0, 180, 3), whole.index(b"\n"), len(whole) - 2, len(whole) - 1]:
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
    sizes = range((record / "record.log").stat().st_size)
    ends = {at + near for at in itertools.accumulate(map(len, lines_of(record))) for near in (-2, -1, 0, 1)}
    drawn = {*sampling.some(sizes, 1000, "truncations"), *ends}
    for size in sorted(drawn.intersection(sizes), reverse=True):
        os.truncate(record / "record.log", size)
        must_fail(record, f"cut to {size} bytes")
    (record / "record.log").unlink()
    must_fail(record, "removed")


@pytest.mark.parametrize("seal", ["kept", "left out", "of another key", "of another line"])
def test_a_rewrite_with_right_hashes_shows_at_the_first_line_that_was_changed(record, seal):
    lines = [parse_line(raw[:-1]) for raw in lines_of(record)]
    for changed in range(len(lines)):
        rewritten, previous = b"", "0" * 64
        for number, line in enumerate(lines):
            body = line.body.replace(b'"who":"', b'"who":"not-') if number == changed else line.body
            digest = line_hash(line.seq, previous, body, sealed=seal != "left out")
            sealed = {
                "kept": line.seal,
                "left out": None,
                "of another key": line_seal(b"k" * 32, line.seq, digest),
                "of another line": lines[number - 1].seal,
            }[seal]
            rewritten += written(line.seq, previous, digest, body, sealed)
            previous = digest
        (record / "record.log").write_bytes(rewritten)
        first = changed + 1 if seal == "kept" else 1
        assert f"record {first} " in must_fail(record, f"line {changed} rewritten")


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
    assert verify(FileLog(str(record))).intact


def test_a_head_that_is_removed_emptied_or_cut_shows(record):
    os.truncate(record / "head", (record / "head").stat().st_size - 1)
    assert verify(FileLog(str(record))).intact, "without its newline it says the same"
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


def test_a_head_that_is_rolled_back_shows(record):
    lines = [parse_line(raw[:-1]) for raw in lines_of(record)]
    for line in lines[:-1]:
        write_head(record, line.seq, line.hash)
        assert f"record {line.seq + 1} was added after the head" in must_fail(record, f"rolled back to {line.seq}")


# Behind the head.


def forged(last: bytes, count: int, *, key: bytes | None = b"k" * 32) -> bytes:
    line, lines = parse_line(last[:-1]), b""
    seq, digest, body = line.seq, line.hash, b'{"type":"end","run":"r_forged"}'
    for _ in range(count):
        seq, previous = seq + 1, digest
        if key is None:
            digest = line_hash(seq, previous, body, sealed=False)
            lines += written(seq, previous, digest, body)
        else:
            line, digest = next_line(key, seq, previous, body)
            lines += line
    return lines


ADDED = {
    "a line with a right hash and a seal of another key": lambda lines: forged(lines[-1], 1),
    "a line with a right hash and no seal": lambda lines: forged(lines[-1], 1, key=None),
    "three lines": lambda lines: forged(lines[-1], 3),
    "half a line": lambda lines: forged(lines[-1], 1)[:180],
    "a line without its newline": lambda lines: forged(lines[-1], 1)[:-1],
    "the beginning of any next line": lambda lines: forged(lines[-1], 1)[:10],
    "garbage": lambda lines: b"garbage",
    "garbage with a newline": lambda lines: b"garbage\n",
    "an empty line": lambda lines: b"\n",
    "a space": lambda lines: b" ",
    "zeros": lambda lines: b"\0" * 4096,
    "the last line again": lambda lines: lines[-1],
}


@pytest.mark.parametrize("what", ADDED)
def test_whatever_is_added_behind_the_head_shows_and_goes_on_showing(record, what):
    lines = lines_of(record)
    with (record / "record.log").open("ab") as file:
        file.write(ADDED[what](lines))
    must_fail(record, what)
    append(record)
    must_fail(record, f"{what}, then written on")


@pytest.mark.parametrize("what", ADDED)
def test_what_is_added_behind_an_announced_write_is_not_taken_for_it(record, what):
    announced = announced_only(record, b'{"type":"end","run":"r_1"}', b'{"type":"end","run":"r_2"}')
    with (record / "record.log").open("ab") as file:
        file.write(announced)
    assert verify(FileLog(str(record))).intact
    with (record / "record.log").open("ab") as file:
        file.write(ADDED[what](lines_of(record)))
    must_fail(record, what)
    append(record)
    must_fail(record, f"{what}, then written on")


@pytest.mark.parametrize("what", [what for what in ADDED if what != "the beginning of any next line"])
def test_what_stands_in_place_of_an_announced_write_is_not_taken_for_it(record, what):
    announced_only(record, b'{"type":"end","run":"r_1"}', b'{"type":"end","run":"r_2"}')
    assert verify(FileLog(str(record))).intact
    with (record / "record.log").open("ab") as file:
        file.write(ADDED[what](lines_of(record)))
    must_fail(record, what)
    append(record)
    must_fail(record, f"{what}, then written on")


def test_a_crash_anywhere_in_a_write_leaves_the_record_intact_and_is_said(record):
    announced = announced_only(record, b'{"type":"end","run":"r_1"}', b'{"type":"end","run":"r_2"}')
    count, whole = len(lines_of(record)), (record / "record.log").read_bytes()
    head = (record / "head").read_bytes()
    for size in range(len(announced) + 1):
        (record / "record.log").write_bytes(whole + announced[:size])
        (record / "head").write_bytes(head)
        (record / "checkpoint").unlink(missing_ok=True)  # Of another crash, which left more.
        verdict = verify(FileLog(str(record)))
        assert verdict.intact, (size, verdict.problem)
        assert verdict.records == count + announced[:size].count(b"\n")
        if size < len(announced):
            said = f"the write of record {count + 2} was announced, but interrupted after record {verdict.records}"
            assert verdict.interrupted == said
        else:
            assert verdict.interrupted is None
        append(record)
        verdict = verify(FileLog(str(record)))
        assert verdict.intact, (size, verdict.problem)
        assert verdict.interrupted is None
        runs = [entry.get("run") for entry in entries(FileLog(str(record)))]
        assert runs[-1] == "r_later"
        # A line that lacks nothing but its newline is no torn line.
        assert ("r_1" in runs) == (announced[: size + 1].count(b"\n") >= 1)
        assert ("r_2" in runs) == (announced[: size + 1].count(b"\n") >= 2)


def test_a_write_that_was_announced_is_not_replaced_by_another(record):
    announced = announced_only(record, b'{"type":"end","run":"r_1"}', b'{"type":"end","run":"r_2"}')
    lines, whole = lines_of(record), (record / "record.log").read_bytes()
    for key in (b"k" * 32, None):
        (record / "record.log").write_bytes(whole + forged(lines[-1], 2, key=key))
        must_fail(record, "another write than announced")
    # Even with a seal of ours, a write is what was announced.
    (record / "record.log").write_bytes(whole + forged(lines[-1], 2, key=FileLog(str(record)).key()))
    assert "not the one that was announced" in must_fail(record, "another write than announced")
    longer = announced[:200].split(b"{")[0] + b'{"run":"' + b"x" * 2000
    (record / "record.log").write_bytes(whole + longer)
    assert "that haft did not write" in must_fail(record, "longer than announced")


# After power loss: the log is on disk, the head is an older one.


def test_after_power_loss_a_log_that_is_longer_than_its_head_is_intact_as_far_as_it_bears_our_seal(record, monkeypatch):
    lines = lines_of(record)
    whole = b"".join(lines)
    older = parse_line(lines[-4][:-1])
    write_head(record, older.seq, older.hash)
    must_fail(record, "no power was lost")
    monkeypatch.setattr(line_checker, "boot_id", lambda: "another start")
    for size in range(len(whole) - sum(map(len, lines[-3:])), len(whole) + 1, 7):
        for tail in (b"", b"\0" * 50):
            (record / "record.log").write_bytes(whole[:size] + tail)
            verdict = verify(FileLog(str(record)))
            assert verdict.intact, (size, verdict.problem)
    for added in (forged(lines[-1], 1), forged(lines[-1], 1, key=None), b"garbage", b"\n", forged(lines[-1], 1)[:200]):
        (record / "record.log").write_bytes(whole + added)
        must_fail(record, added)


# The first format.


@pytest.fixture
def old(tmp_path):
    """A log of the first format, as it was written then."""
    (tmp_path / "key").write_bytes(b"k" * 32)
    written, previous = b"", "0" * 64
    for seq in range(1, 6):
        body = b'{"type":"end","run":"r_%d"}' % seq
        digest = hashlib.sha256(b"haft-record-1\n%016x%s%s" % (seq, previous.encode(), body)).hexdigest()
        written += b"%d %s %s %s\n" % (seq, previous.encode(), digest.encode(), body)
        previous = digest
    (tmp_path / "record.log").write_bytes(written)
    write_old_head(tmp_path, 5, previous)
    return tmp_path


def write_old_head(record, seq: int, digest: str) -> None:
    words = b"%020d %s %020d %s" % (seq, digest.encode(), seq, digest.encode())
    seal = hashlib.blake2b(words, key=b"k" * 32, digest_size=32).hexdigest()
    (record / "head").write_bytes(b"%s %s\n" % (words, seal.encode()))


def test_a_log_of_the_first_format_verifies_as_before_and_goes_on_in_the_new_one(old):
    assert verify(FileLog(str(old))).intact
    before = (old / "record.log").read_bytes()
    append(old)
    append(old)
    verdict = verify(FileLog(str(old)))
    assert verdict.intact, verdict.problem
    assert verdict.records == 7
    assert (old / "record.log").read_bytes().startswith(before)
    assert [entry["run"] for entry in entries(FileLog(str(old)))] == [
        *(f"r_{n}" for n in range(1, 6)),
        "r_later",
        "r_later",
    ]
    assert [parse_line(raw[:-1]).seal is not None for raw in lines_of(old)] == [False] * 5 + [True] * 2


def test_what_a_crash_may_have_left_behind_an_old_head_is_accepted_and_said_and_ends_with_the_next_write(old):
    lines = lines_of(old)
    last = parse_line(lines[-2][:-1])
    write_old_head(old, last.seq, last.hash)
    assert "not announced" in verify(FileLog(str(old))).interrupted
    (old / "record.log").write_bytes(b"".join(lines) + forged(lines[-1], 1, key=None))
    must_fail(old, "two lines behind an old head")
    (old / "record.log").write_bytes(b"".join(lines)[:-5])
    (old / "checkpoint").unlink()  # Of another crash, which left more.
    assert "not a record" in verify(FileLog(str(old))).interrupted
    append(old)
    verdict = verify(FileLog(str(old)))
    assert verdict.intact, verdict.problem
    assert (verdict.torn, verdict.interrupted) == ((5,), None)


def test_nobody_goes_back_to_the_first_format(old):
    append(old)
    append(old)
    lines = lines_of(old)
    whole = b"".join(lines)
    (old / "record.log").write_bytes(whole + forged(lines[-1], 1, key=None))
    must_fail(old, "an old line behind the head")
    bare = [parse_line(raw[:-1]) for raw in lines]
    previous, bared = bare[4].hash, whole[: sum(map(len, lines[:5]))]
    for line in bare[5:]:
        digest = line_hash(line.seq, previous, line.body, sealed=False)
        bared += written(line.seq, previous, digest, line.body)
        previous = digest
    (old / "record.log").write_bytes(bared)
    assert "record 6 (run r_later) has no seal" in must_fail(old, "seals taken off")


def test_every_flipped_bit_of_a_log_of_two_formats_shows(old):
    append(old)
    path = old / "record.log"
    whole = path.read_bytes()
    for position in range(0, len(whole), 3):
        path.write_bytes(whole[:position] + bytes([whole[position] ^ (1 << position % 8)]) + whole[position + 1 :])
        must_fail(old, f"byte {position}")


# Going on afterwards must not hide it.


def torn(record, size: int) -> None:
    """Tear a write after `size` bytes."""
    announced = announced_only(record, b'{"type":"end","run":"r_torn"}')
    with (record / "record.log").open("ab") as file:
        file.write(announced[:size])


def test_torn_twice_over_is_vouched_for_together(record):
    torn(record, 50)
    chain, append_really = Chain(FileLog(str(record))), None

    def tear(piece):
        append_really(piece[:100])
        raise Killed

    append_really, chain._log.append = chain._log.append, tear
    with pytest.raises(Killed):
        chain.append([b"{}"])
    chain.close()
    assert verify(FileLog(str(record))).intact
    append(record)
    verdict = verify(FileLog(str(record)))
    assert verdict.intact, verdict.problem
    assert len(verdict.torn) == 1


def test_a_voucher_vouches_only_for_the_bytes_it_saw(record):
    torn(record, 182)
    append(record)
    assert verify(FileLog(str(record))).intact
    path = record / "record.log"
    path.write_bytes(path.read_bytes().replace(b'{"type":"end","r\n', b'{"type":"end","s\n'))
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


@pytest.mark.parametrize("what", TAMPERINGS)
def test_a_writer_that_goes_on_does_not_hide_that_the_record_was(record, what):
    TAMPERINGS[what](record, lines_of(record))
    must_fail(record, what)
    for _ in range(3):
        append(record)
        must_fail(record, f"{what}, then written on")


def test_a_writer_that_is_at_work_while_the_tail_is_cut_does_not_hide_it(record):
    chain = Chain(FileLog(str(record)))
    chain.append([b'{"type":"end","run":"r_1"}', b'{"type":"end","run":"r_2"}'])
    lines = lines_of(record)
    (record / "record.log").write_bytes(b"".join(lines[:-1]))
    chain.append([b'{"type":"end","run":"r_3"}'])
    chain.close()
    assert f"record {len(lines)} is missing" in must_fail(record, "cut while it was written")


@pytest.mark.parametrize("count", [1, 4])
def test_writers_that_die_between_lines_and_head_one_after_the_other_leave_the_record_intact(record, count):
    class Dying(Chain):
        def _move_head(self, seq, *rest):
            if seq == last:
                raise Killed
            super()._move_head(seq, *rest)

    for _ in range(4):
        last = len(lines_of(record)) + count
        chain = Dying(FileLog(str(record)))
        with pytest.raises(Killed):
            chain.append([b'{"type":"end","run":"r_1"}'] * count)
        chain.close()
        verdict = verify(FileLog(str(record)))
        assert verdict.intact, verdict.problem
        assert verdict.records == last
    append(record)
    assert verify(FileLog(str(record))).intact


def test_a_check_since_the_last_one_sees_what_was_changed_behind_it_and_says_where_it_began(record):
    checked = verify(FileLog(str(record)))
    append(record)
    append(record)
    quick = verify(FileLog(str(record)), since_checkpoint=True)
    assert (quick.intact, quick.since, quick.records) == (True, checked.records, checked.records + 2)
    append(record)
    *before, last = lines_of(record)
    (record / "record.log").write_bytes(b"".join(before) + last.replace(b"r_later", b"r_never"))
    quick = verify(FileLog(str(record)), since_checkpoint=True)
    assert (quick.intact, quick.since) == (False, checked.records + 2)
    assert f"record {checked.records + 3}" in quick.problem


def test_a_record_that_is_not_where_it_was_checked_last_shows(record):
    verify(FileLog(str(record)))
    *before, last = lines_of(record)
    (record / "record.log").write_bytes(b"".join(before) + last.replace(b'"end"', b'"enD"'))
    assert "is not in its place" in verify(FileLog(str(record)), since_checkpoint=True).problem


def test_a_checkpoint_that_haft_did_not_seal_is_not_believed(record):
    verify(FileLog(str(record)))
    said = (record / "checkpoint").read_bytes()
    (record / "checkpoint").unlink()
    first, *others = lines_of(record)
    (record / "record.log").write_bytes(first.replace(b'"', b"'", 1) + b"".join(others))
    forged = said[:-5] + bytes(reversed(said[-5:-1])) + b"\n"
    for words in (forged, b"", b"haft-checkpoint-1 7 x 0", said.replace(b" ", b"  ", 1)):
        (record / "checkpoint").write_bytes(words)
        verdict = verify(FileLog(str(record)), since_checkpoint=True)
        assert (verdict.intact, verdict.since) == (False, 0), words


def test_a_check_of_the_end_alone_begins_at_a_sealed_record_and_makes_no_checkpoint(record):
    for _ in range(50):
        append(record)
    whole = verify(FileLog(str(record)))
    (record / "checkpoint").unlink()
    verdict = verify(FileLog(str(record)), since_checkpoint=True, most=3000)
    assert verdict.intact
    assert whole.records - 20 < verdict.since < verdict.records == whole.records
    assert not (record / "checkpoint").exists()


def test_the_newest_records_are_read_from_the_end(record):
    for _ in range(100):
        append(record, *[b'{"type":"end","run":"r_later","pad":"%s"}' % (b"x" * 200)] * 40)
    expected = list(entries(FileLog(str(record))))[::-1]
    assert last_entries(FileLog(str(record)), 10**9) == expected
    sizes = []

    class Counting(FileLog):
        def read(self, start, end):
            sizes.append(end - start)
            return super().read(start, end)

    assert last_entries(Counting(str(record)), 5) == expected[:5]
    assert sum(sizes) < (record / "record.log").stat().st_size / 10


def test_an_older_log_put_back_with_its_head_does_not_have_what_was_checked_since(record):
    old = {name: (record / name).read_bytes() for name in ("record.log", "head")}
    append(record)
    checked = verify(FileLog(str(record)))
    for name, data in old.items():
        (record / name).write_bytes(data)
    for quick in (False, True, False):  # No check takes the evidence away.
        verdict = verify(FileLog(str(record)), since_checkpoint=quick)
        assert not verdict.intact
        assert f"record {checked.records}, which was intact at the last check" in verdict.problem


def test_another_log_that_grew_from_an_older_one_does_not_have_what_was_checked(record):
    old = {name: (record / name).read_bytes() for name in ("record.log", "head")}
    append(record)
    checked = verify(FileLog(str(record)))
    for name, data in old.items():
        (record / name).write_bytes(data)
    append(record, b'{"type":"end","run":"r_other"}', b'{"type":"end","run":"r_further"}')
    assert f"record {checked.records}, which was intact" in must_fail(record, "it went on in another way")


def test_a_check_of_the_end_alone_does_not_pass_over_records_that_were_changed(record):
    for _ in range(50):
        append(record)
    before = (record / "record.log").read_bytes()
    *changed, last = before[-3000:].replace(b"r_later", b"r_never").splitlines(keepends=True)
    (record / "record.log").write_bytes(before[:-3000] + b"".join(changed) + last.replace(b"r_never", b"r_later"))
    verdict = verify(FileLog(str(record)), since_checkpoint=True, most=3000)
    assert not verdict.intact and "was changed" in verdict.problem


def test_a_checkpoint_that_finds_no_room_leaves_nothing_behind(record, monkeypatch):
    def full(_descriptor, _data):
        raise OSError(28, "No space left on device")

    names = set(os.listdir(record))
    monkeypatch.setattr(os, "write", full)
    assert verify(FileLog(str(record))).intact
    monkeypatch.undo()
    assert set(os.listdir(record)) == names
