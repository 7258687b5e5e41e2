"""Words are read as bash reads them: the results are compared with bash itself."""

import os
import random
import shutil
import subprocess

import pytest

from haft.policy.analysis import AnalysisContext, analyse
from haft.policy.analysis.program import Program

BASH = shutil.which("bash")
TABLE = {"printf": Program(operands="words", all_options_harmless=True)}
PIECES = [
    "a", "b c", "-", "--", "=", "'", '"', "\\", "\\\\", "\\'", '\\"', "''", '""', "'x y'", '"x y"', "'\"'", '"\'"', "$",
    '"$"', "\\$x", '"\\$x"', '"\\`"', '"\\a"', "{", "}", "{}", "{a,b}", "{1..3}", "{3..1}", "{a}", "{,}", "x{a,'b c'}y",
    "#", "a#b", "!", "%", "^", "@", ",", ":", "a:b", "é", "日", "[", "]", "$'a\\tb'", "$'\\''", "\\\n", '"a\\\nb"', " ",
    "\t", "  ", "\\ ", "\\{a,b}", "{'a,b'}", "\\;", "\\&", "';'", '"|"', "~", "a~", "\\~", "+", "a=b", "\\*", "'*'",
]  # fmt: skip


@pytest.mark.skipif(BASH is None, reason="needs bash")
def test_words_that_are_called_literal_are_what_bash_makes_of_them(tmp_path):
    chance = random.Random(5)
    context = AnalysisContext(str(tmp_path.resolve()))
    lines = ["printf " + "".join(chance.choices(PIECES, k=chance.randint(1, 7))) for _ in range(4_000)]
    seen = []
    for line in dict.fromkeys(lines):
        analysis = analyse(line, context, TABLE)
        if analysis.understood and len(analysis.parts) == 1 and analysis.parts[0].literal and analysis.parts[0].words:
            seen.append((line, analysis.parts[0].words))
    assert len(seen) > 500
    script = "".join(f"printf '%s\\0' {line.removeprefix('printf ')}\nprintf '\\1\\0'\n" for line, _ in seen)
    answer = subprocess.run(
        [str(BASH), "--norc"], input=script.encode(), cwd=tmp_path, capture_output=True, check=True,
        env={"LC_ALL": "C.UTF-8", "PATH": os.defpath},
    )  # fmt: skip
    found = [tuple(each.split("\0")[:-1]) for each in answer.stdout.decode().split("\1\0")[:-1]]
    assert len(found) == len(seen)
    for (line, words), real in zip(seen, found, strict=True):
        # `printf '%s\0'` without a word prints one empty word.
        assert (words[1:] or ("",)) == real, line


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (r"printf a\ b 'c d'e", ("printf", "a b", "c de")),
        ('printf "a\\"b" "\\a"', ("printf", 'a"b', "\\a")),
        ("printf {a,b}.py", ("printf", "a.py", "b.py")),
        ("printf '' \"\"", ("printf", "", "")),
        ("printf $'it\\'s\\n'", ("printf", "it's\n")),
        ("printf a$ $", ("printf", "a$", "$")),
    ],
)
def test_quotes_are_removed(tmp_path, line, words):
    (part,) = analyse(line, AnalysisContext(str(tmp_path)), TABLE).parts
    assert part.words == words
    assert part.literal


@pytest.mark.parametrize("word", ["$x", '"$x"', "*.py", "~", "$(printf a)", "a=~", "[ab]", "<(printf a)"])
def test_a_word_that_bash_expands_is_shown_as_it_was_written(tmp_path, word):
    part = analyse(f"printf {word}", AnalysisContext(str(tmp_path)), TABLE).parts[0]
    assert part.words == ("printf", word)
    assert not part.literal


@pytest.mark.parametrize(
    "line",
    [
        "printf -5<a",
        "printf -52>/dev/null",
        "printf <\na",
        "printf -l<<-E\nx\nE\n",
        "printf <<< 2>&1",
        "printf {x}</dev/null",
        "printf a;;",
        "printf a\\\nb",
        "printf `printf \\\\a`",
        "time if printf a; then printf b; fi",
        "cat <<E\nx\nE \nprintf a\nE",
    ],
)
def test_a_line_that_the_parser_and_bash_read_differently_is_not_understood(tmp_path, line):
    assert not analyse(line, AnalysisContext(str(tmp_path)), TABLE).understood
