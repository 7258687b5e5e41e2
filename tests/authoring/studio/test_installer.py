"""Templates from elsewhere: all of them or none, and nothing left behind."""

import json
import multiprocessing
import os
import re
import signal
import struct
import zipfile

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from haft.authoring.studio import installer, unpacker
from haft.authoring.studio.installer import install
from haft.authoring.studio.packer import pack
from haft.authoring.studio.template_files import is_left_out
from haft.contracts import BadUsage, HaftError
from haft.sources.agent_studio.manifest import MANIFEST_FILE, read_manifest

from .conftest import SOURCE, entry, manifest, tree

FOLDER = "studio-data/tool_templates/json_reader_abc123"


def refused(archive, place, words, **options):
    before = tree(place.parent)
    with pytest.raises(BadUsage, match=words):
        install(str(archive), str(place), **options)
    assert tree(place.parent) == before, "nothing came, and nothing is left over"


def test_a_template_comes_with_a_new_identity_and_a_new_folder(zip_of, place):
    (one,) = install(str(zip_of()), str(place)).templates
    assert os.listdir(place) == [os.path.basename(one.folder)]
    assert re.fullmatch(r"json_reader_[a-z0-9]{6}", os.listdir(place)[0]) and "abc123" not in one.folder
    said = read_manifest(one.folder)
    assert (said.id, said.name, said.workflow) == (one.id, "JSON Reader", None)
    assert one.id != entry()["id"]
    assert set(os.listdir(one.folder)) == {"tool.py", "requirements.txt", MANIFEST_FILE}


def test_the_directory_is_made_and_goes_again_where_nothing_came(zip_of, tmp_path):
    place = tmp_path / "a" / "b"
    with pytest.raises(BadUsage):
        install(str(zip_of(said="{")), str(place))
    assert not (tmp_path / "a").exists()
    install(str(zip_of()), str(place))
    assert len(os.listdir(place)) == 1


names = st.from_regex(r"[a-z0-9äöé ._-]{1,12}", fullmatch=True).filter(
    lambda name: name.strip(".") and name == name.strip()
)
trees = st.recursive(
    st.tuples(st.binary(max_size=300), st.booleans()),
    lambda inner: st.dictionaries(names, inner, max_size=4),
    max_leaves=12,
)


def write(folder, content):
    for name, what in content.items():
        path = folder / name
        if isinstance(what, dict):
            path.mkdir()
            write(path, what)
        else:
            path.write_bytes(what[0])
            path.chmod(0o755 if what[1] else 0o644)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(names.filter(lambda name: not is_left_out(name)), trees, max_size=5))
def test_packing_and_installing_give_back_the_same_bytes_and_run_bits(tmp_path_factory, content):
    here = tmp_path_factory.mktemp("trip")
    folder = here / "any_name"
    folder.mkdir()
    write(folder, content)
    for name, text in (("tool.py", SOURCE), ("requirements.txt", "pydantic\n")):
        if (folder / name).is_dir():
            return
        (folder / name).write_text(text)
    pack([str(folder)], str(here / "pack.zip"))
    (one,) = install(str(here / "pack.zip"), str(here / "place")).templates
    expected = {path: what for path, what in tree(folder).items() if not is_left_out(path)}
    assert tree(one.folder, but=[MANIFEST_FILE]) == expected


def test_what_can_be_squeezed_a_thousandfold_travels_too(make, place, tmp_path):
    folder = make()
    (folder / "zeros").write_bytes(bytes(5_000_000))
    pack([str(folder)], str(tmp_path / "pack.zip"))
    (one,) = install(str(tmp_path / "pack.zip"), str(place)).templates
    assert os.path.getsize(f"{one.folder}/zeros") == 5_000_000


def test_an_installed_one_can_be_packed_and_installed_again(make, place, tmp_path):
    pack([str(make("json_reader"))], str(tmp_path / "one.zip"), name="JSON Reader")
    (one,) = install(str(tmp_path / "one.zip"), str(place)).templates
    pack([one.folder], str(tmp_path / "two.zip"))
    (two,) = install(str(tmp_path / "two.zip"), str(place), workflow="W").templates
    assert (two.name, two.workflow) == ("JSON Reader", "W") and two.id != one.id
    assert tree(one.folder, but=[MANIFEST_FILE]) == tree(two.folder, but=[MANIFEST_FILE])


