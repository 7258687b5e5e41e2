"""Lines that once passed and did harm, each in the workspace that it needs; and that their analysis is quick."""

from __future__ import annotations

import os
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from haft.policy.analysis import AnalysisContext, analyse
from haft.policy.analysis.command.options import split_command
from haft.policy.analysis.program import Argument, LinkReason
from haft.policy.analysis.programs import PROGRAMS, awkscript, delimited, sedscript

OUTSIDE = "/etc/hostname"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    place = Path(os.path.realpath(tmp_path)) / "work"
    (place / "d1").mkdir(parents=True)
    (place / "d2").mkdir()
    for name in ("a.txt", "b.txt", "d2/x", "fmt", "cfg", "a.json", "a.gz", "a.tar", "a.zip"):
        (place / name).write_text("1\n")
    return place


@pytest.fixture
def passes(place: Path) -> Callable[[str], bool]:
    return lambda line: analyse(line, AnalysisContext(str(place))).safe


@pytest.mark.parametrize("line", [
    "printf 'x%n' PATH; ls", "printf 'x%5n' PATH", "printf 'x%*ln' 3 PATH", "printf '%s%%%n' a PATH",
    "printf -- 'x%n' PATH", 'read -r x < fmt; printf "a$x" PATH', 'printf "a$(cat fmt)" PATH', "printf %n PATH",
    "printf $(cat fmt) PATH", "printf * PATH",
    "tar cf -t a.txt", "tar xf -t", "tar xfI -t ./traps/payload", "tar xvf --list", "tar c -t", "tar x- -t -f a.tar",
    "tar --list rf a.txt",
    "git tag -n-1 evil", "git tag -n evil", "git tag -n5 evil", "git tag -in-1 evil",
    "git log -1 --format='%+G?'", "git log -1 --format='%-G?'", "git log -1 --pretty='tformat:% GK'",
    "git --help log", "git -h log", "git --no-pager --help log",
    "git log --diff-merges=remerge -p", "git show --diff-merges=r", "git log --diff-merges=on -p",
    "git log --diff-merges -p", "git log -m -p", "git describe --dirty --always", "git describe --broken",
    "git log --alternate-refs", "git ls-files --eol",
    "unzip a.zip -l", "unzip -q a.zip -l", "unzip -l ../a.zip", "unzip -p '*.zip'", "unzip -p 'a[.]zip'",
    "zipinfo -1 /a.zip",
])  # fmt: skip
def test_a_line_that_writes_or_runs_because_of_how_a_program_parses_words_needs_approval(
    line: str, passes: Callable[[str], bool]
) -> None:
    assert not passes(line)


@pytest.mark.parametrize("line", [
    "jq -R --arg a --arg . /etc/hostname", "jq -R --arg a --indent 2 /etc/hostname", "jq -R . --arg a --arg link",
    "jq -R . --arg a --indent link", "jq --arg a -- . -f a.json", "jq -R --argjson a --argjson . link",
    "jq -n '\"a\" | modulemeta'",
    "git -C d1 config -f x -l", "git -C d1 config --file=x -l", "git -C d1 hash-object x", "git -C d2 -C d1 log",
    "git -C d1 -C d2 remote -v", "git -C d1 blame x", "git -C d1 diff x y", "git -C d1 diff *.txt",
    "git -C d1 grep -f x",
    "git -C d1 ls-files -X x", "git config -f cfg --includes -l", "git blame link", "git annotate link",
    "git diff link a.txt", "git var -l", "git var GIT_AUTHOR_IDENT",
    "iconv -f /etc/hostname -t utf8 a.txt", "iconv -f utf8 -tlink/../link a.txt", "iconv -t /etc/hostname a.txt",
    "date -d 'TZ=\"/etc/hostname\" now'", "date --date=' TZ=\"/etc/hostname\" now'",
    "find . -newermt 'TZ=\"/etc/hostname\" now'", "find . -newerBt 'TZ=\"/etc/hostname\" now'",
    'find . -newermt "$(cat fmt)"',
    "zcat zz", "gzip -dc zz", "gunzip -c zz", "gzip -l zz", "gzip -t zz", "zcat .gz", "zcat d2/.gz",
    "fd -C d1 x y", "fd --base-directory=d1 --search-path y x", "ag -A foo link", "ag --context foo link",
    "getconf -v x PATH", "nm -l a.txt", "objdump -x a.txt", "strings -d a.txt",
])  # fmt: skip
def test_a_line_that_opens_another_file_than_it_seems_to_needs_approval(
    line: str, place: Path, passes: Callable[[str], bool]
) -> None:
    (place / "link").symlink_to(OUTSIDE)
    (place / "zz.gz").symlink_to(OUTSIDE)
    (place / "d1" / "x").symlink_to(OUTSIDE)
    assert not passes(line)


@pytest.mark.parametrize("line", [
    "ps -auxe", "ps -Tue", "ps -u me", "ps -ef u", "ps -eu nosuch", "ps -eO u", "ps -ef -o pid", "ps -o pid,environ",
    "ps -e --sort=nosuch", "jq -n '$ ENV'", "jq -n '$\nENV'", "jq -n '$#c\nENV'", "jq -n --arg a --arg env",
    "jq -n --arg a env", "jq -n ./x", "find . -type f -exec jq -n {} +",
    "tail +5f a.txt", "tail +f a.txt", "tail +cf", "awk 'BEGIN{while(2){}}'",
    "factor 340282366920938463463374607431768211457",
])  # fmt: skip
def test_a_line_that_shows_the_environment_or_runs_endlessly_needs_approval(
    line: str, passes: Callable[[str], bool]
) -> None:
    assert not passes(line)


