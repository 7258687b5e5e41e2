"""Lines that seem to only read, but do more: each needs approval. Similar harmless lines must pass."""

import pytest

from haft.policy.analysis import AnalysisContext, analyse
from haft.policy.analysis.command.pattern_free import prints_no_pattern
from haft.policy.analysis.deadline import Deadline, NotUnderstood
from haft.policy.analysis.program import Argument
from haft.policy.analysis.text.arithmetic import Arithmetic
from haft.policy.analysis.tree.matching import matcher

DEEP = "s/s/s/s/s/s/s/s"
UP = "../../../../../../../etc/hostname"
OUT = "/etc/hostname"

LEFT_OUT = [
    f"cd {DEEP} < nosuch; cat {UP}",
    f"cd {DEEP} <&9; cat {UP}",
    f"cd {DEEP} > /dev/stdout; cat {UP}",
    f"{{ cd {DEEP}; }} < nosuch; cat {UP}",
    f"{{ cd {DEEP}; }} 3<&7; cat {UP}",
    f"{{ cd {DEEP} 2>&1; }} >&-; cat {UP}",
    f"! cd {DEEP} < nosuch; cat {UP}",
    f"true && cd {DEEP} < nosuch; cat {UP}",
    f"cd {DEEP} < nosuch || cat {UP}",
    f"if cd {DEEP} < nosuch; then :; fi; cat {UP}",
    f"cd {DEEP} | cat; cat {UP}",
    f"(cd {DEEP}); cat {UP}",
    f"cd {DEEP}/nope/..; cat {UP[3:]}",
    f"cd {DEEP}/../s/nope/..; cat {UP[3:]}",
    f'x={OUT}; {{ x=a.txt; }} < nosuch; cat "$x"',
    f'x={OUT}; x=a.txt < nosuch; cat "$x"',
    f'x={OUT}; x=a.txt <<< 1; cat "$x"',
    f'x={OUT}; if true; then x=a.txt; fi < nosuch; cat "$x"',
    f'x={OUT}; case a in a) x=a.txt;; esac < nosuch; cat "$x"',
    f'x={OUT}; for x in a.txt; do :; done <&9; cat "$x"',
    f'x={OUT}; for x in $(ls empty); do :; done; cat "$x"',
    f'x={OUT}; for x in $(ls | grep nosuch); do :; done; cat "$x"',
    'cd in; cat "${PWD}x/hostname"',
    f"i=0\nwhile [ $i -lt 9 ]; do : $((i+1)); i=08; done; cd {DEEP}\ncat {UP}",
    f"cd nope/../{DEEP}; cat {UP}",
    f"{{ {{ cd {DEEP}; }} < nosuch; true; }} && cat {UP}",
]
FAILS = [
    "$((1/0))",
    "$((08))",
    "$((2**-1))",
    "$((1 +))",
    "$((1 1))",
    "$((1 ? 2))",
    "$((7 % 00))",
    "$((1 / zero))",
    "$((1 % zero))",
    "$((0$eight))",
    "$((eight-$less))",
    "$((2#9))",
    "${word:0:-7}",
]
UNSEEN = [
    'x="1 5 touch"; timeout -k $x 5 cat a.txt',
    "timeout -k $(echo 1 5 touch) 5 cat a.txt",
    "timeout -s $(echo 9 5 touch) 5 cat a.txt",
    "timeout $(echo 5 touch) b.txt",
    "nice -n $(echo 1 touch) cat a.txt",
    "nice 5 ls",
    "env LC_ALL=$(echo C touch) ls",
    "find . -type f -print0 | xargs -0 sort < list",
    "find . -type f -print0 | xargs -0 cat < <(printf /etc/hostname)",
    "find missing ./s -type f -print0 |& xargs -0 cat",
    "find missing ./s -type f -print0 2>&1 | xargs -0 cat",
    "find . -name 'empty*' -type f -exec jq -n {} +",
    "find . -name 'empty*' -type f -exec timeout 5 jq -n {} +",
    "find . -name 'empty*' -type f -print0 | xargs -0 jq -n",
    "find . -name 'empty*' -type f | xargs -I{} jq -n {}",
    "find . -type f -exec sed {} +",
    "find . -type f -exec awk {} \\;",
    "find . -type f -exec time ls {} +",
]
NAMES = [
    "uniq ./[[:alpha:]].txt",
    "uniq ./[a\\]b].txt",
    *(f"cat {each}" for each in ("[[:alpha:]]", "[^]x]", "[!]x]", "[a\\]b]", "[a[:alpha:]]", "[[.b.]]", "[[=b=]]")),
    'cat ["b"]',
    "cat in[[:lower:]]/hostname",
    "cat d1/../[[:lower:]]",
    "for f in [[:lower:]]; do cat $f; done",
    'for d in d*/; do cat "${d}hostname"; done',
    'for d in d*//; do cat "$d"hostname; done',
    "cat ??",
]
TEXTS = [
    "echo $(printf '/etc/*')",
    "read -r x < star; echo $x",
    'for i in $(cat star); do echo "$i"; done',
    "for x in '/etc/*'; do echo $x; done",
    "while read -r l; do echo $l; done < star",
    "read -r x < star; y=$x; echo $y",
    "x='/etc/*'; for i in 1 2; do y=$x; done; echo $y",
    'x=$(cat star); for f in "$x"; do echo $f; done',
    'x=$(cat star); y="a $x"; echo $y',
    'x=$(cat star); echo $(echo "$x")',
    "x=$(cat star); echo ${x%z}",
    "x='/etc/*'; false && x=1; echo $x",
    ": '/etc/*'; echo $_",
    "echo 'a /etc/* b' $BASH_COMMAND",
    "echo $(printf '/etc/\\052')",
    "echo $(seq -f '/etc/*' 1)",
    "echo $(date -f star)",
    "echo $(echo a | cut -f1 star)",
    "echo $(echo a | grep -ez star)",
    "echo $(md5sum -c star)",
    "echo `cat star`",
    "true $(< star)",
]
HARMLESS = [
    f"cd {DEEP} 2>/dev/null; cat {UP[6:-13]}/a.txt",
    f"cd {DEEP} > /dev/null 2>&1 && cat ../s/x",
    f"cd {DEEP}/../s && cat ../s/x",
    f"cd {DEEP} < a.txt && cat ../s/x",
    "x=a.txt; { cat b.txt; } < a.txt; cat a.txt",
    'a=3; b=2; echo $((a / b)) $((a % 2)) $(((a + b) * 2)) $((a > b ? a : b)) "$((a * -$b))"',
    "a=3\necho $((a / 2)) $((a % 10)) $((1024 * 1024))\nls",
    "x=abcdef; echo ${x:0:-1}",
    "timeout -k 5 -s KILL 10s cat a.txt",
    "timeout --preserve-status 5 cat a.txt",
    "nice -5 ls",
    "nice -n 5 ls",
    "cat [ab].txt",
    "cat [[:alpha:]].txt",
    'for d in s*/; do ls "${d}s"; done',
    "for f in *.txt; do echo $f; done",
    "for i in $(seq 1 3); do echo $i; done",
    "n=$(ls | wc -l); echo $n",
    "x=$(date +%Y); echo v$x $(date -u +%F) $(basename a.txt .txt) $(pwd)",
    'x=$(cat star); echo "$x" "$(cat star)"; read -r y < star; echo "$y"',
    "echo $HOME $USER $nothing ${x:-none} ${#x} $? $#",
    "x=$(cat star); case $x in a) ls;; esac; [[ -n $x ]] && ls",
    "echo $(git rev-parse --short HEAD) $(git branch --show-current) $(ls | sort | head -1)",
    "find . -name 'a.*' -type f -exec grep -n x {} +",
    "find . -type f -exec jq . {} +",
]


