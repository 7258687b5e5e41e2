"""Where installed servers are kept: whatever a killed process leaves there, one whole version is current or none."""

import os

import pytest

from haft.toolsets.providers.packages.command_line import parse_command
from haft.toolsets.providers.packages.places import Record, ServerPlace

COMMAND = parse_command("npx", ["said"])


@pytest.fixture
def kept(tmp_path):
    return ServerPlace(str(tmp_path / "state"), COMMAND, None)


def made(tmp_path, word):
    """An installed version that is not at its place yet."""
    (tmp_path / word).mkdir()
    (tmp_path / word / "index.js").write_text(word)
    return str(tmp_path / word), Record(word, "index.js", "node", "said 1", f"digest of {word}")


def put(kept, tmp_path, word):
    lock = kept.lock()
    kept.put(*made(tmp_path, word))
    lock.release(unlink=True)


@pytest.mark.parametrize("last", ["rename", "replace"])
def test_a_version_that_was_not_finished_is_never_current(kept, tmp_path, monkeypatch, last):
    put(kept, tmp_path, "first")

    def kill(*_paths):
        os._exit(9)

    process = os.fork()
    if process == 0:
        monkeypatch.setattr(os, last, kill)
        kept.lock()
        kept.put(*made(tmp_path, "second"))
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 9
    assert kept.current().folder == "first"
    put(kept, tmp_path, "third")
    assert kept.current().folder == "third"
    kept.tidy()
    assert not [name for name in os.listdir(kept.folder) if name.startswith("new-")]


@pytest.mark.parametrize("words", ["", "{", "[]", "{}", '{"format": 0}'])
def test_a_record_that_cannot_be_understood_is_none(kept, tmp_path, words):
    put(kept, tmp_path, "first")
    with open(os.path.join(kept.folder, "current.json"), "w") as file:
        file.write(words)
    assert kept.current() is None


def test_a_version_whose_program_is_gone_is_not_current(kept, tmp_path):
    put(kept, tmp_path, "first")
    os.unlink(os.path.join(kept.folder, "first", "index.js"))
    assert kept.current() is None


def test_one_process_installs_at_a_time(kept):
    lock = kept.lock()
    assert kept.lock() is None
    lock.release(unlink=True)
    assert kept.lock() is not None


def test_commands_with_other_packages_programs_or_interpreters_have_other_places(tmp_path):
    lines = [["said"], ["said@1"], ["-p", "said", "a"], ["-p", "said", "b"]]
    places = {ServerPlace(str(tmp_path), parse_command("npx", words), None).folder for words in lines}
    python = parse_command("uvx", ["said"])
    places |= {ServerPlace(str(tmp_path), python, path).folder for path in ("/usr/bin/python3", "/opt/python")}
    assert len(places) == 6
    same = parse_command("npx", ["-y", "said", "--argument"])
    assert ServerPlace(str(tmp_path), same, None).folder in places
