import pytest

from haft.files.protected import AREA, NAMES, elsewhere, folded


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


def test_a_workspace_that_is_part_of_a_repository_obeys_it(tmp_path):
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git/config").write_text("[core]\n\thooksPath = web/.husky\n")
    (tmp_path / ".git/HEAD").write_text("ref: refs/heads/main\n")
    (tmp_path / "web").mkdir()
    assert elsewhere(str(tmp_path / "web")) == [".husky"]


def test_a_repository_inside_is_asked_for_by_its_place(tmp_path):
    (tmp_path / "apps/one/.git").mkdir(parents=True)
    (tmp_path / "apps/one/.git/config").write_text("[core]\n\thooksPath = .husky\n")
    (tmp_path / "bare").mkdir()
    (tmp_path / "bare/HEAD").write_text("ref: refs/heads/main\n")
    (tmp_path / "bare/config").write_text("[core]\n\thooksPath = mine\n")
    assert elsewhere(str(tmp_path)) == []
    assert elsewhere(str(tmp_path), "apps/one") == ["apps/one/.husky"]
    assert elsewhere(str(tmp_path), "bare") == ["bare/mine"]


def test_hooks_behind_a_link_are_where_the_link_leads(tmp_path):
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git/config").write_text("[core]\n\thooksPath = .husky\n")
    (tmp_path / ".husky").symlink_to("tools/hooks")
    assert elsewhere(str(tmp_path)) == [".husky", "tools/hooks"]


@pytest.mark.parametrize("name", [".haft-0-0123456789abcdef0123", ".haft-1000-ffffffffffffffffffff"])
def test_what_haft_keeps_is_known_by_its_name(name):
    assert AREA.fullmatch(name)
    assert not AREA.fullmatch(f"{name}0")
    assert not AREA.fullmatch(name[1:])


def test_the_work_itself_is_free():
    assert not {"package.json", "makefile", "pyproject.toml", "conftest.py", ".env", ".github"} & set(NAMES)
