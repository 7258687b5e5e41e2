"""Messages that a logger broke into several lines."""

import pytest

from haft.sandbox.wrapped_lines import unwrapped

DENIED = "OSError: [Errno 30] Read-only file system: '/srv/a b.txt'"


@pytest.mark.parametrize(
    "broken",
    [
        "OSError: [Errno 30] Read-only file system: '/srv/a b.txt'",
        "   OSError: [Errno 30] Read-only file      \n   system: '/srv/a b.txt'    ",
        "OSError: [Errno 30] Read-only\nfile system: '/srv/a b.txt'",
        "OSError: [Errno 30] Read-only file system:\n'/srv/a b.txt'",
        "OSError: [Errno 30] Read-only file system: '/srv/a\nb.txt'",
        "OSError: [Errno 30] Read-only file\nsystem:\n'/srv/a\nb.txt'",
    ],
)
def test_a_broken_message_becomes_one_line_with_the_whole_path(broken):
    assert unwrapped(f"before\n{broken}\nafter") == f"before\n{DENIED}\nafter"


def test_a_path_that_is_longer_than_a_line_is_put_together():
    lines = ["No such file or directory:", "'/srv/a-very-long-name-of-a-di", "rectory/me.txt'"]
    broken = "\n".join(f"{line:30}" for line in lines)
    joined = "No such file or directory: '/srv/a-very-long-name-of-a-directory/me.txt'"
    assert unwrapped(broken) == joined


@pytest.mark.parametrize(
    "log",
    [
        "cat: x: No such file or directory\nwrote /srv/other",
        "touch: cannot touch 'x': Read-only file system\nwrote '/srv/other'",
        "Read-only file\n  system: other indentation",
        "reading /srv/one\nRead-only file system: 'a.txt'\nreading /srv/other",
        "system: 'a'\nRead-only file",
    ],
)
def test_other_lines_stay_apart(log):
    assert unwrapped(log).splitlines() == [line.strip() for line in log.splitlines()]


def test_code_around_an_error_is_left_out():
    log = "╭─ Traceback ─╮\n│ ❱ raise OSError('Read-only file system') │\n╰─────╯\nValueError: no"
    assert unwrapped(log) == "ValueError: no"


def test_a_long_hostile_log_is_read_in_the_time_that_it_takes_to_read_it():
    hostile = "Read-only file system: " + ": '" * 20_000
    assert unwrapped(f"{hostile}\n{hostile}").count("\n") == 1


def test_the_width_of_a_column_is_that_of_its_longest_line():
    cut = [
        "╭──── Traceback ────╮",
        "╰───────────────────╯",
        "Read-only file",
        "system:",
        "'/srv/long-name-of-a-",
        "file.txt'",
    ]
    log = "\n".join(f"    {line:30}" for line in cut)
    assert unwrapped(log) == "Read-only file system: '/srv/long-name-of-a-file.txt'"
