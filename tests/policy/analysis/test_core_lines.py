"""Whole lines: which pass, which need approval, and the reasons."""

import dataclasses

import pytest

from haft.policy.analysis import AnalysisContext, analyse
from haft.policy.analysis.program import Program

SAFE = [
    "x=$(ls *.py); echo $x",
    'true && x=$(ls *.py); echo "$x"',
    'cat "$PWD/a.py"',
    "ls ${PWD}/src",
    'cd src && cat "$PWD/c.py"',
    "set -euo pipefail; cat a.py",
    "set -e; set -u; set +e; set -o pipefail; cd src && cat ../a.py",
    "builtin pwd",
    "cat a.py | tee /dev/null | wc -l",
    'a=1; b=2; echo $((a + b)) "$((a * -$b))"',
    "i=0; while [ $i -lt 3 ]; do echo $i; i=$((i+1)); done",
    "[ $(ls | wc -l) -gt 3 ] && pwd",
    'n=$(ls | wc -l); [[ $n -gt 3 ]] && [ $n -lt 9 ] && echo "$((n + 1))"',
    "x=$(pwd); echo ${x:0:7} ${x: -3} ${x:2}",
    "echo *; echo */ out*",
    "ls -d * .*",
    "ls -ld outward",
    "ls | xargs -n1 echo",
    "time -p ls",
    'while IFS= read -r line; do echo "$line"; done < a.py',
    "find . -type f -name '*.py' -exec grep -n foo {} +",
    "find src -type f -exec cat {} \\;",
    "cd src || exit 1; cat ../a.py",
    "cd src && ls; cat ../a.py",
    "echo ${x%.*} ${x##*/}",
    "ls -la",
    "/usr/bin/ls src",
    "ls -la src/*.py && cat a.py | head -5",
    "cat inward/d.py",
    "cat 'a.py' \"b.py\" src/'c.py'",
    "cat not-there/either.py",
    "cat - < a.py",
    'for f in *.py; do wc -l "$f"; done',
    "for f in *.py; do wc -l $f; done",
    'for f in a.py b.py; do cat "$f"; echo $f; done',
    'for i in $(seq 1 3); do echo "$i"; done',
    'x=a.py; cat "$x" "${x}"',
    'x=a.py && cat "src/$x"',
    "cd src && cat ../a.py",
    "cd src; cat ../a.py",
    "cd src && grep x c.py 2>/dev/null | head -5",
    "(cd src; cat ../a.py); cat a.py",
    "cd missing && cat ../a.py",
    "git log --oneline -5",
    "git --no-pager status --short",
    "grep -rn foo --include=*.py .",
    "grep -n 'a|b' a.py | sort -u > /dev/null 2>&1",
    'grep -A3 -e "$x" -- a.py',
    'echo "total: $(ls | wc -l)" `pwd`',
    "echo {a,b}{1..3} $((1 + 2)) ${x:-none} ${#x} $?",
    "cat {a,b}.py",
    "diff -u <(ls src) <(ls inward)",
    "[ -f a.py ] && echo yes || echo no",
    "[ $? -eq 0 ]",
    "[[ -f a.py && $x == a* ]] || ls",
    'if [ -n "$x" ]; then echo 1; elif [[ -d src ]]; then ls; else pwd; fi',
    'while read -r line; do echo "$line"; done < a.py',
    "case $x in a|b*) ls;; *) pwd;; esac",
    "cat <<EOF\nhi $x\nEOF\nls",
    "cat <<'EOF' | grep x\nhi $(rm x) `rm`\nEOF",
    'cat <<< "$x"',
    "LC_ALL=C ls",
    "env LC_ALL=C sort a.py",
    "timeout 5 ls -l",
    "time ls",
    "nice -n 5 ls",
    "command ls",
    "command -v ls",
    "ls \\\n  -la",
    "ls # rm -rf /",
    "! ls",
    "{ ls; pwd; } | head",
    "echo >&2 hi",
    "ls > /dev/null -la src",
    "find . -type f -name '*.py' -print0 | xargs -0 grep -n foo",
    "echo '>' \"|\" \\; \\&",
    "head -n -5 a.py; head -n5 a.py; head -5 a.py",
    "printf '%s\\n' \"$x\"",
    'echo "$(< a.py)"',
    "diff -U3 a.py b.py",
    "x=ls; $x src",
    "echo $'a\\tb'",
    "",
    "# nothing",
]

