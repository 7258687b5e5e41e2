"""Packing templates: what the ZIP holds, what stays out, and what is refused."""

import json
import os
import re
import stat
import zipfile
from uuid import UUID

import pytest

from haft.authoring.studio import template_files
from haft.authoring.studio.packer import pack
from haft.contracts import BadUsage, HaftError

from .conftest import SOURCE

KEYS = {
    "id", "name", "python_code_file_name", "python_requirements_file_name", "source_folder_path", "tool_image_path",
    "is_venv_tool",
}  # fmt: skip


def read(path):
    with zipfile.ZipFile(path) as archive:
        return json.loads(archive.read("workflow_template.json")), archive.namelist()


def refused(words, *folders, target, **options):
    before = sorted(os.listdir(target.parent))
    with pytest.raises(BadUsage, match=words):
        pack([str(folder) for folder in folders], str(target), **options)
    assert sorted(os.listdir(target.parent)) == before, "nothing is left over"


@pytest.fixture
def target(tmp_path):
    (tmp_path / "out").mkdir()
    return tmp_path / "out" / "pack.zip"


def test_a_pack_has_the_manifest_and_the_folder_of_the_format(make, target):
    done = pack([str(make("json_reader"))], str(target), name="JSON Reader")
    said, names = read(target)
    assert said["template_version"] == "0.0.1"
    (one,) = said["tool_templates"]
    assert set(one) == KEYS and UUID(one["id"]).version == 4
    assert (one["name"], one["tool_image_path"], one["is_venv_tool"]) == ("JSON Reader", "", True)
    assert (one["python_code_file_name"], one["python_requirements_file_name"]) == ("tool.py", "requirements.txt")
    assert re.fullmatch(r"studio-data/tool_templates/json_reader_[a-z0-9]{6}", one["source_folder_path"])
    assert all(said[kind] == [] for kind in ("agent_templates", "task_templates", "mcp_templates"))
    assert said["workflow_template"]["agent_template_ids"] == said["workflow_template"]["task_template_ids"] == []
    folder = one["source_folder_path"]
    assert names == ["workflow_template.json", f"{folder}/requirements.txt", f"{folder}/tool.py"]
    assert done.to_json()["templates"] == [{"name": "JSON Reader", "folder": folder}]
    assert done.bytes == target.stat().st_size


def test_the_paths_that_exports_leave_out_stay_out(make, target):
    """The following paths are excluded from template exports: .venv/, __pycache__/, .requirements_hash.txt."""
    folder = make()
    out = (
        ".venv/bin/python", ".venv/pyvenv.cfg", "__pycache__/tool.pyc", "lib/__pycache__/a.pyc", ".git/hooks/x",
        ".requirements_hash.txt", ".template.json", ".venv.new-x/a", ".haft-lock", ".DS_Store", "sub/.svn/a",
    )  # fmt: skip
    kept = ("lib/a.py", "data/.template.json", ".gitignore", "venv/a", "README.md")
    for path in (*out, *kept):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text("{}")
    (folder / ".venv/link").symlink_to("/etc")
    pack([str(folder)], str(target))
    said, names = read(target)
    prefix = said["tool_templates"][0]["source_folder_path"] + "/"
    inside = {name.removeprefix(prefix) for name in names} - {"workflow_template.json"}
    assert inside == {*kept, "tool.py", "requirements.txt", "lib/", "data/", "venv/", "sub/"}


