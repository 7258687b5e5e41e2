import pytest

from haft.files.protected import NAMES, elsewhere, folded


@pytest.mark.parametrize(
    "name",
    [".git", ".GIT", ".git.", ".git ", ".git. .", "git~1", "GIT~1", ".g\u200cit", ".\u2060gi\ufefft", ".git::$INDEX"],
)  # fmt: skip
def test_what_some_filesystem_takes_for_it_is_it(name):
    assert folded(name) == ".git"


def test_letters_that_only_look_different_are_the_same():
    assert folded(".v\u017fcode") == ".vscode"
    assert folded(".\u212airo") == ".kiro"


@pytest.mark.parametrize("name", [".github", "git", ".gitignore", "git~2", "x.git", ".gi", "café", "caf\udce9"])
def test_other_names_stay_others(name):
    assert folded(name) not in (".git", *NAMES)


def test_every_name_stands_as_it_is_compared():
    assert [name for name in NAMES if any(folded(word) != word for word in name.split("/"))] == []


def test_configuration_that_is_included_is_followed(tmp_path):
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git/config").write_text("[include]\n\tpath = ../team.config\n\tpath = /etc/gitconfig\n")
    (tmp_path / "team.config").write_text('[core]\n\thooksPath = .hooks\n[includeIf "onbranch:x"]\n\tpath = more\n')
    assert elsewhere(str(tmp_path)) == ["team.config", "more", ".hooks"]


def test_a_worktree_obeys_its_repository(tmp_path):
    (tmp_path / "main/.git/worktrees/w").mkdir(parents=True)
    (tmp_path / "main/.git/worktrees/w/commondir").write_text("../..\n")
    (tmp_path / "main/.git/config").write_text("[core]\n\thooksPath = .husky/_\n")
    (tmp_path / "w").mkdir()
    (tmp_path / "w/.git").write_text(f"gitdir: {tmp_path}/main/.git/worktrees/w\n")
    assert elsewhere(str(tmp_path / "w")) == [".husky/_"]


def test_files_that_include_each_other_come_to_an_end(tmp_path):
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git/config").write_text("[include]\n\tpath = ../a\n")
    (tmp_path / "a").write_text("[include]\n\tpath = a\n")
    assert elsewhere(str(tmp_path)) == ["a"]