@pytest.mark.parametrize(
    "name",
    ["../x", "a/../../x", "/etc/x", "//x", "a\\b", "..\\x", "C:/x", "c:x", "..", "a//b", "new\nline", "x" * 300,
     "a/" * 600 + "a"],
)  # fmt: skip
def test_names_that_could_leave_their_folder_are_refused(zip_of, place, name):
    refused(zip_of((name, "x")), place, "it holds the (invalid )?name")


def test_a_name_that_is_cut_at_a_nul_is_refused(zip_of, place):
    archive = zip_of((f"{FOLDER}/axtxt", "x"))
    archive.write_bytes(archive.read_bytes().replace(b"/axtxt", b"/a\0txt"))
    refused(archive, place, "it holds the (invalid )?name")


@pytest.mark.parametrize("mode", [0o120777, 0o010644, 0o020644, 0o060644, 0o140644, 0o040755])
def test_links_and_special_files_are_refused(zip_of, place, mode):
    refused(zip_of((f"{FOLDER}/x", "/etc/passwd", mode)), place, "neither a regular file nor a directory")


def test_a_link_that_calls_itself_a_directory_is_refused(zip_of, place):
    refused(zip_of((f"{FOLDER}/x/", "", 0o120777)), place, "neither a regular file nor a directory")


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        ("x", "x", "is in it twice"),
        ("x", "./x", "is in it twice"),
        ("x", "X", "are the same name on other machines"),
        ("d/x", "D/y", "are the same name on other machines"),
        ("\u00e9", "e\u0301", "are the same name on other machines"),
        ("x", "x/y", "is in it twice"),
        ("x/y", "x", "is in it twice"),
    ],
)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_names_that_come_twice_are_refused(zip_of, place, first, second, words):
    refused(zip_of((first, "1"), (second, "2")), place, words)


@pytest.mark.parametrize("name", ["tool.py", "TOOL.PY"])
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_second_tool_is_refused(zip_of, place, name):
    refused(zip_of((f"{FOLDER}/{name}", "import os")), place, "is in it twice|are the same name")


def test_what_unpacks_to_too_much_is_refused(zip_of, place, monkeypatch):
    refused(zip_of((f"{FOLDER}/x", bytes(3_000_000))), place, "more than 100 times its size")
    monkeypatch.setattr(unpacker, "BOUNDS", unpacker.BOUNDS.__class__(files=50, bytes=20_000))
    refused(zip_of((f"{FOLDER}/x", bytes(30_000))), place, "more than 20_000 bytes")
    refused(zip_of(*((f"{FOLDER}/{number}", "") for number in range(60))), place, "more than 50 files and directories")
    refused(zip_of((f"{FOLDER}/x", os.urandom(30_000))), place, "larger than 20_000 bytes")


