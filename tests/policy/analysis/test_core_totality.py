"""The analysis returns a result for any text."""

import contextlib
import threading

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from haft.policy.analysis import AnalysisContext, analyse
from haft.policy.analysis.analyser import _parts
from haft.policy.analysis.program import Program
from haft.policy.analysis.text.source import NotUnderstood

TABLE = {"ls": Program(all_options_harmless=True), "echo": Program(operands="words", all_options_harmless=True)}
CONTEXT = AnalysisContext("/nowhere/at/all")
HOSTILE = [
    "x" * 1_000_000,
    "\0" * 1_000_000,
    "(" * 10_000 + ")" * 10_000,
    "a;" * 16_000,
    "a|" * 10_000 + "a",
    "$(" * 10_000,
    "${" * 10_000,
    ">" * 32_000,
    "<<a\n" * 8_000,
    "f()" * 10_000,
    "if a;then " * 1_500 + "ls;" + "fi;" * 1_500,
    "sh -c 'rm x';" * 500,
]
PIECES = st.sampled_from([
    "ls", "echo", "a", "$x", '"$x"', "'q'", '"', "'", "`", "\\", "$(", ")", "(", "{", "}", ";", "&&", "&", " ", "\n",
    "\\\n", ">", "<", "<<EOF\n", "\nEOF\n", "[[", "]]", "[", "]", "#", "=", "*", "~", "for", "in", "do", "done", "if",
    "then", "fi", "case", "esac", ";;", "!", "time", "2>&1", "<(", "$((", "))", "é", "x=", "|", "||", "|&",
])  # fmt: skip


@pytest.mark.parametrize("line", HOSTILE, ids=range(len(HOSTILE)))
def test_a_line_that_is_too_long_too_deep_or_too_large_needs_approval(line):
    analysis = analyse(line, CONTEXT, TABLE)
    assert not analysis.safe
    assert "not-understood" in {danger for part in analysis.parts for danger in part.dangers}


@pytest.mark.parametrize(
    "character",
    [
        "\0",
        "\r",
        "\x1b",
        "\x7f",
        "\x85",
        "\xa0",
        "\u200b",
        "\u202e",
        "\u2066",
        "\u2028",
        "\u3000",
        "\ufeff",
        "\ud800",
        "\ue000",
        "\u3164",
        "\ufe0f",
        "\u00ad",
        "\U000e0041",
    ],
)
def test_a_misleading_character_needs_approval_and_is_named(character):
    (part,) = analyse(f"echo 'a{character}b'", CONTEXT, TABLE).parts
    assert not part.safe
    assert part.dangers == ("not-understood",)
    assert f"U+{ord(character):04X}" in part.reason


def test_letters_of_any_script_pass():
    assert analyse("echo 'häuser' 日本語 \"дом\"", CONTEXT, TABLE).understood
    assert analyse("echo 日本語 'ä b'", CONTEXT, TABLE).parts[0].words == ("echo", "日本語", "ä b")


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.one_of(st.text(max_size=200), st.lists(PIECES, max_size=25).map("".join)))
def test_any_text_gets_a_result_without_an_internal_error(line):
    with contextlib.suppress(NotUnderstood):
        assert _parts(line, CONTEXT, TABLE, 0)


def test_threads_do_not_disturb_each_other():
    answers = []

    def work():
        answers.extend(analyse(f"echo {'a ' * 50}; ls {number}", CONTEXT, TABLE).understood for number in range(20))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [True] * 80