NEEDS_APPROVAL = [
    "cd src && x=/etc/*; echo $x",
    "while true; do echo $x; x='/etc/*'; done",
    "true && x='/etc/*'; echo ${x%.*}",
    'cat "$PWD/../secret"',
    "PWD=..; cat $PWD/secret",
    "cd outward; cat $PWD/secret",
    "cd missing; cat $PWD/../secret",
    "set -x; ls",
    "set -- a; ls",
    "set -o posix; ls",
    "set -eo; ls",
    "set",
    'set "$x"',
    "builtin cd src",
    "builtin",
    "cat a.py | tee b.py",
    "cat a.py | tee /dev/null b.py",
    "a=b; echo $((a))",
    "a=1; echo $((a++))",
    "a=1; echo $((a=2))",
    "a=1; echo $((a[0]))",
    "a=1; echo $((a + b))",
    'a=1; read -r a < a.py; echo "$((a))"',
    "i=0; while [ $i -lt 3 ]; do i=$x; echo $((i)); done",
    "i=0; while [ $i -lt 3 ]; do echo $((i)); i=x; done",
    "i=0; for i in a b; do echo $((i)); done",
    "cat <<< $((x))",
    "[ $(cat a.py) -gt 3 ]",
    "[[ $(cat a.py) -gt 3 ]]",
    "n=$(cat a.py); [[ $n -gt 3 ]]",
    "n=$(ls | wc -l a.py); [[ $n -gt 3 ]]",
    "x='/etc/*'; echo ${x%.*}",
    "x='/etc/*'; echo ${x:0:6}",
    "ls -d outward/",
    "ls -d */",
    "ls -d outward/*",
    "ls -- -d outward",
    "ls -d ../*",
    "ls -d ..",
    "echo outward/* */secret",
    "echo */secret",
    "$'time' ls",
    "LC_ALL=C time ls",
    "ls | time cat",
    "timeout 5 time ls",
    "IFS= ls",
    "find . -exec cat {} +",
    "find . -type f -exec rm {} +",
    "find . -type f -exec uniq {} +",
    "find . -type f -exec cat ../secret {} +",
    "find . -type f -exec sh -c 'cat {}' \\;",
    "find .. -type f -exec cat {} +",
    "find outward/ -type f -exec cat {} +",
    "find . -type f -exec {} \\;",
    "find . -type f -exec cat {} \\; -delete",
    "false && cd src; cat ../a.py",
    "true || cd src && cat ../a.py",
    "cat {~/x,a.py}",
    "cat {a.py,$}HOME",
    "echo ${x:-/etc/*}",
    "x() { ls; } > a.py",
    "cat /etc/passwd",
    "cat ../secret",
    "cat outward/secret",
    "cat outward/*",
    "cat src/../../secret",
    "cat inward/../../../secret",
    "grep x --file=../secret",
    "grep -f../secret a.py",
    "grep -f ../secret a.py",
    "find . -newer ../secret",
    "echo /etc/*",
    "x='/etc/*'; echo $x",
    'for f in /etc/*; do echo "$f"; done',
    'for f in a.py ../secret; do cat "$f"; done',
    'for x in a.py; do cat "$x"; x=../secret; done',
    'x=../secret; cat "$x"',
    'x=a.py; false && x=../secret; cat "$x"',
    'if true; then x=a.py; fi; cat "$x"',
    'x=a.py; while true; do cat "$x"; x=../secret; done',
    'x=a.py; read -r x < b.py; cat "$x"',
    'echo a.py | read -r x; cat "$x"',
    'cat "$x"',
    "cat $x",
    "cat ~/x",
    "cat a=~/x",
    "cd .. && ls",
    "cd && ls",
    "cd - && ls",
    'cd "$x" && ls',
    "cd outward; ls",
    "cd missing; cat ../a.py",
    "cd inward && cat ../../../a.py",
    "cd inward && cd .. && cat ../../a.py",
    "while true; do cd src; cat ../a.py; done",
    "ls --unknown",
    "sort -o x a.py",
    "sort -ro x",
    "sort *",
    "uniq a.py b.py",
    "uniq *.py",
    "git push",
    'git "$x"',
    "git -c x=y log",
    "pwd x",
    "./ls",
    "src/ls",
    "/opt/ls",
    "$x a",
    "$(echo ls)",
    "l\\\ns",
    "ls a\\\nb",
    "ls &",
    "echo hi > file",
    "echo hi >> src/file",
    "echo hi >| a.py",
    "echo hi &> a.py",
    "echo hi >& a.py",
    "> a.py",
    "cat < ../secret",
    "cat < /dev/tcp/127.0.0.1/80",
    "echo $(rm x)",
    "echo `rm x`",
    "cat <(rm x)",
    "cat <<EOF\n$(rm x)\nEOF",
    "cat <<EOF\n`rm x`\nEOF",
    "cat <<'EOF'\nx\nEOF\nrm x",
    "echo ${x@P}",
    "echo ${x:=y}",
    "echo ${!x}",
    "echo ${x[$(ls)]}",
    "echo $((x + 1))",
    "echo $[1]",
    "((x = 1))",
    "let x=1",
    "export X=1",
    "declare x=1",
    "unset x",
    "x=(a b)",
    "x[0]=1",
    "PATH=. ls",
    "PATH=.; ls",
    "IFS=x; ls",
    "http_proxy=x; ls",
    "LD_PRELOAD=x ls",
    "LC_ALL=$x ls",
    "for PATH in a; do ls; done",
    "read -r PATH < a.py",
    "read -r 'x[$(ls)]' < a.py",
    "[ -v 'x[$(ls)]' ]",
    "test -v x",
    "[ $x = a ]",
    '[ "$a" "$b" ]',
    "[[ $x -eq 1 ]]",
    "[[ -v x ]]",
    "[ -f ../secret ]",
    "ls() { rm x; }; ls",
    "function ls { rm x; }",
    "coproc ls",
    "time { ls; }",
    "select x in a; do ls; done",
    "eval ls",
    "source a.py",
    ". a.py",
    "exec ls",
    "trap ls EXIT",
    "alias ls=rm",
    "command cd src",
    "timeout 5 rm x",
    "env FOO=1 ls",
    "env",
    "nohup ls",
    "find . -print0 | xargs -0 cat",
    "find . -type f | xargs cat",
    "find . -type f -print0 | xargs -0 rm",
    'echo $"hi"',
    "echo {a,b,{c,d}}; cat {a,../secret}",
    "head -5<../secret",
    "{ls,-la}",
    "cat a.py; ls;;",
]