@pytest.fixture
def workspace(tmp_path):
    top = tmp_path / "workspace"
    (top / DEEP).mkdir(parents=True)
    for name in ("a.txt", "b.txt", "empty,env", "list"):
        (top / name).write_text("1\n")
    (top / "star").write_text("/etc/*\n")
    (top / "d1").mkdir()
    (top / "empty").mkdir()
    (top / "in").symlink_to("s/s")
    for name, target in (("b", OUT), ("\u00e9", OUT), ("d1/hostname", OUT), ("inx", "/etc")):
        (top / name).symlink_to(target)
    return top


@pytest.fixture
def needs_approval(workspace):
    return lambda line: not analyse(line, AnalysisContext(str(workspace.resolve()))).safe


@pytest.mark.parametrize("line", LEFT_OUT)
def test_a_command_that_may_not_have_run_is_not_treated_as_run(needs_approval, line):
    assert needs_approval(line)


@pytest.mark.parametrize("expansion", FAILS)
def test_an_expansion_that_fails_ends_its_line_and_not_the_next(needs_approval, expansion):
    assert needs_approval(f'x={OUT}; zero=0; eight=8; less=-5; word=ab\n: {expansion}; x=a.txt\ncat "$x"')


@pytest.mark.parametrize("line", UNSEEN)
def test_no_word_before_a_program_or_in_place_of_its_script_is_skipped(needs_approval, line):
    assert needs_approval(line)


