"""What follows the key is the answer."""

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haft.contracts import MARK, NO_SECRETS
from haft.sources.agent_studio import template_output as answers
from haft.sources.agent_studio.template_output import TemplateOutput

BLANKS = b" \t\r\n\f\v"


class Context:
    """Remembers what it was told."""

    secrets = NO_SECRETS

    def __init__(self) -> None:
        self.said, self.beside = b"", b""

    def output(self, _stream, data: bytes) -> None:
        self.said += data

    def stderr_only(self, data: bytes, _stream="stderr") -> None:
        self.beside += data

    def processes_ended(self, _children) -> None: ...


def heard(parts, key="tool_output"):
    context = Context()
    sink = TemplateOutput(context, key)
    for part in parts:
        sink.output("stdout", part)
    return sink.close(), context


def cut(data: bytes, places):
    ends = [0, *sorted(min(place, len(data)) for place in places), len(data)]
    return [data[one:two] for one, two in itertools.pairwise(ends)]


def test_the_key_is_found_wherever_it_is_cut():
    whole = b"before tool_output {'a': 1}\n"
    for place in range(len(whole)):
        _, context = heard([whole[:place], whole[place:]])
        assert (context.said, context.beside) == (b"{'a': 1}", b"before ")


@given(
    st.lists(st.sampled_from([b"k", b"ke", b"key", b"y", b" ", b"\n", b"x", b"kk", b"\xff"]), max_size=12),
    st.lists(st.integers(0, 30), max_size=8),
)
def test_it_is_what_stands_behind_the_first_key_without_the_blanks_around_it(parts, places):
    data = b"".join(parts)
    before, found, after = data.partition(b"key")
    _, context = heard(cut(data, places), "key")
    assert context.said == (after if found else before).strip(BLANKS)
    assert context.beside == (before if found else b"")


@given(st.binary(max_size=60), st.lists(st.integers(0, 60), max_size=5))
def test_without_a_key_all_of_it_is_the_answer(data, places):
    for key in (None, ""):
        _, context = heard(cut(data, places), key)
        assert (context.said, context.beside) == (data.strip(BLANKS), b"")


def test_what_waits_for_a_key_is_bounded(monkeypatch):
    monkeypatch.setattr(answers, "MOST_HELD", 1000)
    _, context = heard([b"a" * 700] * 10, "key")
    assert context.said.startswith(b"[") and context.said.endswith(b"a" * 700)
    assert context.beside + context.said.partition(b"\n")[2] == b"a" * 7000
    _, context = heard([b"a" * 700] * 10 + [b"ke", b"y end"], "key")
    assert (context.said, context.beside) == (b"end", b"a" * 7000)


@pytest.mark.parametrize(
    ("said", "result"),
    [
        ('{"a": [1, null]}', {"a": [1, None]}),
        ("1", 1),
        ("{'a': 1}", None),
        ("NaN", None),
        ("", None),
        ("[" * 100_000, None),
        ('"ü"', "ü"),
    ],
)
def test_an_answer_that_is_json_is_a_result(said, result):
    assert heard([b"tool_output " + said.encode()])[0] == result


def test_a_result_that_is_too_long_is_text_only(monkeypatch):
    monkeypatch.setattr(answers, "LARGEST_RESULT", 10)
    words = json.dumps("a" * 20).encode()
    result, context = heard([b"tool_output ", words[:6], words[6:]])
    assert result is None and context.said == words


def test_trouble_names_the_error_first():
    sink = TemplateOutput(Context(), None)
    assert sink.failure_text() == ""
    sink.output("stderr", b"Traceback (most recent call last):\n  File x\n    y\nValueError: one\ntwo\n")
    assert sink.failure_text().startswith("ValueError: one\ntwo\nTraceback ")


def test_what_an_exception_says_in_indented_lines_comes_first_too():
    heard = TemplateOutput(Context(), None)
    heard.output(
        "stderr", b"noise\nTraceback (most recent call last):\n  File 'tool.py', line 3, in <module>\n    f()\n"
    )
    heard.output(
        "stderr", b"pydantic.ValidationError: 1 validation error\nfield\n  Input should be [type=x]\n    For more\n"
    )
    said = heard.failure_text().splitlines()
    assert said[0] == "pydantic.ValidationError: 1 validation error" and said[3] == "    For more"
    assert said[4].startswith("Traceback ") and "noise" not in said


def test_user_parameters_are_not_in_what_is_said_of_an_error():
    context = Context()
    sink = TemplateOutput(context, None, {"key": "sk-1234567", "short": "abc"})
    sink.output("stderr", b"1 validation error for UserParameters\nkey\n  bad [type=int, input_value='sk-12...67', ")
    sink.output("stderr", b"input_type=str]\nabc sk-12")
    sink.output("stderr", b"34567")
    sink.close()
    for said in (context.beside.decode(), sink.failure_text()):
        assert "sk-1" not in said and "input_value=…, input_type=str" in said and said.endswith(f"abc {MARK}")
