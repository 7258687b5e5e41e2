"""The files that a plugin is made of. Nothing is started to find them."""

import json
import os

import pytest

from haft.sources.bash_plugin import files_of, read_reference
from haft.sources.bash_plugin.discover import MOST_TOOLS, is_bash_plugin


def found(entry, base, within=None):
    reference = read_reference(entry, str(base / "haft.toml"), str(base))
    return files_of(reference, reference.path, "workspace", None if within is None else str(within))


def folder_of(base, descriptor, *files):
    folder = base / "mine"
    for file in files:
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("# a script\n")
    folder.mkdir(exist_ok=True)
    text = descriptor if isinstance(descriptor, str) else json.dumps(descriptor)
    (folder / "agent_plugin.json").write_text(text)
    return folder


def test_a_file_is_one_tool_by_any_form(tmp_path):
    (tmp_path / "a.bash").write_text("")
    for entry in ("bash:a.bash", {"bash_tool": {"file": "a.bash"}}, {"bash_tool": {"path": "a.bash"}}):
        (file,) = found(entry, tmp_path)
        assert (file.path, file.folder, file.problem) == (str(tmp_path / "a.bash"), str(tmp_path), None)
        assert file.identity


def test_a_folder_is_the_tools_that_its_descriptor_names_and_all_its_files_belong_to_them(tmp_path):
    folder = folder_of(
        tmp_path,
        {"bash_tools": [{"file": "a.bash"}, {"file": "in/b.bash"}]},
        *("a.bash", "in/b.bash", "other.bash", "lib/helper.py", "README.md", ".git/config", "__pycache__/x.pyc"),
    )
    one, other = found("bash:mine", tmp_path)
    assert [one.path, other.path] == [str(folder / "a.bash"), str(folder / "in/b.bash")]
    assert one.folder == other.folder == str(folder)
    assert {os.path.relpath(file, folder) for file in one.files} == {
        *("a.bash", "in/b.bash", "other.bash", "lib/helper.py", "README.md", "agent_plugin.json")
    }


def test_a_subdirectory_is_named_by_the_descriptor_or_the_configuration(tmp_path):
    folder = folder_of(tmp_path, {"bash_tools": [{"file": "a.bash"}], "subdirectory": "in"}, "in/a.bash", "out/a.bash")
    assert [file.path for file in found("bash:mine", tmp_path)] == [str(folder / "in/a.bash")]
    entry = {"bash_tool": {"path": "mine", "subdirectory": "out"}}
    assert [file.path for file in found(entry, tmp_path)] == [str(folder / "out/a.bash")]


DESCRIPTORS = {
    "{": "it is not JSON",
    "[" * 100_000: "it is not JSON",
    "[]": "it is not a JSON object; write",
    "{}": 'it names no bash tools; write {"bash_tools": [{"file": "my_tool.bash"}]}',
    '{"bash_tools": []}': "it names no bash tools",
    '{"bash_tools": "a.bash"}': "it names no bash tools",
    json.dumps({"bash_tools": [{"file": "a"}] * (MOST_TOOLS + 1)}): "it names no bash tools",
    '{"bash_tools": [{"fil": "a.bash"}]}': 'is not {"file": …}',
    '{"bash_tools": ["a.bash"]}': 'is not {"file": …}',
    '{"bash_tools": [{"file": "../a.bash"}]}': "inside the folder",
    '{"bash_tools": [{"file": "/bin/sh"}]}': "inside the folder",
    '{"bash_tools": [{"file": "a.bash"}], "subdirectory": ".."}': "its `subdirectory` is not a folder inside",
    '{"bash_tools": [{"file": "a.bash"}], "subdirectory": 7}': "its `subdirectory` is not a folder inside",
    '{"bash_tools": [{"file": "missing.bash"}]}': "it cannot be read: No such file or directory",
    '{"bash_tools": [{"file": "in"}]}': "it is not a regular file",
}


@pytest.mark.parametrize("text", DESCRIPTORS, ids=[text[:60] for text in DESCRIPTORS])
def test_a_descriptor_that_makes_no_sense_is_one_broken_tool_and_says_why(tmp_path, text):
    folder_of(tmp_path, text, "a.bash", "in/a.bash")
    (file,) = found("bash:mine", tmp_path)
    assert DESCRIPTORS[text] in file.problem
    assert file.path.startswith(str(tmp_path / "mine"))


def test_one_wrong_entry_of_a_descriptor_leaves_the_others_alone(tmp_path):
    folder_of(tmp_path, {"bash_tools": [{"file": "../x"}, {"file": "a.bash"}]}, "a.bash")
    wrong, right = found("bash:mine", tmp_path)
    assert wrong.problem is not None
    assert right.problem is None


def test_what_is_not_there_or_of_another_kind_says_what_to_write(tmp_path):
    (tmp_path / "bare").mkdir()
    (nothing,) = found("bash:mine", tmp_path)
    assert nothing.problem == f"there is no {tmp_path}/mine; fix the path in {tmp_path}/haft.toml"
    (bare,) = found("bash:bare", tmp_path)
    assert "the folder has no agent_plugin.json; write" in bare.problem
    assert "{bash_tool = {file = …}}" in bare.problem
    (folder,) = found({"bash_tool": {"file": "bare"}}, tmp_path)
    assert folder.problem == f"it is a folder; write `bash:{tmp_path}/bare` or {{bash_tool = {{path = …}}}}"


def test_neither_a_pipe_nor_a_loop_of_links_is_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "mine").mkdir()
    os.mkfifo(tmp_path / "mine/agent_plugin.json")
    assert [file.problem for name in ("pipe", "loop") for file in found(f"bash:{name}", tmp_path)] == [
        "it is not a regular file",
        "it cannot be read: Too many levels of symbolic links",
    ]
    (file,) = found("bash:mine", tmp_path)
    assert file.problem.startswith("it is not a regular file; write")


def test_links_may_not_lead_out_of_where_they_must_stay(tmp_path):
    inside = tmp_path / "workspace"
    inside.mkdir()
    (tmp_path / "elsewhere.bash").write_text("")
    (inside / "own.bash").write_text("")
    (inside / "out.bash").symlink_to("../elsewhere.bash")
    (inside / "in.bash").symlink_to("own.bash")
    (out,) = found("bash:out.bash", inside, within=inside)
    assert "it leads out of the workspace" in out.problem
    assert str(tmp_path / "elsewhere.bash") in out.problem
    assert found("bash:in.bash", inside, within=inside)[0].problem is None
    assert found("bash:out.bash", inside)[0].problem is None


def test_a_file_that_may_not_be_read_says_so(tmp_path, monkeypatch):
    (tmp_path / "a.bash").write_text("")
    monkeypatch.setattr(os, "access", lambda _path, _mode: False)  # Who runs this may be root, who may read everything.
    assert found("bash:a.bash", tmp_path)[0].problem == "it may not be read; change its permissions"


def test_a_plugin_is_told_from_a_toolbox_executable_by_its_words():
    assert is_bash_plugin(b'case "$1" in\n  schema)\n ;;\n  run)\n ;;\nesac')
    assert is_bash_plugin(b"case $1 in\n('schema') a;;\n\"run\" | go) b;;\nesac")
    assert not is_bash_plugin(b"case $TOOLBOX_ACTION in\nschema) a;;\nrun) b;;\nesac")
    assert not is_bash_plugin(b"case $1 in\nschema) a;;\nesac")
    assert not is_bash_plugin(b"echo 'schema) run)'")
