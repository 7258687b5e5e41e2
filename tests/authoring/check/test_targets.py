"""What a path is, and what of a folder is checked."""

import os

import pytest

from haft.authoring.check import targets_of
from haft.contracts import BadUsage
from haft.sources.checks.files import check_inside

PLUGIN = 'case "$1" in\n  schema)\n    echo "{}" ;;\n  run) echo ;;\nesac\n'
PYTHON = 'from haft import tool\n\n@tool\ndef add(a: int) -> int:\n    """Add."""\n    return a\n'


def only(targets):
    (target,) = targets
    return target


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("x", "#!/bin/sh\necho $TOOLBOX_ACTION\n", "amp-toolbox"),
        ("x", "anything", "amp-toolbox"),
        ("x", PLUGIN, "bash-plugin"),
        ("x.bash", PLUGIN.replace("schema)", '"schema")'), "bash-plugin"),
        ("x.bash", PLUGIN.replace("schema)", "schema|describe)"), "bash-plugin"),
        ("x", PLUGIN + "# TOOLBOX_ACTION\n", "amp-toolbox"),
        ("x", PLUGIN.replace("  run)", "  walk)"), "amp-toolbox"),
        ("x.py", PYTHON, "python"),
        ("x.py", PYTHON.replace("from haft import tool", "import haft").replace("@tool", "@haft.tool()"), "python"),
        ("x.py", PYTHON.replace("from haft import", "from other import"), "amp-toolbox"),
        ("x.py", PYTHON.replace("import tool", "import tool as t"), "amp-toolbox"),
        ("x.py", PYTHON.replace("import tool", "import tool as t").replace("@tool", "@t"), "python"),
        ("x.py", "import os\nprint(os.environ['TOOLBOX_ACTION'])\n", "amp-toolbox"),
    ],
)
def test_a_file_is_known_by_what_it_says(tmp_path, name, content, expected, sources):
    (tmp_path / name).write_text(content)
    assert only(targets_of(sources, str(tmp_path / name))).format == expected


def test_of_a_folder_everything_is_checked_that_a_toolbox_would_take(tmp_path, sources):
    for name in (".hidden", "README.md", "b", "a"):
        (tmp_path / name).touch()
    (tmp_path / "folder").mkdir()
    assert [target.path for target in targets_of(sources, str(tmp_path))] == [str(tmp_path / "a"), str(tmp_path / "b")]


def test_a_template_is_one_thing_and_a_skill_brings_its_tools(tmp_path, sources):
    template, skill = tmp_path / "template", tmp_path / "skill"
    (skill / "tools").mkdir(parents=True)
    template.mkdir()
    (template / "tool.py").touch()
    (skill / "SKILL.md").touch()
    (skill / "tools" / "x").touch()
    assert [target.format for target in targets_of(sources, str(template))] == ["agent-studio"]
    assert [(target.format, target.folder) for target in targets_of(sources, str(skill))] == [
        ("skill", None),
        ("amp-toolbox", str(skill)),
    ]
    assert only(targets_of(sources, str(skill / "tools" / "x"))).folder == str(skill)


def test_a_folder_of_templates_skills_and_plugins_is_all_of_them(tmp_path, sources):
    for name, file in (
        ("a", "tool.py"),
        ("b", "SKILL.md"),
        ("c", "agent_plugin.json"),
        ("d", "other"),
        (".e", "tool.py"),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / file).write_text('{"bash_tools": [{"file": "x.bash"}, {"file": "sub/y.bash"}]}')
    found = [(target.path.removeprefix(f"{tmp_path}/"), target.format) for target in targets_of(sources, str(tmp_path))]
    assert found == [
        ("a", "agent-studio"),
        ("b", "skill"),
        ("c/x.bash", "bash-plugin"),
        ("c/sub/y.bash", "bash-plugin"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"bash_tools": 3}',
        '{"bash_tools": [{"file": "../../x"}]}',
        '{"bash_tools": [{"file": "a\\u0000b"}]}',
        '{"subdirectory": "a\\u0000b", "bash_tools": [{"file": "x"}]}',
    ],
)
def test_a_plugins_own_file_that_makes_no_sense_or_leads_out_is_refused(tmp_path, text, sources):
    (tmp_path / "agent_plugin.json").write_text(text)
    with pytest.raises(BadUsage, match=r"agent_plugin\.json"):
        list(targets_of(sources, str(tmp_path)))


def test_nor_may_a_file_that_it_names_be_a_link_out_of_its_folder(tmp_path, sources):
    folder = tmp_path / "plugin"
    folder.mkdir()
    (folder / "agent_plugin.json").write_text('{"bash_tools": [{"file": "x.bash"}]}')
    (tmp_path / "outside").touch()
    (folder / "x.bash").symlink_to(tmp_path / "outside")
    with pytest.raises(BadUsage, match="names a file outside of its folder"):
        list(targets_of(sources, str(folder)))
    (folder / "real.bash").touch()
    (folder / "x.bash").unlink()
    (folder / "x.bash").symlink_to("real.bash")
    assert [target.format for target in targets_of(sources, str(folder))] == ["bash-plugin"]


def test_a_pipe_in_place_of_a_plugins_own_file_is_said(tmp_path, sources):
    os.mkfifo(tmp_path / "agent_plugin.json")
    with pytest.raises(BadUsage, match="it is a fifo"):
        list(targets_of(sources, str(tmp_path)))


def test_a_path_that_is_not_there_is_said(tmp_path, sources):
    with pytest.raises(BadUsage, match="does not exist"):
        list(targets_of(sources, str(tmp_path / "nothing")))


def test_a_tool_of_the_workspace_may_not_lead_out_of_it(tmp_path, sources):
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (tmp_path / "outside").touch()
    (workspace / "inside").touch()
    (workspace / "out").symlink_to(tmp_path / "outside")
    (workspace / "in").symlink_to("inside")
    for name, expected in (("out", ["leads-out"]), ("in", []), ("inside", [])):
        target = only(targets_of(sources, str(workspace / name), str(workspace)))
        assert target.within == str(workspace)
        assert [finding.code for finding in check_inside(target.path, target.within)] == expected
    assert only(targets_of(sources, str(tmp_path / "outside"), str(workspace))).within is None
