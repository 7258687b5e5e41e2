"""Whole lines, by program: common lines pass, and other uses of the same program need approval."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import pytest

from haft.policy.analysis import AnalysisContext, analyse
from haft.policy.analysis.command.options import split_command
from haft.policy.analysis.program import Argument, LinkReason
from haft.policy.analysis.programs import PROGRAMS

PASSES = {
    "ls": ["ls", "ls -la", "ls -lahtr src", "ls -1 --color=never", "ls -R src", "ls -L a.txt", "ls -I '*.pyc' src"],
    "text": [
        "cat a.txt", "cat -n a.txt b.txt", "head -5 a.txt", "head -n -2 a.txt", "head -c 1K a.txt",
        "tail -n +3 a.txt", "tail -20 a.txt", "wc -l a.txt", "sort -t, -k2,2nr a.txt", "sort -u a.txt", "sort -rn",
        "uniq -c", "uniq a.txt", "cut -d: -f1,3 a.txt", "tr -d '\\n'", "tr a-z A-Z", "paste -sd, a.txt",
        "nl -ba a.txt", "tac a.txt", "column -t -s, a.txt", "comm -12 a.txt b.txt", "join -t, -1 1 -2 2 a.txt b.txt",
        "fold -sw 80 a.txt",
    ],
    "compare": [
        "diff a.txt b.txt", "diff -u a.txt b.txt", "diff -U5 a.txt b.txt", "diff -y -W 120 a.txt b.txt",
        "cmp -s a.txt b.txt", "diff -rq --no-dereference src src",
    ],
    "search": [
        "grep -rn TODO src", "grep -rnE 'a|b' --include='*.py' .", "grep -c x a.txt", "grep -A3 -B 2 x a.txt",
        "grep -e a -e b a.txt", "grep -oP '\\d+' a.txt", "grep -i -- -x a.txt", "grep -3 x a.txt",
        "egrep -v '^#' a.txt", "rg TODO", "rg -n --hidden -g '!node_modules' TODO src", "rg --files -tpy",
        "rg -uu -l x", "rg -A2 -e x src", "fd -e py", "fd -t f -H name src",
    ],
    "find": [
        "find", "find .", "find . -name '*.py' -type f", "find src -maxdepth 2 -not -path '*/x/*'",
        "find . -newer a.txt", "find . \\( -name a -o -name b \\) -prune -o -print0",
        "find . -size +1M -mtime -7 -ls", "find -P . -empty", "find . -newermt '2024-01-01' -printf '%p %s\\n'",
    ],
    "filters": [
        "sed -n '5,10p' a.txt", "sed -n -e 1p -e 3p a.txt", "sed 's/a/b/' a.txt", "sed -En 's/(a)/\\1/p' a.txt",
        "awk '{print $1}' a.txt", "awk -F: '$3 > 5 {print $1}' a.txt", "awk -v n=3 'NR==n' a.txt", "jq . a.json",
        "jq -r '.a[] | .b' a.json", "jq --arg n v '.[$n]' a.json", "jq -n '1+1'", "jq '.include' a.json",
    ],
    "files": [
        "file -b a.txt", "stat -c %s a.txt", "du -sh src", "du -h --max-depth=1", "df -h", "tree -L 2 -I x",
        "realpath a.txt", "basename /x/y.txt .txt", "dirname /x/y", "readlink -f a.txt", "md5sum a.txt",
        "sha256sum a.txt b.txt", "xxd a.txt", "xxd -l 16 -p a.txt", "od -c a.txt", "hexdump -C a.txt",
        "strings -n 8 a.txt", "base64 -d a.txt", "tar tzf a.tgz", "tar -tvf a.tar", "unzip -l a.zip",
    ],
    "system": [
        "date", "date +%F", "date -u '+%Y-%m-%d %H:%M'", "date -d yesterday +%s", "date -Iseconds", "uname -a",
        "whoami", "id -un", "nproc", "ps aux", "ps -ef", "free -h", "uptime", "hostname", "which python3",
        "type -a ls", "sleep 1", "seq 1 10", "seq -w 0 5 100", "echo --- x", "echo -e 'a\\tb'", "printf '%s\\n' x",
        "pwd -P",
    ],
    "git": [
        "git status", "git status -sb", "git status --porcelain=v2", "git --no-pager log --oneline -20",
        "git log -n 5 --stat", "git log --since='2 weeks ago' --author=x", "git log -S needle -- src",
        "git log main..HEAD --format='%h %s'", "git log -p -L1,5:a.txt", "git diff", "git diff --cached --stat",
        "git diff HEAD~3 -- src", "git diff a...b", "git show HEAD:a.txt", "git show --stat HEAD^",
        "git blame -L 1,5 a.txt", "git branch", "git branch -avv", "git branch --show-current",
        "git branch --list 'f*'", "git branch --contains HEAD", "git tag", "git tag -l 'v*'", "git tag -n5",
        "git tag --sort=-creatordate", "git remote -v", "git remote get-url origin", "git stash list",
        "git stash show -p", "git rev-parse --abbrev-ref HEAD", "git rev-parse --show-toplevel", "git ls-files -o",
        "git ls-tree -r HEAD --name-only", "git cat-file -p HEAD", "git describe --tags --always", "git grep -n x",
        "git grep -n -e x -- src", "git config --get user.name", "git config -l", "git config user.email",
        "git reflog -5", "git worktree list", "git merge-base main HEAD", "git for-each-ref --format='%(refname)'",
        "git -C src log -1", "git shortlog -sn", "git rev-list --count HEAD", "git show-ref --heads", "git --version",
        "git submodule status", "git log :/fix", "git diff HEAD -- ':!src'", "git check-ignore -v a.txt",
        "git symbolic-ref --short HEAD",
    ],
    "packages": [
        "npm list", "npm ls --depth=0", "npm ls -g --json", "npm --version", "npm root -g", "yarn list --depth=0",
        "yarn list --pattern x", "pnpm list", "pip list", "pip3 list --format=json",
        "pip show -f requests", "pip freeze", "pip --version", "pip check", "python3 --version", "node -v",
        "java -version", "gcc --version", "make --version",
    ],
}  # fmt: skip
NEEDS_APPROVAL = {
    "text": [
        "sort -o out a.txt", "sort -uo out a.txt", "sort -oout a.txt", "sort --output=out a.txt",
        "sort --outp=out a.txt", "sort --compress-program=id a.txt", "sort -T /tmp a.txt", "sort --files0-from=a.txt",
        "uniq a.txt out", "uniq - out", "tail -f a.txt", "tail -F a.txt", "tail -nf a.txt --follow", "tail -5f a.txt",
        "wc --files0-from=a.txt", "cat /etc/passwd", "shuf -o out a.txt", "shuf -r a.txt", "iconv -o out a.txt",
        "diff -l a.txt b.txt", "sdiff -o out a.txt b.txt", "diff3 --diff-program=id a.txt a.txt b.txt", "head ../x",
        "printf -v x y", "printf -vx y",
    ],
    "search": [
        "rg --pre id x", "rg --pre=id x", "rg -z x", "rg --hostname-bin=id x", "rg x /etc", "rg -f /etc/passwd",
        "rg --search-zip x", "grep x /etc/passwd", "grep -f /etc/passwd a.txt", "grep -rf/etc/passwd src",
        "ag --pager id x", "ag --context --pager=id x", "fd -x id", "fd . -X id", "fd --exec id", "fd x /etc",
        "fd -l", "fd --newer /etc/passwd",
    ],
    "find": [
        "find . -delete", "find . -name x -delete", "find . -exec id ';'", "find . -execdir id +",
        "find . -ok id ';'", "find . -fprint f", "find . -fprintf f %p", "find . -fls f", "find . -fprint0 f",
        "find / -name x", "find .. -name x", "find . -newer /etc/passwd", "find . -samefile ../x",
        "find -files0-from a.txt", "find . -name", "find . -unknown", "find . -name a -o -delete", "find -D exec .",
        "find . -name *.none -delete",
    ],
    "filters": [
        "sed -i s/a/b/ a.txt", "sed -ni p a.txt", "sed --in-place=x p a.txt", "sed -f a.txt b.txt", "sed 'w f' a.txt",
        "sed -n p /etc/passwd", "sed -n 's/a/b/w f' a.txt", "sed -e p -e 'w f' a.txt", "sed -e a\"$x\" a.txt",
        "for x in wf; do sed -e $x a.txt; done", "sed --expression='e id' a.txt", "sed", "sed -n", "awk -f a.txt",
        "awk '{print > \"f\"}' a.txt", "awk 'BEGIN{system(\"id\")}'", "awk '{print}' /etc/passwd",
        "awk '{print}' -v /etc/passwd", "awk '{print}' -F /etc/passwd", "awk -i inplace '{print}' a.txt",
        "gawk -o '{print}' a.txt", "jq -f a.txt b.json", "jq 'import \"a\" as b; .'", "jq 'include \"a\"; .'",
        "jq . /etc/passwd", "jq -L . x", "jq --rawfile a /etc/passwd -n '$a'", "jq --slurpfile a /etc/passwd -n '$a'",
    ],
    "files": [
        "file -C -m a.txt", "file -f a.txt", "file -z a.txt", "tree -o f", "tree -Io x f", "tree -PR x",
        "tree -L -o f", "tree --sort -o f", "tree -R -H . -o f", "xxd -r a.txt", "xxd a.txt out", "xxd a.txt -p",
        "xxd -p a.txt out", "md5sum -c a.txt", "du --files0-from=a.txt", "df --sync", "tar xf a.tar", "tar -xf a.tar",
        "tar cf a.tar src", "tar -tf a.tar --to-command=id", "tar -tf a.tar -I id", "tar tf host:a.tar",
        "tar -tf host:a.tar", "tar --checkpoint-action=exec=id -tf a.tar", "unzip a.zip", "unzip -l a.zip -d /tmp",
        "gzip a.txt", "gunzip a.gz", "nm --plugin=x a.txt", "nm @a.txt", "objdump -S a.txt", "strings /etc/passwd",
    ],
    "system": [
        "date -s 12:00", "date 01011200", "date --set=x", "date -f a.txt", "hostname x", "hostname -f",
        "seq -999999999 1", "hostname -F a.txt", "sleep 1000", "sleep infinity", "seq 1 inf", "seq 1e12", "free -s 1",
        "ps axe", "ps e", "ulimit -n 5", "tput init", "getconf -a /", "type -x; which -x",
    ],
    "git": [
        "git push", "git commit -m x", "git checkout x", "git -c core.pager=id log", "git --exec-path=x log",
        "git -p log", "git --git-dir=x log", "git --work-tree=/ status", "git -C /etc status", "git -C .. status",
        "git log --output=f", "git log --format --output=f", "git log --since -- --output=f", "git diff --output f",
        "git diff --outp=f", "git show --ext-diff", "git log --textconv -p", "git diff --no-index a.txt b.txt",
        "git diff /etc/passwd a.txt", "git diff -- ../a ../b", "git diff -Oorder", "git log --show-signature",
        "git log --format=%G?", "git log --pretty=format:%GK", "git branch new", "git branch -v new",
        "git branch -d x", "git branch -D x", "git branch -m x", "git branch -f x", "git branch --edit-description",
        "git branch -u x", "git branch --sort=x new", "git tag v1", "git tag -d v1", "git tag -a v1",
        "git tag --sort=x v1", "git tag -v v1", "git remote show origin", "git remote add x y", "git remote update",
        "git ls-remote", "git fetch", "git stash", "git stash -p list", "git stash pop", "git stash -- list",
        "git config user.name x", "git config a.b --get-all x", "git config --unset x.y", "git config -e", "git config",
        "git config --file /etc/x -l", "git reflog expire --all", "git reflog delete x", "git grep -O x",
        "git grep -Oid x", "git grep --open-files-in-pager=id x", "git grep --no-index x", "git grep -f /etc/passwd",
        "git cat-file --textconv HEAD:a", "git cat-file --filters HEAD:a", "git worktree add x",
        "git submodule update", "git submodule foreach id", "git bisect", "git bisect run id", "git notes add",
        "git archive HEAD", "git symbolic-ref HEAD refs/heads/x", "git hash-object -w a.txt",
        "git blame --contents /etc/passwd a.txt", "git for-each-ref --format='%(signature)'", "git fsck --lost-found",
        "git help log", "git rev-parse --parseopt", "git log ~/x", "git log -- /etc",
    ],
    "packages": [
        "npm install", "npm ls --cache=x", "npm view x", "npm ls --depth --cache=x", "npm --loglevel --cache=x ls",
        "npm outdated", "npm run x", "npm ls --script-shell=id", "yarn", "yarn install", "yarn --silent",
        "yarn -- list", "yarn add x", "pip install x", "pip list --outdated", "pip list -o", "pip --python x list",
        "pip list --python=x", "pip list --log f", "pip --log=f list", "pip freeze -r /etc/passwd",
        "pip list -i http://x", "pip download x", "python3 x.py", "python3 -c 1", "python3 -m pip list", "node x.js",
        "node -e 1", "make", "make -v", "ninja -v", "vim -V", "cargo build", "go run x", "go env -w x=y",
        "java -version x", "java -jar x", "gcc a.c --version", "bash -c id", "bash --version x", "yarn --version",
        "yarn -v", "pnpm --version", "cargo --version", "rustc -V", "go version", "mvn -v", "gradle --version",
        "pytest --version", "tox --version", "bundle --version", "jest --version", "webpack --version", "hg --version",
        "bazel --version", "dotnet --version", "terraform --version",
    ],
}  # fmt: skip


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> AnalysisContext:
    place = tmp_path_factory.mktemp("work")
    for name in ("a.txt", "b.txt", "a.json", "a.yml", "a.tgz", "a.tar", "a.zip", "a.gz"):
        (place / name).write_text("1\n")
    (place / "src").mkdir()
    (place / "src/x.py").write_text("x\n")
    return AnalysisContext(os.path.realpath(place))


@pytest.mark.parametrize("line", [line for lines in PASSES.values() for line in lines])
def test_a_line_that_only_reads_passes(line: str, context: AnalysisContext) -> None:
    found = analyse(line, context)
    assert found.safe, [part.reason for part in found.parts]


@pytest.mark.parametrize("line", [line for lines in NEEDS_APPROVAL.values() for line in lines])
def test_a_line_that_may_do_more_needs_approval(line: str, context: AnalysisContext) -> None:
    found = analyse(line, context)
    assert not found.safe
    assert all(part.reason for part in found.parts)


@pytest.mark.parametrize("line", [
    "grep -R x src", "grep -nR x .", "diff -r src src", "rg -L x", "rg --follow x", "find -L . -name x",
    "find . -follow", "du -L src", "ls -LR", "ls -R --dereference src", "tree -l", "fd -L x",
])  # fmt: skip
def test_options_that_follow_links_are_refused_only_because_of_links(line: str, context: AnalysisContext) -> None:
    words = [Argument(word) for word in shlex.split(line)]
    found = split_command(words[0].text, words[1:], PROGRAMS[words[0].text])
    assert found.entry.check is not None
    assert isinstance(found.entry.check(found.invocation), LinkReason)


def test_a_line_that_does_more_than_follow_links_is_not_refused_only_because_of_links() -> None:
    words = [Argument(word) for word in ("-L", ".", "-newer", "/etc/passwd")]
    found = split_command("find", words, PROGRAMS["find"])
    assert found.entry.check is not None
    why = found.entry.check(found.invocation)
    assert why and not isinstance(why, LinkReason)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("sort -o f a.txt", "writes a file"),
        ("find . -delete", "deletes the files that it finds"),
        ("sed -i s/a/b/ a.txt", "writes the files that it reads"),
        ("tail -f a.txt", "waits endlessly"),
        ("uniq a.txt b.txt", "a file that it writes"),
        ("git branch new", "makes a branch"),
        ("rg --pre id x", "runs a program"),
        ("yarn", "installs packages"),
    ],
)
def test_the_reason_says_what_would_happen(line: str, reason: str, context: AnalysisContext) -> None:
    assert reason in " ".join(part.reason for part in analyse(line, context).parts)


def test_git_needs_approval_where_there_is_no_sandbox(context: AnalysisContext) -> None:
    assert not analyse("git status", AnalysisContext(context.workspace, confined=False)).safe
    assert analyse("ls -la", AnalysisContext(context.workspace, confined=False)).safe


@pytest.mark.parametrize("line", ["ps aux", "pgrep -a sh", "who", "w", "users", "df -h", "df . | tail -1"])
def test_without_a_sandbox_a_line_that_shows_host_data_needs_approval(line, context):
    assert analyse(line, context).safe
    assert not analyse(line, AnalysisContext(context.workspace, confined=False)).safe


@pytest.mark.parametrize(
    "line",
    ["cat /srv/secret", "rg x /data", "ls ~/other", "head ../beside", "cat $x", "cat < /srv/secret", "echo /srv/*"],
)
def test_reading_elsewhere_needs_approval_with_a_sandbox_and_without(line, context):
    assert not analyse(line, context).safe
    assert not analyse(line, AnalysisContext(context.workspace, confined=False)).safe


@pytest.mark.parametrize("line", ["xxd *", "uniq *", "sort *", "find * -name x", "git log *"])
def test_names_of_files_that_may_become_options_need_approval(line: str, tmp_path: Path) -> None:
    for name in ("-o", "a", "b"):
        (tmp_path / name).write_text("")
    assert not analyse(line, AnalysisContext(os.path.realpath(tmp_path))).safe
