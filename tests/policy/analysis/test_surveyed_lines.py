"""Lines that pass file names on: they pass in a clean tree, but need approval because of a link, a name or its size."""

import dataclasses
import subprocess

import pytest

from haft.policy.analysis import AnalysisContext, analyse
from haft.policy.analysis.tree.path_resolver import PathResolver
from haft.policy.analysis.tree.survey import Surveyor

FOLLOWING = [
    "grep -R x src", "grep -Rn x", "diff -r src src", "rg -L x src", "find -L src -name x", "find src -follow",
    "du -L src", "ls -LR src", "tree -l src", "fd -L x",
]  # fmt: skip
PASSING_ON = [
    "find src -exec cat {} +", "find . -exec grep -n x {} \\;", "find src -name '*' -exec wc -l {} \\; -print",
    "find src -exec head -3 {} \\; -exec tail -3 {} \\;", "find src | xargs cat", "find src -print0 | xargs -0 wc -l",
    "find src -print0 | xargs -0 -n1 -P 4 head -1", "find src | sort | head -20 | xargs -r cat",
    "find src | grep -v tmp | xargs -n 5 cat", "find src | xargs -I{} cat {}",
    "find src | tr '\\n' '\\0' | xargs -0 cat",
    "find src 2>/dev/null | xargs cat", "find src | xargs -d '\\n' cat", "cat $(find src)",
    'for f in $(find src); do cat "$f"; done', 'find src | while read -r f; do cat "$f"; done',
    'find src | while read f; do echo "$f: $(wc -l < "$f")"; done',
    'find src | while IFS= read -r f; do head -1 "$f" | cut -c1-20; done', "grep -rl x src | xargs grep -n y",
    "rg -l x src | xargs cat", "rg --files src | xargs cat", "fd . src | xargs cat", "ls src/* | xargs cat",
    "ls src | xargs -I{} cat src/{}", "find src | xargs timeout 5 cat",
]  # fmt: skip
TRACKED = [
    "git ls-files | xargs wc -l", "git ls-files -z | xargs -0 cat", "git diff --name-only | xargs grep -n x",
    "git grep -l x | xargs cat", "for f in $(git ls-files); do cat $f; done",
    'git ls-files | while read -r f; do cat "$f"; done',
]  # fmt: skip
NEVER = [
    "find src | xargs -I{} cat {} {} {}",
    "xargs -I % -n 2 cat < names", "xargs -n1 -I{} cat < names", "xargs -I{} -L1 cat < names",
    "xargs -I{} -n1 cat < names",
    'find src | while read f; do head -c 3 $(find missing); cat "$f"; done',
    "find src | xargs rm", "find src -exec rm {} +", "find src -exec sh -c 'cat {}' \\;",
    "find src -execdir cat {} \\;",
    "find src -exec {} \\;", "find src -exec cat {} {} \\;", "find src -exec cat ../secret {} +",
    "find src | xargs sh -c",
    "find src | xargs cat ../secret", "find src | xargs -I{} cat ../{}", "find src | xargs -I{} {}",
    "find src | xargs sort -o x", "find src | xargs uniq", "find src | xargs sed -i s/a/b/", "find .. | xargs cat",
    "find src | xargs cd", "find src | xargs time cat", "find src | xargs env", "find src | sed s,^,/, | xargs cat",
    "find src | cut -c4- | xargs cat", "find src | head -c 9 | xargs cat", "cat names | xargs cat", "xargs cat < names",
    "find src | xargs cat < names", "find src | xargs -a names cat", "xargs -a ../secret echo", "find src |& xargs cat",
    "find src 2>&1 | xargs cat", "find src | { head -c 3; xargs cat; }", "find src -exec cat {} + -delete",
    "find src | xargs --unknown cat", "find src | xargs -s 5 cat", "find src | xargs -P 0 cat",
    "find src -ls | xargs cat",
    "cat \"$(find src)\"", "cat $(cat names)", "cat $(find src; echo /etc/passwd)", "cat $(find src | cut -c4-)",
    'find src | while read f; do head -c 3; cat "$f"; done', 'find src | while read f; do cat "$f"; done < names',
    'find src | while read f; do cat - "$f"; done', 'find src | while read f; do grep "$f"; done',
    'find src | while read f; do echo "$(cat)"; cat "$f"; done', 'find src | while read a f; do cat "$f"; done',
    'find src | while read f; do cd "$f"; cat ../x; done', 'find src | while read f; do cat "$f"; rm "$f"; done',
    'find src | while read f; do f=../secret; cat "$f"; done', 'find src | while read f; do xargs cat; done',
    'find src | while read f; do find "$f" -exec head -c 3 - {} \\;; done', "git diff --name-only HEAD | xargs cat",
    "git diff --name-only --cached | xargs cat", "git log --name-only --format= | xargs cat",
]  # fmt: skip


