"""What a command line reads and writes, and that nothing is known where anything is doubtful."""

import os
import subprocess
from pathlib import Path

import pytest

from haft.contracts import UNKNOWN, Footprint
from haft.policy import AnalysisContext, footprint_of_line


@pytest.fixture
def context(tmp_path):
    top = tmp_path / "workspace"
    (top / "src" / "deep").mkdir(parents=True)
    (top / "out").mkdir()
    for name in ("a", "b", "src/x", "src/deep/y"):
        (top / name).write_text(name)
    (top / "link").symlink_to("src/x")
    (top / "away").symlink_to(tmp_path)
    os.mkfifo(top / "pipe")
    return AnalysisContext(os.path.realpath(top))


KNOWN = [
    ("true", "", ""),
    ("sleep 600", "", ""),
    ("echo hi && printf '%s' x || false", "", ""),
    ("cat a src/x", "a src/x", ""),
    ("cat link", "link src/x", ""),
    ("cat < a | grep hi | wc -l", "a", ""),
    ("grep -rn hi", ".", ""),
    ("grep -rn hi src", "src", ""),
    ("ls", ".", ""),
    ("ls -la src", "src", ""),
    ("head -n 3 a; tail -2 b", "a b", ""),
    ("[ -f a ] && cat b", "a b", ""),
    ("if test -e a; then cat b; fi", "a b", ""),
    ("echo hi > new", "new", "new"),
    ("echo hi >> src/x 2> errors", "errors src/x", "errors src/x"),
    ("echo hi > /dev/null 2>&1", "", ""),
    ("cat a | tee b out/c", "a b out/c", "b out/c"),
    ("cp a b", "a b", "b"),
    ("cp a b src", "a b src/a src/b", "src/a src/b"),
    ("cp a out/", "a out/a", "out/a"),
    ("cp -r src new", "new src", "new"),
    ("mv a new", "a new", "a new"),
    ("mv a out", "a out/a", "a out/a"),
    ("cp x y; cp y x", "x y", "x y"),
    ("rm -rf src out", "out src", "out src"),
    ("mkdir -p deep/er", "deep/er", "deep/er"),
    ("touch a 'b c'", "a b c", None),
    ("sed -i s/a/b/ a", "a", "a"),
    ("sed -n s/a/b/p a", "a", ""),
    ("chmod +x a", "a", "a"),
    ("cat {a,b}", "a b", ""),
]


@pytest.mark.parametrize(("line", "reads", "writes"), KNOWN)
def test_a_line_of_known_programs_touches_what_its_words_name(context, line, reads, writes):
    found = footprint_of_line(line, context, {})
    if writes is None:  # A name with a blank.
        assert found == Footprint(("a", "b c"), ("a", "b c"))
    else:
        assert found == Footprint(tuple(reads.split()), tuple(writes.split()))


@pytest.mark.parametrize(
    "line",
    [
        "pytest -q",
        "git commit -m x",
        "cd src && echo hi > x",
        "echo hi > $FILE",
        "echo hi > *.txt",
        "echo $(date) > a",
        "echo hi > a &",
        "cp a b -t out",
        "cp --backup a b",
        "cp -r src/deep src",
        "cp -r src new; cat new/x",
        "cp -r link new; cat new",
        "mv src new && echo hi > new/x",
        "mv link new",
        "rm link",
        "echo hi > link",
        "echo hi > away/x",
        "echo hi > ../x",
        "echo hi > /tmp/x",
        "echo hi > pipe",
        "touch src/../../x",
        "rm -rf .",
        "rm -rf *",
        "sed -i.old s/a/b/ a",
        "sed -i 'w b' a",
        "sed -i -f script a",
        "sort -o a b",
        "FOO=1 cp a b",
        "PATH=/x; cp a b",
        "f() { rm a; }; f",
        "alias cp=rm; cp a b",
        "eval 'rm a'",
        "xargs rm < a",
        "find . -delete",
        "ln -s a c",
        "exec > a",
        "/bin/rm a",
        "time rm a",
        "chmod -x a",
        "echo hi <> a",
        "for f in a b; do rm $f; done",
        "cat a > b; unknown",
        "echo 'not closed",
    ],
)
def test_nothing_is_known_of_a_line_with_any_doubt(context, line):
    assert footprint_of_line(line, context, {}) == UNKNOWN


@pytest.mark.parametrize("line", ["git log", "find . -name x", "cat *.py", "diff a b", "ls -L src", "cd src; cat x"])
def test_a_line_that_only_reads_writes_nothing_although_it_is_not_known_what_it_reads(context, line):
    assert footprint_of_line(line, context, {}) == Footprint(None, ())


def test_a_variable_that_may_change_what_a_program_is_makes_everything_unknown(context):
    assert footprint_of_line("cat a", context, {"PATH": "/x"}) == UNKNOWN
    assert footprint_of_line("cat a", context, {"BASH_FUNC_cat%%": "() { rm a; }"}) == UNKNOWN
    assert footprint_of_line("cat a", context, {"mode": "fast"}) == Footprint(("a",), ())


@pytest.mark.parametrize(("line", "_reads", "writes"), [each for each in KNOWN if each[2]])
def test_a_line_changes_no_file_outside_its_write_set(context, line, _reads, writes, tmp_path):
    """Run by a real bash, in a workspace of its own."""
    top = context.workspace
    before = snapshot(top)
    subprocess.run(["bash", "-c", line], cwd=top, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    after = snapshot(top)
    changed = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    allowed = writes.split()
    for path in changed:
        # A directory that holds a written path may be created with it.
        assert any(path == one or path.startswith(f"{one}/") or one.startswith(f"{path}/") for one in allowed), path


def snapshot(top):
    found = {}
    for directory, names, files in os.walk(top):
        for name in (*names, *files):
            path = os.path.join(directory, name)
            is_file = os.path.isfile(path) and not os.path.islink(path)
            content = Path(path).read_text() if is_file else ""
            found[os.path.relpath(path, top)] = (os.lstat(path).st_mode, content)
    return found
