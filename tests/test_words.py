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
        ("README.md", "Tools that you agreed to", True),
        ("README.md", "a call that was tried", True),
        ("README.md", "tried again", False),
        ("docs/guides/skills.md", "the changes are held back", True),
        ("src/haft/sources/toolbox.py", "A tool is asked what it is.", True),
    ],
)
def test_an_old_word_is_found_unless_the_past_demands_it(path, line, is_old):
    assert bool([*words.old_words(path, line)]) == is_old
