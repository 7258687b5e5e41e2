"""`make check` fails on a word that was replaced."""

import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent.parent / "scripts" / "words.py"
found = importlib.util.spec_from_file_location("haft_words", SCRIPT)
words = importlib.util.module_from_spec(found)
found.loader.exec_module(words)


@pytest.mark.parametrize(
    ("path", "line", "is_old"),
    [
        ("README.md", "It runs behind walls.", True),
        ("src/haft/pipeline/run.py", "walls = 1", True),
        ("docs/concepts/limits.md", "by the wall clock", False),
        ("src/haft/contracts/renamed_fields.py", 'FIELDS = {"walls": "sandbox"}', False),
        ("docs/decisions/0012-walls.md", "# Walls", False),
        ("README.md", "swallowed", False),
        ("README.md", "the sandbox", False),
    ],
)
def test_an_old_word_is_found_unless_the_past_demands_it(path, line, is_old):
    assert bool([*words.old_words(path, line)]) == is_old
