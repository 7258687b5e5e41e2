"""The part of the `sed` and `awk` languages that is known to only print, compared with `sed --sandbox`."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest

from haft.policy.analysis.programs import awkscript, sedscript

PRINTING = [
    "5,10p", "$p", "$=", "10q", "5q;d", "/^#/d", "/^$/d; /^#/d", "s/a/b/", "s/a/b/gI", "s|/usr|/opt|g", "s/[^/]*$//",
    "s/[\\/]/_/", r"s/\x1b\[[0-9;]*m//g", "/start/,/end/p", "/start/,+3p", "0,/x/d", "1~2d", "$!N;P;D", "y/abc/ABC/",
    ":a;N;$!ba;s/\\n/ /g", ":a;$!{N;ba};s/\\n/ /g", "/x/{p;q}", "/x/{n;p}", "2i heading", "a text", "/x/!d", "=", "G",
    "\\,usr,p", "s/\\(a\\)\\(b\\)/\\2\\1/p", "1,3{/b/p}", "s/a/\\\n/", "x;p;x", "l", "# a comment", "F", "s/[]/]/x/",
]  # fmt: skip
NOT_PRINTING = [
    "w f", "1w f", "W f", "e", "1e id", "e id", "r f", "R f", "s/a/b/w f", "s/a/b/gw f", "s/a/id/e", "s/a/id/ge",
    "p;w f", "/a/{w f\n}", "{p;e\n}", "a foo\nw f", "a foo;w f", "i\\\nx\nw f", "s/a/b/\nw f", "s/a/b/;w f", "b;w f",
    "bx}a foo;w f", "s/[/]/w f/", "s/[/]/;w f;/", "/[/w f]/p", "s/[\\]/]w f/x/", "}", "{p", "s/a/b", "sxaxbx", "v",
    "", "y/a/b/;w f", "1!w f", "1,2w f", "$!{$!w f\n}", "# x\nw f", "s\na\nb\n", "a", "c\\", "s/a/b/M;e", "\\wawp",
]  # fmt: skip
COUNTING = [
    "{print $1}", "NR>1{print $2}", "$3 > 5", "$3 >= 5 && $1 != \"x\"", "/a|b/{print}", "!seen[$0]++", "NF",
    "END{print NR}", "{sum+=$1} END{print sum/NR}", "{print (a+b)/2}", "{if ($1 > 5) print $2; else print \"-\"}",
    "{print (a>b)}", "{gsub(/[\\[\\]]/,\"\");print}", "/[^/]+/", "{print length($0)/2}",
    "{printf \"%s|%d\\n\", $1, $2}", "length > 80", "{a[$1]++}END{for(k in a)print k,a[k]}",
    "NR==FNR{a[$1];next} $1 in a", "BEGIN{FS=\":\";OFS=\"|\"}{print $1,$2}", "/start/,/end/",
    "{n=split($0,a,/,/);print a[n]}", "function f(x){return x*2}{print f($1)}", "{x=$1>5?1:2;print x}",
    "{ print $1 }\n$2 ~ /x/ { print }", "{max=$1>max?$1:max}END{print max}", "# comment\n{print}", "NR%2==0",
    "{for(i=1;i<=NF;i++)if($i>m)m=$i}END{print m}", "{print $NF/2}", "BEGIN{print substr(\"abc\",2)}", "{print -$1}",
]  # fmt: skip
NOT_COUNTING = [
    "{print > \"f\"}", "{print $1>\"f\"}", "{print >> \"f\"}", "{printf(\"x\") > \"f\"}", "{print ($1) > \"f\"}",
    "{print $1,\n$2 > \"f\"}", "{print $1 \\\n> \"f\"}", "{print a\n> \"f\"}", "{print | \"sh\"}",
    "{print $1 |& \"sh\"}", "BEGIN{system(\"id\")}", "BEGIN{system (\"id\")}", "BEGIN{\"id\"|getline x}",
    "BEGIN{getline < \"f\"}", "BEGIN{while((getline l < \"f\")>0)print l}", "@include \"f\"", "@load \"f\"",
    "BEGIN{f=\"system\";@f(\"id\")}", "BEGIN{ARGV[1]=\"/etc/passwd\";ARGC=2}", "BEGIN{print ENVIRON[\"HOME\"]}",
    "{if(x)/\"/;print>\"f\" #\"/}", "{x++ /\"/;print > \"f\";#/\"\n}", "BEGIN{while(1);}", "BEGIN{for(;;)x++}",
    "{print", "{print}}", "{print \"a}", "/[/\"]/{print > \"f\"}#\"]/", "{print}#\\\n{print > \"f\"}",
    "{print a[1 > 0]}", "BEGIN{SYMTAB[\"ARGC\"]=3}", "BEGIN { print \"x\" > \"/dev/tcp/1\" }",
    "{if (1) print > \"f\"}", "{ print $1 > $2 \".x\" }", "",
]  # fmt: skip
PIECES = [
    *" \t\n;{}!,$12/|#[]^*.\\", *"pdsy=lqaicbt:werx", "/w x", "[/]", "[^/]", "[]/]", "[\\]", "\\/", "\\]", "w f\n",
    "a foo", "/a/", "ba", ":a", "s|", "[|]", "0,", "s/a/b/", "y/ab/cd/", "#c", "1e", "W f",
]  # fmt: skip


@pytest.mark.parametrize("script", PRINTING)
def test_a_sed_script_that_only_prints_is_known(script: str) -> None:
    assert sedscript.why_not(script) is None


@pytest.mark.parametrize("script", [each for each in NOT_PRINTING if each])
def test_a_sed_script_that_may_do_more_is_refused(script: str) -> None:
    assert sedscript.why_not(script)


@pytest.mark.parametrize("program", COUNTING)
def test_an_awk_program_that_only_prints_is_known(program: str) -> None:
    assert awkscript.why_not(program) is None


@pytest.mark.parametrize("program", [each for each in NOT_COUNTING if each])
def test_an_awk_program_that_may_do_more_is_refused(program: str) -> None:
    assert awkscript.why_not(program)


def test_sed_itself_finds_nothing_to_forbid_in_scripts_that_are_let_pass(tmp_path: Path) -> None:
    (tmp_path / "in").write_text("a/b\nc|d\n")
    chance = random.Random(5)
    passed = 0
    while passed < 300:
        script = "".join(chance.choice(PIECES) for _ in range(chance.randint(1, 12)))
        if sedscript.why_not(script) is not None:
            continue
        passed += 1
        done = subprocess.run(
            ["sed", "--sandbox", "-n", "-e", script, "in"], cwd=tmp_path, capture_output=True, text=True, timeout=60
        )
        assert "sandbox" not in done.stderr, script
    assert [each.name for each in tmp_path.iterdir()] == ["in"]


def test_a_script_that_sed_itself_forbids_is_refused(tmp_path: Path) -> None:
    (tmp_path / "in").write_text("a\n")
    for script in ("w f", "s/a/b/w f", "1e id", "r f", "s/a/id/e", "$!{$!w f\n}", "a foo\nw f"):
        done = subprocess.run(
            ["sed", "--sandbox", script, "in"], cwd=tmp_path, capture_output=True, text=True, timeout=60
        )
        assert "sandbox" in done.stderr and sedscript.why_not(script), script


def test_long_scripts_get_a_result(tmp_path: Path) -> None:
    assert sedscript.why_not("{" * 5000)
    assert sedscript.why_not("s/" + "[" * 5000)
    assert awkscript.why_not("(" * 5000)
    assert awkscript.why_not("{print /" + "[" * 5000)