@pytest.mark.parametrize("line", SAFE)
def test_a_line_that_only_reads_passes(analysed, line):
    assert [part for part in analysed(line).parts if not part.safe] == []


@pytest.mark.parametrize("line", NEEDS_APPROVAL)
def test_a_line_that_is_not_known_to_only_read_needs_approval(analysed, line):
    analysis = analysed(line)
    assert not analysis.safe
    assert all(part.reason for part in analysis.parts)


def test_an_unknown_option_is_named_with_its_program(analysed):
    assert analysed("ls --unknown").parts[0].reason == "haft does not know `--unknown` of `ls` to be harmless"
    assert analysed("sort -ro x").parts[0].reason == "`-o` of `sort`: it writes a file"


def test_a_program_that_is_not_in_the_table_may_change_something(analysed):
    (part,) = analysed("npm test -- -u").parts
    assert (part.words, part.program, part.literal, part.dangers) == (("npm", "test", "--", "-u"), "npm", True, ())
    assert part.reason == "`npm` may change something"


def test_each_command_and_each_write_is_a_part(analysed):
    parts = analysed("npm test && FOO=1 ls \"$x\" > 'o ut' | cat").parts
    assert {(part.kind, part.words) for part in parts} == {
        ("command", ("npm", "test")),
        ("redirection", (">", "o ut")),
        ("command", ("FOO=1", "ls", '"$x"')),
        ("command", ("cat",)),
    }
    assert [part.literal for part in parts if "ls" in part.words] == [False]


def test_a_word_after_a_redirection_belongs_to_the_command(analysed):
    parts = analysed("cat > /dev/null ../secret").parts
    assert [part.words for part in parts] == [("cat", "../secret")]
    assert not parts[0].safe


def test_programs_that_start_others_need_a_sandbox(context):
    table = {"git": Program(starts_others=True, subcommands={"log": Program()})}
    assert analyse("git log", context, table).safe
    part = analyse("git log", dataclasses.replace(context, confined=False), table).parts[0]
    assert part.starts_others
    assert not part.safe


def test_the_directory_of_the_context_counts(context, analysed):
    inside = dataclasses.replace(context, cwd="src")
    table = {"cat": Program()}
    assert analyse("cat ../a.py", inside, table).safe
    assert not analyse("cat ../../secret", inside, table).safe
    assert not analyse("cat a.py", dataclasses.replace(context, cwd="outward"), table).safe


def test_a_name_that_looks_like_an_option_matters_unless_all_options_are_harmless(context):
    wild, harmless = {"x": Program()}, {"x": Program(all_options_harmless=True)}
    assert analyse("x ./*.py", context, wild).safe
    assert not analyse("x *.py", context, wild).safe
    assert analyse("x *.py", context, harmless).safe


def test_a_link_that_leads_out_is_found_when_a_pattern_is_expanded(analysed):
    assert analysed("ls *.py").safe
    assert not analysed("ls out*").safe
    assert not analysed("ls *").safe


def test_a_workspace_that_does_not_exist_is_no_error():
    assert analyse("ls", AnalysisContext("/nowhere/at/all"), {"ls": Program()}).understood