def test_sizes_are_counted_as_they_come_not_as_they_are_claimed(zip_of, place):
    archive = zip_of((f"{FOLDER}/x", bytes(3_000_000)))
    claimed = struct.pack("<I", 3_000_000)
    assert archive.read_bytes().count(claimed) == 2
    archive.write_bytes(archive.read_bytes().replace(claimed, struct.pack("<I", 30_000_00 // 3_000)))
    refused(archive, place, "cannot be unpacked|more than 100 times its size")


def test_a_long_table_of_contents_is_not_read(zip_of, place):
    archive = zip_of()
    data = bytearray(archive.read_bytes())
    struct.pack_into("<I", data, data.rfind(b"PK\5\6") + 12, 3_000_000)
    archive.write_bytes(data)
    refused(archive, place, "more than 5_000 files and directories")


def test_what_lies_too_deep_is_refused(zip_of, place):
    refused(zip_of(("a/" * 40 + "x", "1")), place, "is nested too deep")


def test_what_is_encrypted_is_refused(zip_of, place):
    archive = zip_of()
    data = bytearray(archive.read_bytes())
    for mark, at in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        found = data.find(mark)
        while found >= 0:
            data[found + at] |= 1
            found = data.find(mark, found + 4)
    archive.write_bytes(data)
    refused(archive, place, "`workflow_template.json` is encrypted")


def test_another_method_than_deflate_is_refused(tmp_path, place):
    with zipfile.ZipFile(tmp_path / "x.zip", "w", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("workflow_template.json", manifest(entry()))
    refused(tmp_path / "x.zip", place, "compressed with a method that is not supported")


@pytest.mark.parametrize(
    "content", [b"", b"PK", b"no zip", b"PK\5\6" + bytes(18), b"PK\3\4" + b"\xff" * 200 + b"PK\5\6" + bytes(18)]
)
def test_what_is_no_zip_is_refused(tmp_path, place, content):
    (tmp_path / "x.zip").write_bytes(content)
    refused(tmp_path / "x.zip", place, "is not a ZIP|is damaged|cannot be unpacked|there is no workflow_template.json")


def test_every_damaged_zip_is_refused_or_the_same(zip_of, place, tmp_path):
    whole = zip_of().read_bytes()
    for at in range(0, len(whole), 7):
        broken = bytearray(whole)
        broken[at] ^= 0xFF
        (tmp_path / "x.zip").write_bytes(broken)
        try:
            (one,) = install(str(tmp_path / "x.zip"), str(place)).templates
        except BadUsage:
            assert os.listdir(place) == []
        else:
            for path in (place / os.path.basename(one.folder)).iterdir():
                path.unlink()
            os.rmdir(one.folder)


def test_an_archive_that_is_no_file_is_refused(tmp_path, place):
    refused(tmp_path / "none.zip", place, "does not exist")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(BadUsage, match="not a regular file"):
        install(str(tmp_path / "pipe"), str(place))
    with pytest.raises(BadUsage, match="is a directory, but `install` needs a ZIP"):
        install(str(tmp_path), str(place))


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("{", "it is not JSON"),
        ("[" * 200_000, "it is not JSON"),
        ("[]", "it is not a JSON object"),
        ("{}", '`template_version` must be "0.0.1"'),
        (json.dumps({"template_version": "9", "tool_templates": []}), '`template_version` must be "0.0.1"'),
        (json.dumps({"template_version": "0.0.1"}), "`tool_templates` must be a list"),
        (manifest(), "there is no tool template in"),
        (manifest(entry(), agent_templates={}), "`agent_templates` must be a list"),
        (manifest(entry(), workflow_template=[]), "`workflow_template` must be an object"),
        (manifest("x"), r"`tool_templates\[0\]` must be an object"),
        (manifest(entry(id=3)), r"`tool_templates\[0\].id` must be a text"),
        (manifest(entry(id="")), r"\.id` must be a text"),
        (manifest(entry(name=None)), r"\.name` must be a text"),
        (manifest(entry(name="a_b")), r"\.name` is `a_b`"),
        (manifest(entry(name=" ")), r"\.name` is ` `"),
        (manifest(entry(name="../x")), r"\.name` is `../x`"),
        (manifest(entry(python_code_file_name="main.py")), r'python_code_file_name` must be "tool.py"'),
        (manifest(entry(python_requirements_file_name=None)), 'must be "requirements.txt"'),
        (manifest(entry(is_venv_tool="yes")), "is_venv_tool` must be true or false"),
        (manifest(entry(tool_image_path="../x.png")), "tool_image_path` must be the path of a file in the archive"),
        (manifest(entry(tool_image_path=["x"])), "tool_image_path` must be"),
        (manifest(entry(folder="../x")), "source_folder_path` must be the path of a folder in the archive"),
        (manifest(entry(folder="/etc")), "source_folder_path` must be the path of a folder in the archive"),
        (manifest(entry(folder=".")), "source_folder_path` must be the path of a folder in the archive"),
        (manifest(entry(folder="")), "source_folder_path` must be a text"),
        (manifest(entry(folder="a\\b")), "source_folder_path` must be the path"),
        (manifest(entry(folder="none")), "the folder `none` of `JSON Reader` is not in the archive"),
        (manifest(entry(folder=f"{FOLDER}/tool.py")), "is not in the archive"),
        (manifest(entry(), entry(name="Other")), "have the same folder"),
        (manifest(entry(), entry(name="Other", folder=f"{FOLDER}/x")), "or one inside the other"),
        (manifest(entry(), entry(name="json reader", folder="other")), "have the same name"),
        ("", "there is no workflow_template.json in it"),
    ],
)
def test_a_bad_manifest_is_refused_with_its_field(zip_of, place, said, words):
    refused(zip_of(said=said, folder=FOLDER), place, words)


def test_a_manifest_of_a_megabyte_is_refused(zip_of, place):
    refused(zip_of(said=os.urandom(600_000).hex()), place, "has more than 1_000_000 bytes")


def test_a_directory_that_is_a_file_too_is_refused(zip_of, place):
    refused(zip_of(("x/", "", 0o40755), ("x", "")), place, "is in it twice")


@pytest.mark.parametrize("source", ["def (", "x" * 10, '"""d"""\nimport os\n', "# -*- coding: utf-7 -*-\n+AGE-"])
def test_a_template_that_fails_the_check_is_refused(zip_of, place, source):
    archive = zip_of(
        (f"{FOLDER}/tool.py", source), (f"{FOLDER}/requirements.txt", ""), said=manifest(entry()), good=False
    )
    refused(archive, place, "`JSON Reader` fails the check, nothing is installed: ")


def test_a_template_without_its_files_is_refused(zip_of, place):
    refused(
        zip_of((f"{FOLDER}/tool.py", SOURCE), good=False), place, "studio-structure: there is no `requirements.txt`"
    )
    refused(zip_of((f"{FOLDER}/requirements.txt", ""), good=False), place, "studio-structure: there is no `tool.py`")


def test_nothing_of_a_template_is_run(zip_of, place, tmp_path):
    source = f"{SOURCE}\nopen({str(tmp_path / 'ran')!r}, 'w')\n"
    install(str(zip_of((f"{FOLDER}/tool.py", source), (f"{FOLDER}/requirements.txt", ""), good=False)), str(place))
    assert not (tmp_path / "ran").exists()


def test_a_bad_one_among_good_ones_keeps_all_out(zip_of, place):
    said = manifest(entry(), entry("Other", "other"))
    refused(
        zip_of(("other/tool.py", "def ("), ("other/requirements.txt", ""), said=said), place, "`Other` fails the check"
    )


def test_an_environment_a_cache_and_a_manifest_that_come_along_are_left_out(zip_of, place):
    out = (".venv/bin/python", "__pycache__/tool.cpython-311.pyc", ".requirements_hash.txt", ".template.json",
           "lib/.VENV/x", "lib/__PyCache__/x.pyc", ".venv.new-1/x", ".haft-x/y", ".git/config")  # fmt: skip
    archive = zip_of(*((f"{FOLDER}/{path}", '{"id": "1", "name": "Evil"}') for path in out), (f"{FOLDER}/lib/a.py", ""))
    (one,) = install(str(archive), str(place)).templates
    assert set(tree(one.folder)) == {"tool.py", "requirements.txt", MANIFEST_FILE, "lib", "lib/a.py"}
    assert read_manifest(one.folder).name == "JSON Reader"


def test_links_of_an_environment_that_is_left_out_do_not_matter(zip_of, place):
    install(str(zip_of((f"{FOLDER}/.venv/bin/python", "/usr/bin/python3", 0o120777))), str(place))
    refused(zip_of((f"{FOLDER}/.venv/../../../../x", "")), place, "it holds the (invalid )?name")


def test_a_name_is_unique_within_its_scope(zip_of, make, place):
    """Names must be unique within their scope (global or within a specific workflow template)."""
    archive = zip_of()
    install(str(archive), str(place))
    refused(archive, place, "a template is called `JSON Reader` already, in .*: nothing is installed")
    install(str(archive), str(place), workflow="A")
    install(str(archive), str(place), workflow="B")
    refused(archive, place, "a template of the workflow `A` is called `JSON Reader` already", workflow="A")
    assert len(os.listdir(place)) == 3
    install(str(archive), str(place), name="Another")


def test_the_name_of_a_plain_folder_is_taken_too(zip_of, make, place):
    make().rename(place / "json_reader")
    refused(zip_of(), place, "a template is called `json reader` already")


@pytest.mark.parametrize("workflow", ["", " ", "a\nb", "x" * 201])
def test_a_workflow_has_a_name(zip_of, place, workflow):
    refused(zip_of(), place, "a workflow's name must have", workflow=workflow)


def test_other_kinds_are_named_and_left_out(zip_of, place):
    said = manifest(
        entry(tool_image_path="studio-data/icon.png"),
        agent_templates=[{"name": "Analyst"}, {"name": "Writer"}],
        mcp_templates=[],
        task_templates=[{"id": "1"}],
        workflow_template={"name": "Reports", "agent_template_ids": ["1"]},
        things=["x"],
    )
    done = install(str(zip_of(("studio-data/icon.png", "x"), said=said)), str(place))
    assert done.left_out == (
        "2 of `agent_templates` (Analyst, Writer)", "1 of `task_templates` (None)", "1 of `things`",
        "the workflow `Reports`", "1 image",
    )  # fmt: skip
    assert len(os.listdir(place)) == 1


def test_a_single_template_without_a_manifest_is_called_as_its_folder_or_as_said(zip_of, place):
    (one,) = install(str(zip_of(said="", folder="my_reader")), str(place)).templates
    assert one.name == "my reader"
    root = zip_of(("tool.py", SOURCE), ("requirements.txt", ""), said="", good=False)
    refused(root, place, "there is no workflow_template.json in it")
    assert install(str(root), str(place), name="Other").templates[0].name == "Other"
    refused(zip_of(said="", folder="a-b"), place, "`a-b` is not a valid template name")


def test_a_single_template_may_get_another_name(zip_of, place):
    archive = zip_of(said=manifest(entry(name="bad_name")))
    refused(archive, place, "is `bad_name`")
    assert install(str(archive), str(place), name="Good Name").templates[0].name == "Good Name"
    refused(archive, place, "is not a valid template name", name="bad_name")
    two = zip_of(said=manifest(entry(), entry("Other", "other")))
    refused(two, place, "a name is for one template, but there are 2", name="X")


def test_a_place_that_cannot_be_is_said(zip_of, make, tmp_path):
    archive = str(zip_of())
    (tmp_path / "file").touch()
    with pytest.raises(BadUsage, match=r"is not a directory|cannot be made"):
        install(archive, str(tmp_path / "file"))
    with pytest.raises(BadUsage, match="cannot be made"):
        install(archive, str(tmp_path / "file/x"))
    with pytest.raises(BadUsage, match="is a template itself"):
        install(archive, str(make()))


def test_when_one_cannot_be_moved_into_place_all_are_as_before(zip_of, place, monkeypatch):
    said = manifest(entry(), entry("Other", "other"))
    archive = zip_of(("other/tool.py", SOURCE), ("other/requirements.txt", ""), said=said)
    rename = os.rename

    def fail_late(old, new, **options):
        if os.path.dirname(new) == str(place) and "other" in new:
            raise OSError(28, "No space left on device")
        rename(old, new, **options)

    monkeypatch.setattr(os, "rename", fail_late)
    with pytest.raises(HaftError, match="nothing was installed"):
        install(str(archive), str(place))
    assert os.listdir(place) == []


def _killed(archive, place):
    def end(*_):
        os.kill(os.getpid(), signal.SIGKILL)

    installer._move = end
    install(archive, place)


def test_one_that_is_killed_leaves_a_hidden_folder_that_the_next_removes(zip_of, place):
    archive = str(zip_of())
    process = multiprocessing.get_context("fork").Process(target=_killed, args=(archive, str(place)))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    (left,) = os.listdir(place)
    assert left.startswith(".haft-templates-")
    (one,) = install(archive, str(place)).templates
    assert os.listdir(place) == [os.path.basename(one.folder)]


def test_a_hidden_folder_that_is_a_link_is_not_followed(zip_of, place, tmp_path):
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious/x").touch()
    (place / ".haft-templates-1").symlink_to(tmp_path / "precious")
    (place / ".haft-templates-2").mkdir()
    (place / ".haft-templates-2/link").symlink_to(tmp_path / "precious")
    install(str(zip_of()), str(place))
    assert (tmp_path / "precious/x").exists() and not (place / ".haft-templates-2").exists()


def _try(archive, place, barrier, answers):
    barrier.wait()
    try:
        install(archive, place)
        answers.put("installed")
    except BadUsage as error:
        answers.put(error.message)


def test_of_many_at_once_one_wins(zip_of, place):
    many = 4
    context = multiprocessing.get_context("fork")
    barrier, answers = context.Barrier(many), context.Queue()
    started = [
        context.Process(target=_try, args=(str(zip_of()), str(place / "new"), barrier, answers)) for _ in range(many)
    ]
    for process in started:
        process.start()
    said = sorted(answers.get(timeout=60) for _ in started)
    for process in started:
        process.join()
    assert said.count("installed") == 1 and all("already" in one or one == "installed" for one in said)
    assert len(os.listdir(place / "new")) == 1
