"""`git: true`: the workspace is a repository in which the given files are committed."""

import asyncio
import os

import pytest

from haft.contracts import BadUsage
from haft.testing.reading import scenarios_from
from haft.testing.running import run_scenario

HOOK = {"content": "#!/bin/sh\ntouch hooked\n", "mode": "755"}


def run(command, **parts):
    data = {"tool": "shell", "args": {"command": command}, "git": True, "expect": {}, **parts}
    return asyncio.run(run_scenario(scenarios_from(data)[0]))


@pytest.mark.every_user
def test_the_given_files_are_committed_and_hashes_are_always_the_same():
    files = {"a.txt": "one\n", "run": {"content": "#!/bin/sh\n", "mode": "755"}, ".gitignore": "*.log\n", "x.log": ""}
    command = (
        "git status --short --ignored; git ls-files -s; git branch; git log --format='%H %an %s'; "
        "echo two >a.txt; git commit -qam two; git rev-parse HEAD"
    )
    results = [run(command, files=files, expect={"files": {"a.txt": "two\n"}}) for _ in range(2)]
    assert [each.mismatches for each in results] == [(), ()]
    lines = results[0].outcome["output"].splitlines()
    assert lines[0] == "!! x.log"
    assert [each.split()[0] + each.split("\t")[1] for each in lines[1:4]] == [
        "100644.gitignore",
        "100644a.txt",
        "100755run",
    ]
    assert lines[4] == "* main"
    assert lines[5].endswith(" Tester The given files")
    assert results[1].outcome["output"] == results[0].outcome["output"]


def test_files_can_be_changed_and_new_after_the_commit():
    given = {"uncommitted": {"a.txt": "two\n", "run": {"content": "#!/bin/sh\n", "mode": "755"}}}
    result = run("git status --short; git diff | tail -n 2", git=given, files={"a.txt": "one\n"})
    assert (result.outcome["output"], result.mismatches) == (" M a.txt\n?? run\n-one\n+two\n", ())


def test_without_files_there_is_an_empty_commit():
    assert run("git log --oneline | wc -l; git ls-files", expect={"output": "1\n"}).mismatches == ()


def test_the_configuration_of_the_user_and_templates_do_not_count(tmp_path, monkeypatch):
    hooks = tmp_path / "template" / "hooks"
    hooks.mkdir(parents=True)
    (hooks / "post-commit").write_text("#!/bin/sh\ntouch hooked\n")
    (hooks / "post-commit").chmod(0o755)
    (tmp_path / ".gitconfig").write_text(
        f"[user]\nname = Somebody\n[init]\ntemplateDir = {tmp_path}/template\n[core]\nhooksPath = {hooks}\n"
    )
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_TEMPLATE_DIR", str(tmp_path / "template"))
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Somebody")
    result = run(
        "git log --format='%an, %cn'; ls .git/hooks hooked 2>&1 | wc -l", expect={"output": "Tester, Tester\n2\n"}
    )
    assert result.mismatches == ()


def test_files_of_git_that_the_scenario_gives_are_written_after_the_commit():
    hook = {".git/hooks/post-commit": HOOK, "inner/.git/hooks/post-commit": HOOK}
    assert run("test ! -e hooked && test -x .git/hooks/post-commit", files={"a.txt": "", **hook}).mismatches == ()
    result = run("git commit -q --allow-empty -m two", files=hook)
    assert [each.message.splitlines()[0] for each in result.mismatches] == ["File hooked mismatch:"]


def test_changes_below_git_count_only_if_the_scenario_says_so():
    command = "git branch other"
    assert run(command).mismatches == ()
    named = {"files": {".git/HEAD": "ref: refs/heads/main\n"}}
    assert run(command, expect=named).mismatches == ()
    wrong = run(command, expect={"files": {".git/HEAD": "ref: refs/heads/other\n"}})
    assert [each.path for each in wrong.mismatches] == ["expect.files..git/HEAD"]
    exact = {"only_changed": [".git/refs/heads/other", ".git/logs/*"]}
    assert run(command, expect=exact).mismatches == ()
    assert run(f"{command}; git branch third", expect=exact).mismatches[0].actual == ".git/refs/heads/third created"
    unknown = run("mkdir .git && touch .git/config", git=False)
    assert {each.actual for each in unknown.mismatches} == {".git created", ".git/config created"}


def test_other_changes_still_count():
    result = run("git init -q inner; touch .gitattributes")
    assert ".gitattributes created" in {each.actual for each in result.mismatches}
    assert "inner/.git/HEAD created" in {each.actual for each in result.mismatches}


def test_without_git_the_scenario_is_skipped(monkeypatch, tmp_path):
    for name in ("sh", "bash"):
        os.symlink(f"/bin/{name}", tmp_path / name)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert run("echo").skipped == "git is not installed here"


@pytest.mark.parametrize("wrong", ["main", {}, {"branch": "main"}])
def test_the_key_is_true_or_names_uncommitted_files(wrong):
    with pytest.raises(BadUsage, match="`git` must be"):
        run("echo", git=wrong)


def test_a_bench_has_a_repository_too(haft_tools):
    haft_tools.write({"a.txt": "one\n"})
    haft_tools.make_repository()
    haft_tools.write({"b.txt": "two\n"})
    assert haft_tools.call("shell", command="git status --short; git ls-files").output == "?? b.txt\na.txt\n"
    with pytest.raises(BadUsage, match="already"):
        haft_tools.make_repository()
