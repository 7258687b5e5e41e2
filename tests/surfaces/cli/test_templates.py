"""`haft templates`: checked, packed, installed, listed and removed."""

import os
import shutil
import zipfile

import pytest


@pytest.fixture
def made(haft):
    """A fresh template, in a folder beside those that are configured."""
    said = haft("tools", "make", "json_tool", "--studio", "--to", "made", "--json")
    assert said.code == 0, said.err
    return haft.workspace / "made" / "json_tool"


@pytest.fixture
def configured(haft):
    (haft.workspace / "haft.toml").write_text('[templates]\npaths = ["./mine"]\n')
    (haft.workspace / "mine").mkdir()
    return haft.workspace / "mine"


def packed(haft, made, *more):
    assert haft("templates", "pack", str(made), "--to", "pack.zip", *more).code == 0
    return "pack.zip"


def test_a_template_is_packed_installed_listed_and_removed(haft, made, configured):
    said = haft("templates", "pack", str(made), "--to", "pack.zip", "--name", "JSON Tool")
    assert said.out == f"{haft.workspace}/pack.zip\n"
    assert "packed JSON Tool as studio-data/tool_templates/json_tool_" in said.err
    said = haft("templates", "install", "pack.zip")
    (folder,) = os.listdir(configured)
    assert said.out == f"installed JSON Tool in {configured}/{folder}\n" and said.err == ""
    said = haft("templates", "list")
    listed = said.out.splitlines()[1].split()
    assert listed == ["JSON", "Tool", "json_tool", "-", "not", "built", f"{configured}/{folder}"]
    assert haft("templates", "check").code == 0
    said = haft("templates", "remove", "json tool", "--yes")
    assert (said.code, said.out) == (0, f"removed JSON Tool from {configured}/{folder}\n")
    assert os.listdir(configured) == []
    assert "there is no template in" in haft("templates", "list").err


def test_what_is_not_configured_goes_into_templates_and_it_is_said_how_to_configure_it(haft, made):
    said = haft("templates", "install", packed(haft, made))
    assert os.listdir(haft.workspace / "templates")
    assert "hint: " in said.err and '`paths = ["./templates"]` under `[templates]` in haft.toml' in said.err
    assert "no directory of templates is configured" in haft("templates", "list").err
    assert haft("templates", "list").out.splitlines()[1].startswith("json tool")
    said = haft("templates", "install", "pack.zip", "--to", "other", "--quiet")
    assert said.err == "" and os.listdir(haft.workspace / "other")