def _tree(tmp_path):
    workspace = tmp_path / "workspace"
    (workspace / "src" / "deep").mkdir(parents=True)
    for name in ("src/a.py", "src/two words.md", "src/deep/b.py", "names"):
        (workspace / name).write_text("text\n")
    (workspace / "src" / "inward").symlink_to("deep")
    (tmp_path / "secret").write_text("secret\n")
    subprocess.run("git init -q && git add .", shell=True, cwd=workspace, check=True)
    return workspace.resolve()


@pytest.fixture
def clean(tmp_path):
    return _tree(tmp_path)


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    workspace = _tree(tmp_path_factory.mktemp("large"))
    for at in range(4_001):
        (workspace / "src" / "deep" / str(at)).touch()
    subprocess.run(["git", "add", "."], cwd=workspace, check=True)
    return workspace


def _unsafe_reasons(line, workspace):
    return [part.reason for part in analyse(line, AnalysisContext(str(workspace))).parts if not part.safe]


@pytest.mark.parametrize("line", FOLLOWING + PASSING_ON + TRACKED)
def test_in_a_clean_tree_names_may_be_passed_on(clean, line):
    assert _unsafe_reasons(line, clean) == []


@pytest.mark.parametrize("line", FOLLOWING + PASSING_ON + TRACKED)
@pytest.mark.parametrize("place", ["src/deep/out", "src/out"])
def test_a_link_that_leads_out_needs_approval(clean, line, place):
    (clean / place).symlink_to("../../../secret" if "deep" in place else "../../secret")
    subprocess.run(["git", "add", "."], cwd=clean, check=True)
    # `ls` does not look so deep, and what it prints of `deep` is not where it says.
    is_seen = place == "src/out" or not line.startswith(("ls src/*", "ls src |"))
    assert bool(_unsafe_reasons(line, clean)) == is_seen


@pytest.mark.parametrize("line", FOLLOWING)
def test_a_link_to_a_directory_elsewhere_is_followed_to_the_links_there(clean, line):
    (clean / "other").mkdir()
    (clean / "other" / "out").symlink_to("../../secret")
    (clean / "src" / "across").symlink_to("../other")
    assert _unsafe_reasons(line, clean)


@pytest.mark.parametrize("line", PASSING_ON + TRACKED)
@pytest.mark.parametrize("name", ["a\n/etc/passwd", "it's", "a\\b", "a\tb", "x -rf", "x /etc/passwd"])
def test_a_name_that_becomes_other_words_needs_approval(clean, line, name):
    place = clean / "src" / name
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("text\n")
    subprocess.run(["git", "add", "."], cwd=clean, check=True)
    stays_whole = "-0" in line or "-exec" in line or "-d" in line
    if "-I{}" in line or "while" in line:
        stays_whole = not set(name) & set("\n\t'\\")
    if line.startswith("ls src/*") and "/" in name:
        stays_whole = True
    if not stays_whole:
        assert _unsafe_reasons(line, clean)


