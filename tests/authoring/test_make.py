"""`haft tools make`, and what it writes where."""

import json
import os
import shutil
import stat
import tomllib
from pathlib import Path

import pytest

from haft.authoring import new_tool
from haft.authoring.new_tool import KINDS, PLACEHOLDER, cleaned_name, make
from haft.contracts import BadUsage
from haft.surfaces.cli.commands.make import _toml
from haft.surfaces.cli.main import run

TEMPLATES = Path(new_tool.__file__).parent / "templates"


class Command:
    """The command line, in this process, in a workspace of its own."""

    def __init__(self, workspace, home, capsys):
        self.workspace = workspace
        self.home = home
        self._capsys = capsys

    def __call__(self, *words):
        self._capsys.readouterr()
        self.code = run(["tools", "make", *words])
        self.out, self.err = self._capsys.readouterr()
        return self.code

    @property
    def json(self):
        return json.loads(self.out)


@pytest.fixture
def command(tmp_path, monkeypatch, capsys):
    workspace, home = tmp_path / "workspace", tmp_path / "home"
    (workspace / ".git").mkdir(parents=True)
    home.mkdir()
    monkeypatch.chdir(workspace)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("HAFT_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("AMP_TOOLBOX", raising=False)
    return Command(workspace, home, capsys)


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def skill(folder, name=None):
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(f"---\nname: {name or folder.name}\ndescription: Teaches a thing.\n---\nText.\n")


def test_every_kind_has_a_template_and_every_template_a_kind():
    assert {one.name for one in TEMPLATES.iterdir()} == set(KINDS)


@pytest.mark.parametrize("word", KINDS)
def test_no_placeholder_is_left(tmp_path, word):
    for file in make("fresh", KINDS[word], str(tmp_path), force=False).files:
        assert PLACEHOLDER not in Path(file).read_text()


@pytest.mark.parametrize("word", KINDS)
def test_the_path_is_on_stdout_and_the_rest_on_stderr(command, word):
    assert command("fresh", f"--{word}") == 0
    path = command.workspace / KINDS[word].home / "fresh"
    assert command.out == f"{path}\n"
    called = "tb__fresh" if KINDS[word].format == "amp-toolbox" else str(path)
    assert f"inspect it: haft tools show {called}\n" in command.err
    assert f"run it:     haft tools use {called} --path {KINDS[word].home}/fresh" in command.err
    assert path.exists()
    assert ("warning" in command.err) == (shutil.which(KINDS[word].program) is None)


def test_without_a_kind_it_is_python(command):
    command("fresh", "--json")
    assert command.json["kind"] == "python"
    assert Path(command.json["path"]).read_text().startswith("#!/usr/bin/env python3\n")


def test_the_facts_are_one_object(command):
    command("fresh", "--bash", "--json")
    path = str(command.workspace / ".agents/tools/fresh")
    assert command.json == {
        "path": path,
        "kind": "bash",
        "name": "fresh",
        "registered": "tb__fresh",
        "files": [path],
        "inspect": "haft tools show tb__fresh",
        "run": "haft tools use tb__fresh --path .agents/tools/fresh",
    }
    command("fresh", "--studio", "--json")
    folder = command.workspace / "templates/fresh"
    assert command.json["registered"] is None
    assert command.json["files"] == [str(folder / "requirements.txt"), str(folder / "tool.py")]


def test_plugins_and_templates_say_what_loads_them(command):
    command("fresh", "--bash-plugin")
    assert 'plugins = ["bash:./plugins/fresh"]' in command.err
    command("fresh", "--studio")
    assert 'templates.paths = ["./templates"]' in command.err


def test_quiet_says_only_where_it_is(command):
    command("fresh", "--bash", "-q")
    assert (command.out.count("\n"), command.err) == (1, "")


def test_a_workspace_that_was_named_is_named_again(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    command("fresh", "--json", "-w", str(command.workspace))
    assert command.json["path"] == str(command.workspace / ".agents/tools/fresh")
    assert command.json["inspect"] == f"haft tools show -w {command.workspace} tb__fresh"


def test_global_tools_go_to_the_users_folder(command):
    command("fresh", "--global", "--json")
    assert command.json["path"] == str(command.home / ".config/amp/tools/fresh")
    assert command.json["registered"] == "tb__fresh"


def test_global_tools_go_to_the_first_directory_of_amp_toolbox(command, monkeypatch, tmp_path):
    monkeypatch.setenv("AMP_TOOLBOX", f":~/mine:{tmp_path}/second")
    command("fresh", "--global", "--json")
    assert command.json["path"] == str(command.home / "mine/fresh")
    assert command.json["registered"] == "tb__fresh"


def test_where_amp_toolbox_is_empty_a_global_tool_is_not_found_and_that_is_said(command, monkeypatch):
    monkeypatch.setenv("AMP_TOOLBOX", "")
    command("fresh", "--global", "--json")
    path = str(command.home / ".config/amp/tools/fresh")
    assert (command.json["path"], command.json["registered"]) == (path, None)
    assert command.json["inspect"] == f"haft tools show {path}"
    assert "toolbox.paths = [" in command.err


def test_a_tool_may_go_anywhere(command):
    command("fresh", "--to", "some/tools", "--json")
    assert command.json["path"] == str(command.workspace / "some/tools/fresh")
    assert command.json["registered"] is None
    assert 'toolbox.paths = ["./some/tools"]' in command.err
    command("other", "--to", ".agents/tools", "--json")
    assert command.json["registered"] == "tb__other"
    command("fresh", "--to", "", "--json")
    assert command.code == 2


def test_a_skill_takes_tools(command):
    skill(command.home / ".claude/skills/teach")
    command("fresh", "--skill", "teach", "--json")
    path = str(command.home / ".claude/skills/teach/tools/fresh")
    assert (command.json["path"], command.json["registered"]) == (path, "tb__fresh")
    assert command.json["inspect"] == f"haft tools show {path}"
    assert "haft skills activate teach" in command.err


def test_of_skills_with_one_name_the_first_takes_it(command):
    skill(command.home / ".claude/skills/teach")
    skill(command.workspace / ".agents/skills/teach")
    command("fresh", "--skill", "teach", "--json")
    assert command.json["path"] == str(command.workspace / ".agents/skills/teach/tools/fresh")


def test_a_skill_that_is_none_is_refused_with_the_near_miss(command):
    skill(command.workspace / ".agents/skills/deploying")
    assert command("fresh", "--skill", "deployin") == 2
    assert "did you mean `deploying`?" in command.err and "`haft skills make deployin`" in command.err
    assert command("fresh", "--skill", "../../x") == 2
    assert command("fresh", "--skill", "haft-tool-creator") == 2
    assert not list(command.workspace.rglob("fresh"))


@pytest.mark.parametrize(
    "words",
    [
        ["--bash", "--zsh"],
        ["--global", "--to", "."],
        ["--bash-plugin", "--global"],
        ["--studio", "--skill", "teach"],
    ],
)
def test_what_does_not_go_together_is_refused(command, words):
    assert command("fresh", *words) == 2
    assert "cannot be used together" in command.err and not list(command.workspace.rglob("fresh"))


@pytest.mark.parametrize(
    ("name", "proposed"),
    [
        ("my tool", "my_tool"),
        ("../../etc/x", "etc_x"),
        (".hidden", "hidden"),
        ("a.py", "a_py"),
        ("größe", "groe"),
        ("x" * 61, "x" * 60),
        ("a\x1b[31m", "a_31m"),
        ("a\n", "a"),
        ("日本", ""),
        ("", ""),
    ],
)
def test_a_name_that_no_tool_can_have_is_refused_with_a_better_one(command, name, proposed):
    assert cleaned_name(name) == proposed
    assert command("--", name) == 2
    assert (f"`{proposed}` is a valid name" in command.err) == bool(proposed)
    assert "\x1b" not in command.err
    assert not (command.workspace / ".agents").exists()


def test_the_longest_name_still_fits_with_its_prefix(command):
    command("x" * 60, "--json")
    assert len(command.json["registered"]) == 64


def test_a_name_cannot_begin_with_a_dash(command):
    assert command("--", "-x") == 2
    assert "`x` is a valid name" in command.err


def test_nothing_is_replaced_without_force(command):
    command("fresh", "--bash")
    path = Path(command.out.strip())
    path.write_text("mine")
    assert command("fresh") == 2
    assert str(path) in command.err and "--force" in command.err and command.out == ""
    assert path.read_text() == "mine"
    assert command("fresh", "--force") == 0
    assert path.read_text().startswith("#!/usr/bin/env python3") and mode(path) & 0o100
    assert [one.name for one in path.parent.iterdir()] == ["fresh"]


def test_one_file_of_a_template_that_exists_keeps_all_of_it_from_being_made(command):
    folder = command.workspace / "templates/fresh"
    folder.mkdir(parents=True)
    (folder / "tool.py").write_text("mine")
    (folder / "data.csv").write_text("1")
    assert command("fresh", "--studio") == 2
    assert str(folder / "tool.py") in command.err
    assert sorted(one.name for one in folder.iterdir()) == ["data.csv", "tool.py"]
    assert command("fresh", "--studio", "--force") == 0
    assert sorted(one.name for one in folder.iterdir()) == ["data.csv", "requirements.txt", "tool.py"]


@pytest.mark.parametrize("target", ["elsewhere", "missing"])
def test_a_link_counts_as_existing_and_is_never_followed(command, target):
    toolbox = command.workspace / ".agents/tools"
    toolbox.mkdir(parents=True)
    elsewhere = command.workspace / "elsewhere"
    elsewhere.write_text("mine")
    (toolbox / "fresh").symlink_to(command.workspace / target)
    assert command("fresh") == 2
    assert (toolbox / "fresh").is_symlink()
    assert command("fresh", "--force") == 0
    assert not (toolbox / "fresh").is_symlink()
    assert elsewhere.read_text() == "mine" and not (command.workspace / "missing").exists()


def test_a_template_is_not_written_through_a_link(command):
    (command.workspace / "elsewhere").mkdir()
    (command.workspace / "templates").mkdir()
    (command.workspace / "templates/fresh").symlink_to(command.workspace / "elsewhere")
    for words in ([], ["--force"]):
        assert command("fresh", "--studio", *words) == 2
    assert not list((command.workspace / "elsewhere").iterdir())


def test_a_directory_in_the_way_is_not_replaced(command):
    (command.workspace / ".agents/tools/fresh").mkdir(parents=True)
    assert command("fresh", "--force") == 2
    assert "is a directory" in command.err
    (command.workspace / "file").write_text("")
    assert command("fresh", "--to", "file/tools") == 2
    assert f"{command.workspace / 'file'} is not a directory" in command.err
    (command.workspace / "dangling").symlink_to("nowhere")
    assert command("fresh", "--to", "dangling") == 2
    assert "is not a directory" in command.err and not (command.workspace / "nowhere").exists()


@pytest.mark.parametrize(("mask", "wanted"), [(0o022, 0o755), (0o077, 0o700), (0o000, 0o755), (0o177, 0o700)])
def test_the_owner_may_run_it_and_the_umask_counts_for_the_others(tmp_path, mask, wanted):
    (tmp_path / "tools").mkdir()
    before = os.umask(mask)
    try:
        made = make("fresh", KINDS["bash"], str(tmp_path / "tools"), force=False)
    finally:
        os.umask(before)
    assert mode(made.path) == wanted


def test_directories_that_are_made_are_nobody_elses_to_write(tmp_path):
    before = os.umask(0)
    try:
        made = make("fresh", KINDS["bash"], str(tmp_path / "a/b"), force=False)
    finally:
        os.umask(before)
    assert (mode(tmp_path / "a"), mode(tmp_path / "a/b")) == (0o755, 0o755)
    assert made.warnings == ()


def test_a_directory_that_anyone_may_write_to_is_warned_of(tmp_path):
    tmp_path.chmod(0o777)
    (warning,) = make("fresh", KINDS["bash"], str(tmp_path), force=False).warnings
    assert str(tmp_path) in warning and "chmod o-w" in warning
    tmp_path.chmod(0o1777)
    assert make("fresh", KINDS["bash"], str(tmp_path), force=True).warnings == ()


@pytest.mark.parametrize("word", KINDS)
def test_without_its_program_a_tool_is_made_all_the_same_and_that_is_said(command, word, monkeypatch):
    monkeypatch.setenv("PATH", str(command.workspace))
    assert command("fresh", f"--{word}") == 0
    assert f"warning: `{KINDS[word].program}` is not on your PATH" in command.err
    assert KINDS[word].cure in command.err and os.path.exists(command.out.strip())


def test_a_tool_of_the_same_name_elsewhere_is_pointed_out(command):
    command("fresh", "--global")
    first = command.out.strip()
    assert "warning" not in command.err
    command("fresh")
    assert f"{first} exists too" in command.err and f"haft uses {first}" in command.err


@pytest.mark.parametrize(
    ("folder", "words"), [(".agents/tools", []), ("plugins", ["--bash-plugin"]), ("templates", ["--studio"])]
)
def test_nothing_is_made_through_a_link_out_of_the_workspace(command, tmp_path, folder, words):
    (tmp_path / "out").mkdir()
    (tmp_path / "out/fresh").write_text("theirs")
    link = command.workspace / folder
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(tmp_path / "out")
    assert command("fresh", "--force", *words) == 2
    assert f"{link} is a link out of the workspace: no tool was made" in command.err
    assert command("other", *words) == 2
    assert [(one.name, one.read_text()) for one in (tmp_path / "out").iterdir()] == [("fresh", "theirs")]
    assert command("other", "--to", str(link)) == 0, "whoever names the place means it"


def test_nor_through_one_out_of_a_skill(command, tmp_path):
    (tmp_path / "out").mkdir()
    folder = command.workspace / ".agents/skills/teach"
    skill(folder)
    (folder / "tools").symlink_to(tmp_path / "out")
    assert command("fresh", "--skill", "teach") == 2
    assert "is a link out of the skill" in command.err and not list((tmp_path / "out").iterdir())


def test_a_path_of_any_letters_is_printed_as_toml_has_it(command):
    for folder in ("e\U0001f600", 'q"uote', "b\\ack", "ünï"):
        command("fresh", "--to", str(command.workspace / folder))
        setting = next(line for line in command.err.splitlines() if "toolbox.paths" in line).partition("paths = ")[2]
        assert tomllib.loads(f"paths = {setting}") == {"paths": [f"./{folder}"]}
    assert _toml("a\x7f") == '"a\\u007f"'


def test_directories_that_are_made_can_be_used_whatever_the_umask(command):
    old = os.umask(0o777)
    try:
        assert command("fresh") == 0
    finally:
        os.umask(old)
    assert [mode(command.workspace / one) for one in (".agents", ".agents/tools")] == [0o700, 0o700]


def test_a_home_that_is_no_absolute_path_gets_nothing(command, monkeypatch):
    monkeypatch.setenv("HOME", "home")
    assert command("fresh", "--global") == 2
    assert "not an absolute path" in command.err and not (command.workspace / "home").exists()


def test_names_that_templates_cannot_keep_are_pointed_out(command):
    command("my-tool", "--studio")
    assert "such as `my_tool`" in command.err
    command("json_reader", "--studio")
    assert "it is called" not in command.err


def test_what_cannot_be_written_is_one_sentence(command):
    assert command("fresh", "--to", "/proc/nowhere") == 2
    assert command.err.startswith("error: /proc/nowhere cannot be made: ")


def test_a_name_that_is_taken_meanwhile_is_not_replaced(tmp_path, monkeypatch):
    def take(_file, *, force):
        (tmp_path / "fresh").write_text("theirs")

    monkeypatch.setattr(new_tool, "_require_free", take)
    with pytest.raises(BadUsage, match="another process has just made"):
        make("fresh", KINDS["bash"], str(tmp_path), force=False)
    assert [(one.name, one.read_text()) for one in tmp_path.iterdir()] == [("fresh", "theirs")]
