"""Recordings of tools that use git."""

import os
import subprocess

import pytest

from haft.testing.reading import read_scenario_file
from haft.testing.recording import NotReproducible

pytestmark = pytest.mark.takes_turns

COMMIT = """read line; path=${line#path: }
echo new >>"$path"
git add -- "$path"
git -c user.name=Ann -c user.email=ann@example.com commit -q -m "Change $path"
git log --format=%s -1
"""


def git(past, *words):
    person = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
    given = ("-c", "user.name=Bob", "-c", "user.email=bob@example.com")
    subprocess.run(["git", *given, *words], cwd=past.workspace, check=True, env={**os.environ, **person})


@pytest.fixture
def repository(past):
    """A workspace that is a repository with a history."""
    past.write("a.txt", "one\n")
    past.write("b.txt", "two\n")
    git(past, "init", "-q", "-b", "main")
    git(past, "add", "a.txt", "b.txt")
    git(past, "commit", "-q", "-m", "first")
    git(past, "commit", "-q", "--allow-empty", "-m", "second")
    return past


def test_a_call_that_commits_is_recorded_without_files_of_git(repository):
    repository.tool("commit", COMMIT)
    assert repository.call("tb__commit", {"path": "a.txt"}).output == "Change a.txt\n"
    recorded = repository.record()
    (scenario,) = read_scenario_file(recorded.path)
    assert scenario.git
    assert set(scenario.files) == {"a.txt"}
    assert set(scenario.expect.files) == {"a.txt"}
    (note,) = (each for each in recorded.notes if "begins with" in each)
    assert note.startswith("the scenario begins with one commit of its own files, without the history")
    assert repository.replay(recorded).passed
    repository.tool("commit", COMMIT.replace("Change", "Changed"))
    assert not repository.replay(recorded).passed


def test_a_call_that_commits_what_was_there_finds_it_uncommitted(repository):
    repository.write("new.txt", "one\n")
    repository.tool("commit", COMMIT.replace('echo new >>"$path"', ""))
    repository.call("tb__commit", {"path": "new.txt"})
    recorded = repository.record()
    (scenario,) = read_scenario_file(recorded.path)
    assert (set(scenario.files), set(scenario.uncommitted)) == (set(), {"new.txt"})
    assert any(each.startswith("the scenario begins with an empty commit") for each in recorded.notes)
    assert repository.replay(recorded).passed


def test_hashes_that_a_call_prints_are_those_of_the_replay(repository):
    command = (
        "echo 2 >>a.txt; git -c user.name=Ann -c user.email=a@b.example commit -am third; git rev-parse HEAD >version"
    )
    repository.call("shell", {"command": command})
    recorded = repository.record()
    (scenario,) = read_scenario_file(recorded.path)
    assert "third" in scenario.expect.output.equals
    assert "hashes of commits in the output are those of the replay" in recorded.notes
    assert len(scenario.expect.files["version"].content.equals.strip()) == 40
    assert repository.replay(recorded).passed


def test_a_call_that_only_asks_git_gets_a_repository_if_it_needs_one(repository):
    repository.call("shell", {"command": "git ls-files -- a.txt; cat a.txt"})
    recorded = repository.record(to="asked.scenario.yaml")
    assert read_scenario_file(recorded.path)[0].git
    assert repository.replay(recorded).passed
    repository.call("shell", {"command": "cat a.txt"})
    assert not read_scenario_file(repository.record(to="other.scenario.yaml").path)[0].git


def test_the_history_of_the_workspace_is_named_if_the_replay_lacks_it(repository):
    repository.call("shell", {"command": "git log --format=%s; touch .git/mark"})
    with pytest.raises(NotReproducible) as refused:
        repository.record()
    assert "without the history of the workspace" in refused.value.hint
    assert ".git" not in str(refused.value)


def test_git_is_recorded_in_a_repository(repository):
    repository.tool("list", "git ls-files -- '*.txt'; git status --short -- '*.txt' | wc -l")
    repository.call("tb__list")
    with pytest.raises(NotReproducible):
        repository.record(programs=["git"])
    recorded = repository.record(programs=["git"], files=["*.txt"])
    (scenario,) = read_scenario_file(recorded.path)
    assert not scenario.git, "git itself is not needed any more"
    assert [each.stdout for each in scenario.programs.stubs[0].answers] == ["a.txt\nb.txt\n", ""]
    assert "git was recorded in a repository with one commit of the scenario's files" in recorded.notes
    assert repository.replay(recorded).passed


def test_a_call_that_makes_repositories_is_recorded_without_them(past):
    past.call("shell", {"command": "git init -q .; git init -q sub/inner; echo 1 >sub/inner/one.txt"})
    recorded = past.record()
    (scenario,) = read_scenario_file(recorded.path)
    assert not scenario.git
    assert set(scenario.expect.files) == {"sub/inner/one.txt"}
    assert set(scenario.expect.only_changed) == {".git", ".git/*", "sub/inner/.git", "sub/inner/.git/*"}
    assert past.replay(recorded).passed


def test_files_of_git_cannot_be_added(repository):
    repository.call("shell", {"command": "cat .git/HEAD"})
    recorded = repository.record(files=[".git/*", "*.none"])
    (scenario,) = read_scenario_file(recorded.path)
    assert (scenario.git, dict(scenario.files)) == (True, {})
    assert "`--files .git/*` adds nothing, because files of git are left out" in recorded.notes
    assert any(each.startswith("`--files *.none` matches no file") for each in recorded.notes)