@pytest.mark.parametrize(
    "line", ["ls -d * | xargs cat", "ls | xargs cat", "git ls-files | xargs cat", "find * | xargs cat"]
)
def test_a_name_that_begins_with_a_dash_needs_approval(clean, line):
    assert line.startswith("find *") or _unsafe_reasons(line, clean) == []
    (clean / "-n").write_text("text\n")
    subprocess.run(["git", "add", "--", "-n"], cwd=clean, check=True)
    assert _unsafe_reasons(line, clean)


@pytest.mark.parametrize("line", FOLLOWING + PASSING_ON + TRACKED)
def test_a_tree_that_is_too_large_to_survey_needs_approval(large, line):
    assert _unsafe_reasons(line, large) or line.startswith("ls src |")


@pytest.mark.parametrize("line", NEVER)
def test_a_program_that_may_get_more_than_names_needs_approval(clean, line):
    assert _unsafe_reasons(line, clean)


def test_if_nothing_is_listed_the_whole_directory_is_read(clean):
    assert _unsafe_reasons("grep -R x $(find src -name none)", clean) == []
    (clean / "out").symlink_to("../secret")
    assert _unsafe_reasons("grep -R x $(find src -name none)", clean)


def test_a_tracked_name_that_is_not_in_the_tree_counts(clean):
    hashed = subprocess.run(
        ["git", "hash-object", "-w", "names"], cwd=clean, check=True, capture_output=True, text=True
    )
    entry = f"100644,{hashed.stdout.strip()},x /etc/passwd"
    subprocess.run(["git", "update-index", "--add", "--cacheinfo", entry], cwd=clean, check=True)
    assert _unsafe_reasons("git ls-files | xargs cat", clean)
    assert _unsafe_reasons("git ls-files -z | xargs -0 cat", clean) == []


def test_a_tracked_name_below_a_link_counts(clean):
    (clean / "src" / "a.py").unlink()
    (clean / "src" / "a.py").symlink_to("../../secret")
    assert _unsafe_reasons("git ls-files | xargs cat", clean)


def test_names_are_seen_from_the_directory_of_the_line(clean):
    (clean / "src" / "names").symlink_to("../../secret")
    assert _unsafe_reasons("ls | xargs cat", clean) == []
    assert _unsafe_reasons("cd src && ls .. | xargs cat", clean)


@pytest.mark.parametrize(
    "line", ["cat names | xargs", "xargs -n1 echo < names", "xargs -a names echo", "cat names | xargs -L1 echo x"]
)
def test_any_words_may_be_passed_on_to_a_program_that_only_prints_them(clean, line):
    assert _unsafe_reasons(line, clean) == []


def test_a_file_that_a_pattern_names_is_quoted_as_it_was_written(clean):
    assert _unsafe_reasons("xargs -a *.txt echo", clean) == ["haft cannot tell which file `*.txt` names before it runs"]


def test_a_started_program_may_need_a_sandbox(clean):
    line, context = "git ls-files | xargs git log --oneline --", AnalysisContext(str(clean))
    assert analyse(line, context).safe
    assert not analyse(line, dataclasses.replace(context, confined=False)).parts[-1].safe


def test_all_surveys_of_a_line_share_one_limit(clean):
    surveyor = Surveyor(PathResolver(AnalysisContext(str(clean))))
    answers = [surveyor.paths_below(str(clean), "src") for _ in range(3_000)]
    assert answers[0] is not None
    assert answers[-1] is None


def test_a_survey_shows_nothing_outside_of_the_workspace(clean):
    surveyor = Surveyor(PathResolver(AnalysisContext(str(clean))))
    assert surveyor.paths_below(str(clean), "..") is None
    assert surveyor.paths_below(str(clean), "missing") == ()
    assert set(surveyor.paths_below(str(clean), "src", 1)) == {"a.py", "two words.md", "deep", "inward"}
    assert not surveyor.stays_inside(str(clean), [".."])
