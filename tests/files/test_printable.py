import pytest

from haft.files import shown


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("plain name.txt", "plain name.txt"),
        ("größe", "größe"),
        ("two\nlines", "two\\nlines"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("caf\udce9", "caf\\xe9"),
        ("right\u202eleft", "right\\u202eleft"),
        ("\ud800", "\\ud800"),
    ],
)
def test_a_name_is_shown_on_one_line_with_nothing_hidden(name, text):
    assert shown(name) == text
