"""What a model reads of an outcome."""

import json

import pytest

from haft import Failure, Outcome
from haft.contracts import Change, Changes, cut_middle

PICTURE = {"type": "image", "data": "aGk=", "mimeType": "image/png"}


def outcome(status="done", **more):
    return Outcome("r_1", "t", status, "agent", "T-1", **more)


def test_a_call_that_is_done_reads_as_its_output():
    answer = outcome(output="hello\n").for_model()
    assert (answer.text, answer.content, answer.is_error, str(answer)) == ("hello\n", (), False, "hello\n")


def test_a_result_is_there_once():
    assert outcome(result={"a": 1}).for_model().text == '{"a": 1}'
    assert outcome(output='{\n  "a": 1\n}', result={"a": 1}).for_model().text == '{\n  "a": 1\n}'
    assert outcome(output="3", result=3).for_model().text == "3"
    assert outcome(output="see below", result={"a": 1}).for_model().text == 'see below\nresult: {"a": 1}'


def test_what_went_wrong_is_said_in_words_after_the_output():
    failure = Failure("tool-failed", "it broke", "mend it", retryable=True)
    changes = Changes("overlay", True, None, "committed", (Change("a.txt", "modify", "file"),))
    answer = outcome("error", output="half of it", error=failure, changes=changes, notes=("a note",)).for_model()
    assert answer.is_error
    assert answer.text.splitlines() == [
        "half of it",
        "[haft] run r_1: error",
        "error (tool-failed): it broke",
        "hint: mend it",
        "changed files (committed): a.txt (modify)",
        "note: a note",
    ]


@pytest.mark.parametrize(
    "failure",
    [
        Failure("sandbox-denied", "the sandbox denied /etc/motd", "`--write /etc/motd` grants it"),
        Failure("rejected", "a rule rejects it", "run `haft trust`"),
        Failure("tool-failed", "no network", "grant the network with `--network`"),
    ],
)
def test_a_model_does_not_read_how_to_open_the_sandbox(failure):
    text = outcome("error", error=failure, notes=("X was withheld: `--env X` passes it",)).for_model().text
    assert not any(words in text for words in ("--write", "--network", "--env", "haft trust", "grant "))
    assert failure.message in text
    assert "the user can see what this is about, and allow it, with `haft show r_1`" in text


@pytest.mark.parametrize("most", [1, 40, 200, 1_000, 5_000])
def test_the_text_is_bounded(most):
    failure = Failure("tool-failed", "x" * 3_000)
    for each in (
        outcome(output="a" * 9_000),
        outcome("error", output="a" * 9_000, error=failure),
        outcome(result=["a"] * 4_000),
        outcome(output="a" * 9_000, truncated=True, output_bytes=10**7),
    ):
        assert len(each.for_model(most).text) <= most


def test_a_long_output_keeps_its_beginning_and_end_and_names_where_the_rest_is():
    text = outcome(output=f"begin{'x' * 50_000}end").for_model(2_000).text
    assert text.startswith("begin") and "characters are left out" in text and "xend\n[haft] run r_1: done" in text
    assert "the stored output of run r_1 has all of it" in text
    text = outcome(output="cut", truncated=True, output_bytes=60_000).for_model(pager="`more` reads {run}").text
    assert "the output has 60_000 bytes, and only its beginning and end are here: `more` reads r_1" in text


def test_pictures_stay_content_blocks():
    answer = outcome(output="see", content=(PICTURE,)).for_model()
    assert (answer.text, answer.content) == ("see", (PICTURE,))


def test_the_middle_that_is_left_out_is_counted():
    assert cut_middle("abc", 3) == "abc"
    cut = cut_middle("a" * 1_000, 100)
    left = cut.count("a") - "characters are left out".count("a")
    assert len(cut) <= 100 and f"{1_000 - left} characters are left out" in cut
    assert json.loads(cut_middle('["a"]', 5)) == ["a"]
