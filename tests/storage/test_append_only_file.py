"""Whole pieces or nothing."""

import errno
import os

import pytest

from haft.contracts import StorageFailed
from haft.storage import AppendOnlyFile


def test_pieces_come_back_in_order(tmp_path):
    file = AppendOnlyFile(str(tmp_path / "log"))
    file.append(b"one\n")
    file.append(b"two\n")
    assert file.read(0, file.size()) == b"one\ntwo\n"
    assert file.read(4, 100) == b"two\n"
    file.close()


def test_a_piece_that_did_not_fit_is_taken_back_whole(tmp_path, monkeypatch):
    file = AppendOnlyFile(str(tmp_path / "log"))
    file.append(b"first\n")
    write, calls = os.write, []

    def full_after_three_bytes(descriptor, data):
        calls.append(len(data))
        if len(calls) > 1:
            raise OSError(errno.ENOSPC, "no space left")
        return write(descriptor, data[:3])

    monkeypatch.setattr(os, "write", full_after_three_bytes)
    with pytest.raises(StorageFailed, match="no space left"):
        file.append(b"second\n")
    monkeypatch.undo()
    file.append(b"third\n")
    assert file.read(0, file.size()) == b"first\nthird\n"
    file.close()


def test_a_write_that_takes_several_turns_is_one_piece(tmp_path, monkeypatch):
    file = AppendOnlyFile(str(tmp_path / "log"))
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:2]))
    file.append(b"abcdefg")
    monkeypatch.undo()
    assert file.read(0, 100) == b"abcdefg"
    file.close()


def test_a_directory_that_is_missing_is_an_error_of_storage(tmp_path):
    with pytest.raises(StorageFailed, match="cannot be opened"):
        AppendOnlyFile(str(tmp_path / "nowhere" / "log"))
