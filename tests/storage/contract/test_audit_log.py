"""The audit log as bytes: they only grow, and whoever writes is alone. Above it, the chain is intact."""

import contextlib

import pytest

from haft.audit import entries, verify
from haft.audit.chain import Chain


@pytest.fixture
def log(stores):
    log = stores.audit_log()
    yield log
    log.close()


def test_reading_makes_nothing(log, stores):
    assert not log.exists()
    assert (log.head(), log.key()) == (b"", None)
    assert verify(log).intact
    assert list(entries(log)) == []
    assert not stores.audit_log().exists()


def test_bytes_come_back_by_their_position(log, stores):
    log.begin()
    assert log.size() == 0
    with log.turn():
        log.append(b"first\n")
        assert log.size() == 6
        log.append(b"second\n")
    other = stores.audit_log()
    assert other.exists()
    assert (other.size(), other.read(0, 100), other.read(3, 9), other.read(13, 20)) == (
        13,
        b"first\nsecond\n",
        b"st\nsec",
        b"",
    )
    log.sync()


def test_the_head_is_replaced_whole_and_the_key_stays(log, stores):
    log.begin()
    with log.turn():
        for head in (b"x" * 400, b"short"):
            log.set_head(head.ljust(400))
            assert stores.audit_log().head() == head.ljust(400)
        log.set_key(b"k" * 32)
    assert stores.audit_log().key() == b"k" * 32


def test_a_checkpoint_is_the_last_that_was_set_or_none(log, stores):
    log.begin()
    assert log.checkpoint() == b""
    for data in (b"longer than the next", b"short"):
        log.set_checkpoint(data)
        assert stores.audit_log().checkpoint() in (data, b""), "a log that keeps none is checked as a whole"


def test_the_chain_is_intact_above_it_and_is_read_from_any_position(stores):
    with (
        contextlib.closing(Chain(stores.audit_log())) as first,
        contextlib.closing(Chain(stores.audit_log())) as second,
    ):
        first.append([b'{"type":"end","run":"r_1"}'])
        second.append([b'{"type":"end","run":"r_2"}', b'{"type":"end","run":"r_3"}'])
        position = stores.audit_log().size()
        first.append([b'{"type":"end","run":"r_4"}'])
    log = stores.audit_log()
    verdict = verify(log)
    assert (verdict.intact, verdict.records, verdict.torn) == (True, 4, ())
    assert [entry["run"] for entry in entries(log)] == ["r_1", "r_2", "r_3", "r_4"]
    assert [entry["run"] for entry in entries(log, position)] == ["r_4"]
