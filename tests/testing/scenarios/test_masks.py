"""`<time>`: what it stands for, and what it leaves alone."""

import datetime
import shutil
import subprocess

import pytest

from haft.testing.scenarios.masks import days_around, masked, masked_like, without_changing_times, without_times

TIMES = (
    "2026-01-31",
    "2026-01-31 10:52",
    "2026-01-31T10:52:30.125Z",
    "2026-01-31 10:52:30 +0100",
    "Sat Jan 31 10:52:30 UTC 2026",
    "Sat Jan  3 10:52:30 2026",
    "Sat Jan 31 10:52:30 2026 +0100",
    "Sat Jan 31 10:52:30 AM CET 2026",
    "Sat 31 Jan 2026 10:52:30 AM CET",
    "Sat, 31 Jan 2026 10:52:30 GMT",
    "10:52:30",
    "10:52:30.5",
)


@pytest.mark.parametrize("time", TIMES)
def test_a_time_is_one_placeholder(time):
    assert without_times(f"at {time}.") == "at <time>."
    assert masked_like("at <time>.", f"at {time}.", "") == "at <time>."


@pytest.mark.parametrize(
    "text", ["1:2:3", "00:11:22:33:44:55", "::10:52:30:1", "x10:52:30", "99:52:30", "10:52", "Sat Jan 31"]
)
def test_other_texts_are_no_times(text):
    assert without_times(text) == text


@pytest.mark.parametrize("words", [[], ["-u"], ["-R"], ["+%T"], ["+%F"], ["+%FT%T%z"], ["-Iseconds"]])
def test_what_date_prints_is_a_time(words):
    date = subprocess.run(
        [shutil.which("date"), *words], capture_output=True, text=True, check=True, env={"LC_ALL": "C"}
    )
    assert without_times(date.stdout) == "<time>\n"


def test_other_times_of_the_text_are_compared():
    assert masked_like("<time> at 10:00:00", "11:22:33 at 10:00:00", "") == "<time> at 10:00:00"
    assert masked_like("<time> at 10:00:00", "11:22:33 at 10:00:01", "") != "<time> at 10:00:00"
    assert "at <time>, 10:00:00" in masked_like("at <time>, 10:00:00", "log: at 11:22:33, 10:00:00 end", "")


def test_only_times_that_change_are_replaced():
    assert without_changing_times("10:00:00 11:00:00", ["10:00:00 11:00:01", "10:00:00 11:00:00"]) == "10:00:00 <time>"
    assert without_changing_times("a 10:00:00", ["b 10:00:00"]) is None
    assert without_changing_times("<time> 11:00:00", ["<time> <time>"]) == "<time> <time>"


def test_times_of_a_day_are_replaced_in_every_form_and_zone():
    at = datetime.datetime(2026, 3, 5, 23, 30, tzinfo=datetime.UTC).timestamp()
    text = "2026-03-05 Fri Mar  6 01:30:00 EET 2026; Thu, 05 Mar 2026 23:30:00 GMT; Mon Mar  9 10:00:00 2026; 10:00:00"
    assert masked(text, "/w", times=days_around(at)) == "<time> <time>; <time>; Mon Mar  9 10:00:00 2026; 10:00:00"