@pytest.mark.parametrize("line", NAMES)
def test_a_pattern_stands_for_every_name_that_bash_may_find(needs_approval, line):
    assert needs_approval(line)


@pytest.mark.parametrize("line", TEXTS)
def test_text_that_is_not_quoted_may_be_a_pattern_of_names_anywhere(needs_approval, line):
    assert needs_approval(line)


@pytest.mark.parametrize("line", HARMLESS)
def test_harmless_neighbours_still_pass(workspace, line):
    parts = analyse(line, AnalysisContext(str(workspace.resolve()))).parts
    assert [part for part in parts if not part.safe] == []


@pytest.mark.parametrize(
    "written", ["1 + 2", "(1 + a) * -3", "a ? b : c ? 1 : 2", "!a && b <= 3 || $c != 1", "7 % 2 / 3"]
)
def test_arithmetic_that_bash_accepts_is_valid(written):
    arithmetic = Arithmetic(written)
    assert arithmetic.is_valid
    assert not arithmetic.may_divide_by_zero


@pytest.mark.parametrize(
    "written",
    ["", "1 +", "1 2", "(1", "1)", "a ? b", "a++", "--a", "a[0]", "a = 1", "08", "1$a", "a -$b", "2 ** 3", "()"],
)
def test_arithmetic_that_may_fail_or_change_something_is_not_valid(written):
    assert not Arithmetic(written).is_valid


def test_a_division_by_anything_but_a_plain_number_may_fail():
    assert Arithmetic("1 / a").may_divide_by_zero
    assert Arithmetic("1 % 0").may_divide_by_zero
    assert Arithmetic("1 / (2)").may_divide_by_zero


def test_a_deadline_that_is_over_is_an_error():
    Deadline(60).check()
    with pytest.raises(NotUnderstood):
        Deadline(-1).check()


@pytest.mark.parametrize(
    ("pattern", "name", "is_match"),
    [
        ("*.py", "a.py", True),
        ("*.py", "a.pyc", False),
        ("a*b*c", "a-b-b-c", True),
        ("a*b*c", "a-c-b", False),
        ("*a?c", "abcabc", True),
        ("*ab*ab", "ab", False),
        ("?", "\u00e9", True),
        ("??", "\u00e9", True),
        ("??", "a", False),
        ("*" + "a*" * 60 + "b", "a" * 250, False),
        ("**", "", True),
    ],
)
def test_names_are_matched_whole(pattern, name, is_match):
    assert matcher((each, each not in "*?") for each in pattern)(name) is is_match


@pytest.mark.parametrize(
    "line",
    [
        "ls *a*a*a*a*b",
        "ls ?*?*?*?*?*b",
        "ls " + "[a]*" * 9 + "b",
        "find . -name '*a*a*a*a*a*b' -exec cat {} +",
        "echo {" + "," * 30_000,
        "echo {" + "}" * 30_000,
        "echo " + "[" * 30_000 + "$x",
    ],
)
def test_a_line_that_is_hard_to_analyse_gets_a_result(workspace, line):
    (workspace / ("a" * 250)).write_text("")
    assert analyse(line, AnalysisContext(str(workspace.resolve()))).parts


def test_all_parts_of_a_line_share_one_time_limit(workspace, monkeypatch):
    line = "for x in {1..200}; do " + 'cat "$x"; ' * 280 + "done"
    monkeypatch.setattr(Deadline.__init__, "__defaults__", (0.06,))
    clock = iter(range(10_000_000))
    monkeypatch.setattr("haft.policy.analysis.deadline.time.thread_time", lambda: next(clock) / 10_000)
    analysis = analyse(line, AnalysisContext(str(workspace.resolve())))
    assert not analysis.understood
    assert "too long" in analysis.parts[0].reason


def test_a_filter_prints_parts_of_its_input_and_no_file():
    def words(text):
        return [Argument(each) for each in text.split()]

    assert prints_no_pattern([words("seq 9"), words("head -n 2")], None)
    assert not prints_no_pattern([words("seq 9"), words("head -n 2 star")], None)
    assert not prints_no_pattern([words("cat star"), words("head -n 2")], None)
    assert not prints_no_pattern([words("seq 9"), words("cut -f1 5")], None)
    assert not prints_no_pattern([words("pwd")], frozenset(("/a*",)))
