"""A repository can make git read any file, by a setting or a link; git prints lines that it cannot parse."""

import os
import subprocess

import pytest

from haft.policy.analysis import AnalysisContext, analyse

SECRET = "my secret&line here"

SETTINGS = [
    ("blame.ignoreRevsFile", "git blame a.txt"),
    ("fsck.skipList", "git fsck"),
    ("core.attributesFile", "git check-attr -a a.txt"),
    ("core.attributesFile", "git diff"),
]
"""A setting that names a file, and a command that prints a line of it."""
LINKS = [
    ("info/attributes", "git check-attr -a a.txt"),
    ("packed-refs", "git status"),
    ("objects/info/alternates", "git status"),
    ("rebase-merge/done", "git status"),
]


@pytest.fixture
def secret(tmp_path):
    path = tmp_path / "secret"
    path.write_text(f"{SECRET}\n")
    return path


@pytest.fixture
def workspace(tmp_path):
    place = tmp_path / "workspace"
    place.mkdir()
    git(place, "init", "-q")
    (place / "a.txt").write_text("a\n")
    git(place, "add", "a.txt")
    git(place, "-c", "user.name=x", "-c", "user.email=x@y", "commit", "-qm", "a")
    (place / "a.txt").write_text("b\n")
    (place / ".git" / "rebase-merge").mkdir()
    for name in ("git-rebase-todo", "interactive"):
        (place / ".git" / "rebase-merge" / name).write_text("\n")
    return place.resolve()


def git(place, *words):
    return subprocess.run(["git", *words], cwd=place, capture_output=True, text=True)


def analysed(place, line):
    return analyse(line, AnalysisContext(str(place)))


@pytest.mark.parametrize(("setting", "line"), SETTINGS)
def test_a_setting_that_names_a_file_outside_needs_approval(workspace, secret, setting, line):
    assert analysed(workspace, line).safe
    git(workspace, "config", setting, str(secret))
    shown = git(workspace, *line.split()[1:])
    assert "secret&line" in shown.stdout + shown.stderr
    found = analysed(workspace, line)
    assert not found.safe
    assert setting.lower() in found.parts[0].reason
    git(workspace, "config", setting, ".inside")
    assert analysed(workspace, line).safe


@pytest.mark.parametrize(("name", "line"), LINKS)
def test_a_link_of_the_repository_that_leads_out_needs_approval(workspace, secret, name, line):
    assert analysed(workspace, line).safe
    (workspace / ".git" / name).symlink_to(secret)
    shown = git(workspace, *line.split()[1:])
    assert "secret&line" in shown.stdout + shown.stderr
    found = analysed(workspace, line)
    assert not found.safe
    assert f"{workspace}/.git/{name}" in found.parts[0].reason


@pytest.mark.parametrize(
    "value", ["../secret", "link", "~other/secret", ":(optional)../secret", "%(prefix)/secret", "/etc/passwd"]
)
def test_every_form_of_a_path_outside_needs_approval(workspace, secret, value):
    (workspace / "link").symlink_to(secret)
    git(workspace, "config", "blame.ignoreRevsFile", value)
    assert not analysed(workspace, "git blame a.txt").safe


def test_settings_in_files_that_settings_include_count(workspace, secret):
    git(workspace, "config", "include.path", "../more")
    assert analysed(workspace, "git blame a.txt").safe
    (workspace / "more").write_text(f"[blame]\n\tignoreRevsFile = {secret}\n")
    assert not analysed(workspace, "git blame a.txt").safe
    git(workspace, "config", "include.path", str(secret))
    assert not analysed(workspace, "git log").safe


def test_the_repository_counts_that_git_would_find(workspace, secret):
    inner = workspace / "inner"
    inner.mkdir()
    git(inner, "init", "-q")
    git(inner, "config", "blame.ignoreRevsFile", str(secret))
    (inner / "deep").mkdir()
    assert analysed(workspace, "git log").safe
    for line in ("cd inner && git log", "cd inner/deep && git log", "git -C inner log", "git -C inner/deep log"):
        assert not analysed(workspace, line).safe, line


def test_a_repository_elsewhere_must_name_this_tree_as_its_own(workspace, tmp_path):
    git(workspace, "worktree", "add", "-q", str(tmp_path / "tree"))
    tree = (tmp_path / "tree").resolve()
    assert analysed(tree, "git log").safe
    claimed = tmp_path / "claimed"
    claimed.mkdir()
    for make in (
        lambda: (claimed / ".git").write_text(f"gitdir: {workspace}/.git\n"),
        lambda: (claimed / ".git").symlink_to(workspace / ".git"),
    ):
        make()
        assert not analysed(claimed.resolve(), "git log").safe
        os.remove(claimed / ".git")


def test_a_file_in_the_hidden_home_directory_needs_no_approval(workspace):
    git(workspace, "config", "core.excludesFile", "~/.gitignore")
    git(workspace, "config", "include.path", "~/.gitconfig-work")
    assert analysed(workspace, "git status").safe