@pytest.mark.parametrize("line", ["diff d1 d2", "diff a.txt d1", "diff d1 a.txt", "sdiff a.txt d1", "diff -r d1 d2",
    "diff --from-file=a.txt d1", "colordiff d1 d2", "unzip -l a.zip", "zipinfo a.zip", "git grep x",
    "git grep -n x -- d1", "tree --gitignore", "tree --info",
])  # fmt: skip
def test_a_line_that_follows_links_passes_only_if_none_leads_out(
    line: str, place: Path, passes: Callable[[str], bool]
) -> None:
    assert passes(line)
    for name in ("x", "a.txt"):
        (place / "d1" / name).symlink_to(OUTSIDE)
    assert not passes(line)


@pytest.mark.parametrize("line", [
    "printf '100%%\\n'", "printf '%5.2f%%\\n' 3", "printf '%s\\n' *.txt", "printf '%d%%n' 3 | cat",
    "tar -tf a.tar d2/x", "tar tvzf a.tar", "tar -tzvf a.tar './a.txt'",
    "git tag -n", "git tag -n5", "git log --diff-merges=first-parent -p", "git show --diff-merges=c",
    "git describe --tags --always", "git -C d2 log -1", "git -C d2 diff HEAD", "git -C d2 log -C -p",
    "git diff HEAD~3 -- d2", "git diff main feature", "git blame -C a.txt", "git var GIT_PAGER", "git grep --cached x",
    "git config -f cfg -l", "iconv -f utf8 -t ascii//TRANSLIT a.txt", "date -d 'next friday'",
    "find . -newermt '2024-01-01'", "zcat a.gz", "gzip -dc a.gz", "gzip -c a.txt", "gzip -l a.gz",
    "jq --arg n v '.[$n]' a.json", "jq --arg n v --arg m w '.[$n]' a.json", "jq --indent 2 . a.json",
    "jq .environment a.json", "ps -ef", "ps aux", "ps -eo pid,user,etime,args", "ps -e -o pid= --sort=-rss",
    "ps -C node", "ps -eLf", "ps -u root", "ps -fp 1", "tail +5 a.txt", "tail -n +5 a.txt", "factor 12", "diff - a.txt",
    "diff <(cat a.txt) <(cat b.txt)", "awk '{while (i < 3) i++; print i}' a.txt", "sed ':a;N;$!ba;s/\\n/ /g' a.txt",
    "sed 's/[[:space:]]*$//' a.txt", "sed 's/[^]]*]/x/' a.txt", "sleep 0.5", "sleep .5", "sleep 1.",
])  # fmt: skip
def test_a_similar_line_that_only_reads_still_passes(line: str, passes: Callable[[str], bool]) -> None:
    assert passes(line)


def test_an_archive_is_listed_only_by_options_in_front_of_its_name(place: Path, passes: Callable[[str], bool]) -> None:
    with zipfile.ZipFile(place / "z.zip", "w") as archive:
        archive.writestr("-l", "x")
    assert passes("unzip -l z.zip")
    assert not passes("unzip z.zip -l")
    assert not passes("unzip -- z.zip -l")


def test_a_search_in_a_repository_does_not_go_through_a_directory_that_became_a_link(
    place: Path, passes: Callable[[str], bool]
) -> None:
    (place / "gone").mkdir()
    (place / "gone" / "hostname").write_text("x\n")
    subprocess.run(["git", "init", "-q", "."], cwd=place, check=True)
    subprocess.run(["git", "add", "gone"], cwd=place, check=True)
    assert passes("git grep x")
    (place / "gone" / "hostname").unlink()
    (place / "gone").rmdir()
    (place / "gone").symlink_to("/etc")
    assert not passes("git grep x")
    assert not passes("git blame gone/hostname")
    assert not passes("cd d2; git grep x -- :/")


def test_a_reason_because_of_links_is_a_link_reason() -> None:
    found = split_command("diff", [Argument("d1"), Argument("d2")], PROGRAMS["diff"])
    assert found.entry.check is not None
    assert isinstance(found.entry.check(found.invocation), LinkReason)


@pytest.mark.parametrize("script", ["s/[" + "[." * 40_000 + "/x/", "s/" + "[[.a.]" * 20_000, "s/" + "[" * 80_000])
def test_brackets_that_never_close_are_rejected_at_once(script: str) -> None:
    assert sedscript.why_not(script) is not None
    assert awkscript.why_not("/" + script[2:]) is not None


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("a/", 2), (r"a\/b/", 5), ("[[:alpha:]]/", 12), ("[]/]/", 5), ("[^]]/", 5), ("[[.a.]]/", 8), ("a", None),
        ("[/", None), ("[[:alpha/", None), ("[[..]]/", None), ("a\n/", None), ("[[:a]b/", None), ("\\", None),
    ],
)  # fmt: skip
def test_an_expression_ends_at_its_sign_outside_of_brackets(text: str, end: int | None) -> None:
    assert delimited.end_of_regex(text, 0, "/") == end


@pytest.mark.parametrize("line", ["rg --ignore-messages x", "rg --no-config x", "RIPGREP_CONFIG_PATH= rg x"])
def test_an_option_that_makes_ripgrep_print_lines_of_an_ignore_file_needs_approval(
    passes: Callable[[str], bool], line: str
) -> None:
    assert passes("rg x")
    assert not passes(line)