def test_order_modes_and_dates_depend_on_nothing_but_the_template(make, target):
    folder = make()
    for name in ("z.sh", "a.sh", "m.txt"):
        (folder / name).write_text(name)
    (folder / "z.sh").chmod(0o4777)
    (folder / "a.sh").chmod(0o700)
    (folder / "empty").mkdir(mode=0o700)
    (folder / "m.txt").chmod(0o666)
    os.utime(folder / "m.txt", (0, 0))
    pack([str(folder)], str(target))
    with zipfile.ZipFile(target) as archive:
        found = [(os.path.basename(one.filename.rstrip("/")), one.external_attr >> 16) for one in archive.infolist()]
        assert {one.date_time for one in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        assert archive.testzip() is None
    regular = stat.S_IFREG
    assert found == [
        ("workflow_template.json", regular | 0o644),
        ("a.sh", regular | 0o755),
        ("empty", stat.S_IFDIR | 0o755),
        ("m.txt", regular | 0o644),
        ("requirements.txt", regular | 0o644),
        ("tool.py", regular | 0o644),
        ("z.sh", regular | 0o755),
    ]


def test_several_go_into_one_and_names_are_unique(make, target):
    """Names must be unique within their scope."""
    pack([str(make("one")), str(make("two_words"))], str(target))
    assert [one["name"] for one in read(target)[0]["tool_templates"]] == ["one", "two words"]
    first, second = make("same"), make("Same")
    refused(
        f"`{first}` and `{second}` are both called `Same`: nothing is packed",
        first, second, target=target.with_name("b.zip"),
    )  # fmt: skip
    refused("a name is for one template", first, second, target=target.with_name("b.zip"), name="A")


def test_what_fails_the_check_is_not_packed(make, target):
    refused("cannot be packed: python-parse", make("a", "def ("), target=target)
    refused("cannot be packed: studio-main", make("b", SOURCE.split("if __name__")[0]), target=target)
    refused("cannot be packed: studio-structure", target.parent, target=target.parent.parent / "x.zip")


def test_the_docstring_and_the_name_are_errors_when_packing(make, target):
    refused("cannot be packed: studio-pack-docstring", make("a", SOURCE.split('"""')[2]), target=target)
    folder = make("a-b")
    refused("cannot be packed: studio-pack-name", folder, target=target)
    refused("`a-b` is not a valid template name", folder, target=target, name="a-b")
    assert pack([str(folder)], str(target), name="A B").templates[0].name == "A B"


@pytest.mark.parametrize("where", ["/etc/passwd", "tool.py", "../../outside", "nowhere", "."])
def test_links_are_refused_and_not_followed(make, target, where):
    folder = make()
    (folder / "data").mkdir()
    (folder / "data/link").symlink_to(where)
    refused("data/link` is a link: nothing is packed", folder, target=target)


def test_a_tool_that_is_a_link_is_refused(make, target, tmp_path):
    folder = make()
    (folder / "tool.py").rename(tmp_path / "elsewhere.py")
    (folder / "tool.py").symlink_to(tmp_path / "elsewhere.py")
    refused("tool.py` is a link: nothing is packed", folder, target=target)


def test_special_files_are_refused_and_not_waited_for(make, target):
    folder = make()
    os.mkfifo(folder / "pipe")
    refused("pipe` is neither a file nor a directory: nothing is packed", folder, target=target)


@pytest.mark.parametrize(
    "name", ["back\\slash", "new\nline", "x" * 200 + "/" + "y" * 200 + "/" + "z" * 200 + "/" + "w" * 200]
)
def test_names_that_do_not_travel_are_refused(make, target, name):
    folder = make()
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("x")
    refused("has a name that other machines do not support", folder, target=target)


def test_names_that_differ_in_case_only_are_refused(make, target):
    folder = make(a="1")
    (folder / "A").write_text("2")
    refused("`A` and `a` in .* are the same name on other machines", folder, target=target)


def test_too_many_and_too_large_are_refused(make, target, monkeypatch):
    folder = make()
    with open(folder / "large", "wb") as file:
        file.truncate(template_files.BOUNDS.bytes)
    refused("more than 100_000_000 bytes: nothing is packed", folder, target=target)
    (folder / "large").unlink()
    for number in range(20):
        (folder / str(number)).touch()
    monkeypatch.setattr(template_files.PackBudget.__init__, "__defaults__", (template_files.Bounds(20, 1000),))
    refused("more than 20 files and directories: nothing is packed", folder, target=target)


def test_a_file_is_not_replaced_unasked(make, target):
    target.write_text("mine")
    folder = make()
    refused("exists already: nothing is packed", folder, target=target)
    assert target.read_text() == "mine"
    pack([str(folder)], str(target), force=True)
    assert zipfile.is_zipfile(target) and os.listdir(target.parent) == ["pack.zip"]


def test_a_target_that_cannot_be_is_said(make, target, tmp_path):
    folder = make()
    refused("is a directory", folder, target=target.parent)
    with pytest.raises(BadUsage, match="is not a directory"):
        pack([str(folder)], str(tmp_path / "none/x.zip"))
    refused("is inside the template to pack", folder, target=folder / "x.zip")


def test_a_file_that_appears_meanwhile_is_not_replaced(make, target, monkeypatch):
    link = os.link

    def late(source, destination, **options):
        target.write_text("theirs")
        link(source, destination, **options)

    monkeypatch.setattr(os, "link", late)
    with pytest.raises(BadUsage, match="exists already"):
        pack([str(make())], str(target))
    assert os.listdir(target.parent) == ["pack.zip"] and target.read_text() == "theirs"


def test_a_full_disk_leaves_nothing(make, target, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(HaftError, match="was not written"):
        pack([str(make())], str(target))
    assert os.listdir(target.parent) == []
