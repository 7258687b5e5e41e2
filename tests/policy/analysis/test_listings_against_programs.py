"""The names that a pipe is predicted to print, compared with those that the programs print."""

import random
import shlex
import shutil
import subprocess

import pytest

from haft.policy.analysis.command.listings import Lister
from haft.policy.analysis.program import Argument
from haft.policy.analysis.programs import PROGRAMS
from haft.policy.analysis.tree.path_resolver import PathResolver
from haft.policy.analysis.tree.survey import Surveyor
from haft.policy.analysis.verdict import AnalysisContext

TESTS = [
    "-name '*.py'", "-name 'a*'", "-iname '*.PY'", "-name '?.py'", "-type f", "-type d", "-path './src/*'", "-empty",
    "-maxdepth 1", "-maxdepth 2", "-mindepth 1", "-prune", "-print", "-false", "-true", "-name -o", "-name '*'",
    "-name '[ab]*'", "-size -1k", "-perm -u+r", "-newer a.py", "-regex '.*py'", "-depth", "-name .",
]  # fmt: skip
JOINS = [" ", " ", " -o ", " -a ", " ! ", " -not "]
ROOTS = ["", ".", "src", "src/", "./src", "src/deep a.py", "inward", "inward/", "missing", "src/.", "src/.."]
NAMES = ["a.py", "b.py", "A.PY", "src/a.py", "src/b.txt", "src/deep/a.py", "src/deep/.hidden", "src/-o", "src/x y.py"]


@pytest.fixture
def tree(tmp_path):
    for name in NAMES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("text\n")
    (tmp_path / "inward").symlink_to("src/deep")
    return tmp_path.resolve()


def _predicted(line, tree, directory=None):
    stages = [[Argument(word) for word in shlex.split(stage)] for stage in line.split(" | ")]
    lister = Lister(PROGRAMS, Surveyor(PathResolver(AnalysisContext(str(tree)))))
    return lister.names_of_pipe(stages, str(directory or tree))


def _printed(line, directory):
    done = subprocess.run(["bash", "-c", line], cwd=directory, capture_output=True, text=True, check=False, timeout=20)
    return set(filter(None, done.stdout.replace("\0", "\n").split("\n")))


def _expression(chance):
    words = chance.choice(TESTS)
    for _ in range(chance.randrange(4)):
        word = chance.choice(TESTS)
        words += chance.choice(JOINS) + (rf"\( {word} \)" if chance.random() < 0.2 else word)
    return rf"\( {words} \)" if chance.random() < 0.1 else words


def test_find_prints_no_name_that_was_not_predicted(tree):
    chance = random.Random(3)
    predicted_some = fewer = 0
    everything = len(_predicted("find .", tree).names)
    for _ in range(400):
        line = f"find {chance.choice(ROOTS)} {_expression(chance)}"
        predicted = _predicted(line, tree)
        if predicted is not None:
            predicted_some += 1
            fewer += len(predicted.names) < everything
            assert _printed(line, tree) <= set(predicted.names), line
    assert predicted_some > 300
    assert fewer > 50


@pytest.mark.parametrize("line", [
    "ls", "ls -a", "ls src", "ls -1 src a.py", "ls src inward", "ls missing", "grep -rl text", "grep -rl text .",
    "grep -rl text src/ inward", "grep -L nothing a.py b.py", "grep -rlZ text src", "find . -print0",
    "find . | sort -r | head -3", "find . -name '*.py' | grep -v deep | tail -n 2", "find src -print0 | sort -z",
    "ls | tr '\\n' '\\0'",
])  # fmt: skip
def test_programs_print_no_name_that_was_not_predicted(tree, line):
    assert _printed(line, tree) <= set(_predicted(line, tree).names)


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
@pytest.mark.parametrize("directory", [".", "src"])
@pytest.mark.parametrize("line", [
    "git ls-files", "git ls-files -z", "git ls-files src", "git ls-files '*.py'", "git ls-files '*a*'",
    "git ls-files -m", "git ls-files ./deep", "git ls-files .hidden deep/.hidden", "git diff --name-only",
    "git diff --name-only -- '*.py'", "git grep -l more", "git grep -li MORE -- '*.py'", "git ls-files --full-name",
])  # fmt: skip
def test_git_prints_no_name_that_was_not_predicted(tree, line, directory):
    subprocess.run("git init -q && git add .", shell=True, cwd=tree, check=True)
    for name in ("a.py", "src/a.py", "src/deep/.hidden"):
        (tree / name).write_text("more\n")
    assert _printed(line, tree / directory) <= set(_predicted(line, tree, tree / directory).names)


@pytest.mark.parametrize("line", [
    "cat a.py", "find . -printf '%f\\n'", "find . -ls", "find -L .", "find . -exec echo {} +", "find . -follow",
    "find . | head -c 5", "find . | sed s/a/b/", "find . | cut -c2-", "find . | grep -o a", "find . | grep -n a",
    "find . | uniq -c", "find . | sort a.py", "find . | grep x a.py", "find . -print0 | head -3", "ls -l", "ls -R",
    "ls -F", "ls -s", "grep -l text", "grep -r text", "git diff --name-only HEAD", "git diff --name-only --cached",
    "git diff --name-only main..x", "git grep -l x HEAD", "git ls-files -o", "git -C src ls-files", "git status -s",
    "git ls-files ':/'", "git ls-files -s", "git log --name-only", "git ls-files", "rg -l x --path-separator /",
    "find . | tr a b", "find . | cat a.py", "find ..", "ls ..",
])  # fmt: skip
def test_no_names_are_predicted_for_a_pipe_that_may_print_anything_else(tree, line):
    assert _predicted(line, tree) is None


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
@pytest.mark.parametrize("change", [
    "git config core.worktree ..", "git config include.path x", "git update-index --split-index",
    "git update-index --add --cacheinfo 160000,1111111111111111111111111111111111111111,sub",
    "truncate -s 100 .git/index",
    "mv .git real && echo gitdir: real > .git", "mv .git real && ln -s real .git", "rm .git/index && mkfifo .git/index",
    "git update-index --index-version 4",
])  # fmt: skip
def test_no_names_are_predicted_for_an_unusual_repository(tree, change):
    subprocess.run("git init -q && git add .", shell=True, cwd=tree, check=True)
    assert _predicted("git ls-files", tree) is not None
    subprocess.run(change, shell=True, cwd=tree, check=True)
    assert _predicted("git ls-files", tree) is None
