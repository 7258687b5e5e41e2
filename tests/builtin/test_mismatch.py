import pytest

from haft.builtin.mismatch import why_not_found

SOURCE = b"""import os

def greet(name):
    message = f"hello {name}"
    print(message)
    return message
"""


@pytest.mark.parametrize(
    ("content", "wanted", "hint"),
    [
        (b"", b"x", "the file is empty"),
        (
            b"a\r\nb\r\n",
            b"a\nb\n",
            "the file has CRLF line endings: end the lines of old_string and new_string with \\r\\n",
        ),
        (
            b"a\nb\n",
            b"a\r\nb",
            "the file has LF line endings: end the lines of old_string and new_string with \\n, not \\r\\n",
        ),
        (SOURCE, b"  print(message)\n  return message", "only whitespace differs: line 5 is `    print(message)`"),
        (SOURCE, b"print( message )", "only whitespace differs: line 5 is `    print(message)`"),
        (
            SOURCE,
            b"def greet(name):\n    mesage = f'hello {name}'\n    print(message)",
            "the closest to `    mesage = f'hello {name}'` is line 4: `    message = f\"hello {name}\"`",
        ),
        (
            SOURCE,
            b"    print(message)\nimport os",
            "each of its lines is in the file, but not in this order without other lines between them",
        ),
        (SOURCE, b"zzzzzzzz = 12345", "no line of the file is like `zzzzzzzz = 12345`"),
        (b"\tindented\n", b"    indented\n", "only whitespace differs: line 1 is `\\tindented`"),
    ],
)
def test_the_hint_says_what_stands_there_instead(content, wanted, hint):
    assert why_not_found(content, wanted) == hint


def test_the_work_is_bounded_for_hostile_files():
    # Each of these would take minutes if every line were compared with care.
    alike = b"".join(b"the quick brown fox jumps over the lazy dog %d\n" % number for number in range(200_000))
    assert "the closest" in why_not_found(alike, b"the quick brown fox jumps over the lazy cat")
    assert why_not_found(b"}\n" * 2_000_000, b"}\n" * 1000 + b"x") is not None
    assert why_not_found(b"a" * 10_000_000, b"b" * 1_000_000) is not None