def test_a_place_that_leads_out_of_the_workspace_is_no_default(haft, made, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (haft.workspace / "templates").symlink_to(outside)
    archive = packed(haft, made)
    said = haft("templates", "install", archive)
    assert said.code == 2 and "is outside of the workspace: nothing was installed" in said.err
    assert os.listdir(outside) == []
    assert haft("templates", "list").out == ""
    assert haft("templates", "install", archive, "--to", str(outside)).code == 0
    assert haft("templates", "list").out == "", "nor are templates looked for there"
    assert haft("templates", "list", "--in", str(outside)).out.splitlines()[1].startswith("json tool")


def test_a_place_outside_that_only_the_workspace_names_is_no_default(haft, made, tmp_path):
    (haft.workspace / "haft.toml").write_text('[templates]\npaths = ["../outside"]\n')
    said = haft("templates", "install", packed(haft, made))
    assert "is ignored until you trust this file" in said.err and not (tmp_path / "outside").exists()
    assert os.listdir(haft.workspace / "templates")
    (tmp_path / "outside").mkdir()
    (haft.workspace / "link").symlink_to(tmp_path / "outside")
    (haft.workspace / "haft.toml").write_text('[templates]\npaths = ["./link"]\n')
    said = haft("templates", "install", "pack.zip")
    assert said.code == 2 and "is outside of the workspace: nothing was installed" in said.err
    assert os.listdir(tmp_path / "outside") == []


def test_the_users_own_place_counts(haft, made, tmp_path):
    (tmp_path / "config/haft").mkdir(parents=True)
    (tmp_path / "config/haft/haft.toml").write_text('[templates]\npaths = ["~/my-templates"]\n')
    assert haft("templates", "install", packed(haft, made)).err == ""
    assert len(os.listdir(tmp_path / "my-templates")) == 1


def test_checking_prints_and_exits_as_for_tools(haft, made):
    assert haft("templates", "check", str(made), "-q").code == 0
    (made / "tool.py").write_text('"""d"""\n')
    templates, tools = (haft(group, "check", str(made)) for group in ("templates", "tools"))
    assert templates.out == tools.out and templates.code == tools.code == 1
    assert "error studio-run-tool" in templates.out and "1 checked: " in templates.err
    assert haft("templates", "check", str(made), "--json").json == haft("tools", "check", str(made), "--json").json
    assert haft("templates", "check", "none").code == 2
    assert "there is nothing to check" in haft("templates", "check").err


def test_checking_for_packing_is_stricter(haft, made):
    source = (made / "tool.py").read_text()
    (made / "tool.py").write_text(f"import this\n{source}")
    assert haft("templates", "check", str(made)).code == 0
    said = haft("templates", "check", str(made), "--packing")
    assert said.code == 1 and "error studio-pack-docstring" in said.out
    said = haft("templates", "pack", str(made), "--to", "pack.zip")
    assert (said.code, said.out) == (2, "") and "error studio-pack-docstring" in said.err
    assert "nothing was packed, because there are errors" in said.err and not (haft.workspace / "pack.zip").exists()
    said = haft("templates", "pack", str(made), "--to", "pack.zip", "--json")
    assert said.json["error"]["code"] == "bad-usage"


def test_a_file_is_replaced_only_by_force(haft, made):
    packed(haft, made)
    said = haft("templates", "pack", str(made), "--to", "pack.zip")
    assert said.code == 2 and "exists already" in said.err and "--force" in said.err
    packed(haft, made, "--force")


def test_a_name_is_for_one_template(haft, made):
    said = haft("templates", "pack", str(made), str(made), "--to", "pack.zip", "--name", "A")
    assert said.code == 2 and "`--name` is for one template, but 2 are given" in said.err
    said = haft("templates", "pack", str(made), "--to", "pack.zip", "--name", "a_b")
    assert said.code == 2 and "`a_b` is not a valid template name" in said.err


def test_a_last_word_of_six_letters_is_part_of_the_name(haft, configured):
    for name in ("json_reader", "json_writer", "web_search"):
        made = haft("tools", "make", name, "--studio", "--to", "mine")
        assert made.code == 0 and "suffix" not in made.err
    assert sorted(one["name"] for one in haft("templates", "list", "--json").json) == [
        "json reader",
        "json writer",
        "web search",
    ]
    shown = {one["name"]: one["state"] for one in haft("tools", "list", "--all", "--json").json}
    assert {name: shown[name] for name in ("json_reader", "json_writer", "web_search")} == dict.fromkeys(
        ("json_reader", "json_writer", "web_search"), "ready"
    )
    said = haft("templates", "pack", "mine/json_reader", "--to", "pack.zip")
    assert "packed json reader as studio-data/tool_templates/json_reader_" in said.err and "suffix" not in said.err


def test_an_installed_template_keeps_its_name_whatever_its_folder_ends_with(haft, configured):
    haft("tools", "make", "json_reader", "--studio", "--to", "made")
    haft("templates", "pack", "made/json_reader", "--to", "pack.zip")
    assert haft("templates", "install", "pack.zip").code == 0
    (folder,) = os.listdir(configured)
    assert folder.startswith("json_reader_") and len(folder) == len("json_reader_abc123")
    (one,) = haft("templates", "list", "--json").json
    assert (one["name"], one["slug"]) == ("json reader", "json_reader")
    assert haft("tools", "show", "json_reader").code == 0


def test_what_is_left_out_is_said(haft, configured, made):
    packed(haft, made)
    with zipfile.ZipFile(haft.workspace / "pack.zip") as old, zipfile.ZipFile(haft.workspace / "x.zip", "w") as new:
        for info in old.infolist():
            content = old.read(info)
            if info.filename == "workflow_template.json":
                content = content.replace(b'"agent_templates": []', b'"agent_templates": [{"name": "An\\u001balyst"}]')
            new.writestr(info, content)
    said = haft("templates", "install", "x.zip")
    assert said.code == 0
    assert said.err == "warning: not installed: 1 of `agent_templates` (An\\x1balyst)\n"


def test_workflows_keep_names_apart(haft, made, configured):
    archive = packed(haft, made)
    for words in ((), ("--workflow", "Reports")):
        assert haft("templates", "install", archive, *words).code == 0
        assert haft("templates", "install", archive, *words).code == 2
    assert sorted(str(one["workflow"]) for one in haft("templates", "list", "--json").json) == ["None", "Reports"]
    said = haft("templates", "remove", "json tool", "--yes")
    assert said.code == 2 and "the name of several templates" in said.err
    assert haft("templates", "remove", "json tool", "--workflow", "Reports", "--yes").code == 0
    assert haft("templates", "remove", "json tool", "--yes").code == 0


def test_removing_asks_and_does_nothing_where_nobody_can_be_asked(haft, made, configured):
    haft("templates", "install", packed(haft, made))
    said = haft("templates", "remove", "json tool")
    assert said.code == 3 and "there is no terminal to ask at" in said.err
    (folder,) = os.listdir(configured)
    assert f"`haft templates remove {configured / folder} --yes`" in said.err
    said = haft("templates", "remove", "json tol", "--yes")
    assert said.code == 2 and "did you mean `json tool`?" in said.err
    said = haft("templates", "remove", "./a.txt", "--yes")
    assert said.code == 2 and "is not a template" in said.err


@pytest.mark.parametrize(("answer", "code"), [("n", 3), ("yes", 0)])
def test_removing_asks_at_a_terminal(haft, terminal, made, answer, code):
    shown = terminal("templates", "remove", f"{made}")
    shown.until("Remove it? [y/N] ")
    shown.type(f"{answer}\n")
    assert shown.end() == code
    assert made.exists() == (answer == "n")


def test_problems_are_listed(haft, made, configured):
    made.rename(configured / "broken")
    (configured / "broken/tool.py").write_text("def (")
    said = haft("templates", "list")
    assert said.out.splitlines()[1].split()[:4] == ["broken", "broken", "-", "broken"] and "python-parse: " in said.err
    assert haft("templates", "list", "--in", "none").code == 2


def test_of_two_templates_of_one_name_the_first_is_ready_and_the_second_a_duplicate(haft, made, configured):
    for name in ("Twice", "twice"):
        shutil.copytree(made, configured / name)
    said = haft("templates", "list")
    assert [line.split()[3] for line in said.out.splitlines()[1:]] == ["not", "duplicate"]
    assert said.err.count("has the same name") == 1
    (configured / "Twice/tool.py").write_text("def (")
    assert [line.split()[3] for line in haft("templates", "list").out.splitlines()[1:]] == ["broken", "not"]


def test_a_directory_is_not_installed_and_the_hint_says_what_to_do_with_it(haft, made):
    refused = haft("templates", "install", str(made))
    assert refused.code == 2 and "needs a ZIP" in refused.err
    assert "`templates.paths`" in refused.err and "`haft templates pack`" in refused.err


def test_names_of_strangers_do_not_steer_the_terminal(haft, made, configured):
    made.rename(configured / "a\x1b[31mb")
    assert "\x1b" not in haft("templates", "list").out + haft("templates", "check").out


def test_what_keeps_a_template_from_being_packed_is_coloured_and_not_escaped(haft, terminal, made):
    (made / "tool.py").write_text("def (")
    shown = terminal("templates", "pack", str(made), "--to", "x.zip")
    shown.until("\x1b[31;1merror\x1b[0m python-parse: ")
    assert shown.end() == 2 and "\\x1b" not in shown.seen


@pytest.fixture
def keyed(haft, configured):
    """A template that needs a key."""
    haft("tools", "make", "signs", "--studio", "--to", "mine")
    source = configured / "signs" / "tool.py"
    parts = source.read_text().split("class UserParameters(BaseModel):", 1)
    rest = parts[1].split("class ToolParameters", 1)[1]
    fields = '    key: str = Field(description="Opens the door.")\n    tries: int = 1\n\n\n'
    source.write_text(f"{parts[0]}class UserParameters(BaseModel):\n{fields}class ToolParameters{rest}")
    return configured / "signs"


def test_show_lists_user_parameters_and_whether_they_are_set_and_no_value(haft, keyed):
    said = haft("tools", "show", "signs")
    assert said.code == 0 and "# User parameters\n\n- key (string; not set): Opens the door.\n" in said.out
    assert "- tries (integer; not set, optional)\n" in said.out and "--config NAME=VALUE" in said.out
    (haft.workspace / "haft.toml").write_text(
        '[templates]\npaths = ["./mine"]\n[[templates.instances]]\nname = "signs"\ntemplate = "./mine/signs"\n'
        'user_params = {key = "xyzzy-plugh"}\n'
    )
    assert haft("trust", "--yes").code == 0
    said, facts = haft("tools", "show", "signs"), haft("tools", "show", "signs", "--json")
    assert "- key (string; set): Opens the door.\n" in said.out and "xyzzy" not in said.out + facts.out
    assert facts.json["meta"]["template"]["userParameters"] == [
        {
            "name": "key",
            "key": "key",
            "type": "string",
            "required": True,
            "description": "Opens the door.",
            "set": True,
        },
        {"name": "tries", "key": "tries", "type": "integer", "required": False, "description": "", "set": False},
    ]


def test_list_has_a_header_and_knows_environments_in_the_state_home(haft, made, configured):
    made.rename(configured / "json_tool")
    (configured / "json_tool/requirements.txt").write_text("# nothing\n")
    first = haft("templates", "list")
    assert first.out.splitlines()[0].split() == ["NAME", "TOOL", "WORKFLOW", "ENVIRONMENT", "FOLDER"]
    assert "not built" in first.out.splitlines()[1]
    (configured / "json_tool/.venv").mkdir()
    (configured / "json_tool/.venv/pyvenv.cfg").touch()  # Someone's own: it is neither used nor touched.
    built = haft("templates", "build", "json tool", "--json")
    assert built.json["environment"].startswith(str(haft.home)), built
    listed = haft("templates", "list").out.splitlines()[1].split()
    assert listed[:5] == ["json", "tool", "json_tool", "-", "built"]
    (one,) = haft("templates", "list", "--json").json
    assert one["environment"] is True and one["cold"] is None
