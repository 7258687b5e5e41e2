"""The files of kept answers: bounded, private, and harmless if damaged."""

import os

from haft.storage import AnswerFiles


def test_the_least_recently_used_go_first(tmp_path):
    files = AnswerFiles(str(tmp_path / "cache"), 3, 1_000, 1e10)
    assert files.secret() == files.secret() is not None
    for number, name in enumerate("abc"):
        assert files.write(name, b"x" * 100)
        os.utime(tmp_path / "cache/answers" / name, (1e9 + number, 1e9 + number))
    assert files.read("a") is not None
    files.touch("a")
    assert files.write("d", b"x")
    assert sorted(os.listdir(tmp_path / "cache/answers")) == ["a", "c", "d"]
    assert not files.write("large", b"x" * 300)
    assert files.listed() == (3, 201)


def test_answers_that_nobody_used_for_long_go(tmp_path):
    files = AnswerFiles(str(tmp_path), 100, 1_000, 300)
    files.secret()
    for name in ("old", "half.0.tmp", "new"):
        files.write(name, b"x") if "tmp" not in name else (tmp_path / "answers" / name).write_bytes(b"x")
        if name != "new":
            os.utime(tmp_path / "answers" / name, (1e9, 1e9))
    files.prune()
    assert os.listdir(tmp_path / "answers") == ["new"]


def test_a_key_that_others_can_read_or_that_is_damaged_is_not_used(tmp_path):
    files = AnswerFiles(str(tmp_path), 100, 1_000, 300)
    assert files.secret() is not None
    key = tmp_path / "key"
    key.chmod(0o644)
    assert files.secret() is None
    key.chmod(0o600)
    key.write_bytes(b"short")
    assert files.secret() is None


def test_counts_add_up_and_damage_begins_them_anew(tmp_path):
    files = AnswerFiles(str(tmp_path / "cache"), 100, 1_000, 300)
    assert files.counts() == {}
    files.add_counts({"hits": 2})
    AnswerFiles(str(tmp_path / "cache"), 1, 1, 1).add_counts({"hits": 1, "missed: x": 1})
    assert files.counts() == {"hits": 3, "missed: x": 1}
    (tmp_path / "cache/counts").write_bytes(b"[")
    files.add_counts({"hits": 1})
    assert files.counts() == {"hits": 1}


def test_a_place_that_cannot_be_written_keeps_nothing(tmp_path):
    (tmp_path / "file").touch()
    files = AnswerFiles(str(tmp_path / "file"), 100, 1_000, 300)
    assert files.secret() is None
    assert not files.write("a", b"x")
    assert files.read("a") is None and files.listed() == (0, 0)
    files.add_counts({"hits": 1})
