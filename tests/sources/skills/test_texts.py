"""What of a skill is shown, and that nothing else ever is."""

import os

import pytest

from haft.contracts import BadUsage
from haft.sources.skills.texts import server_names


@pytest.fixture
def folder(place):
    folder = place.make(".agents/skills/one")
    (folder / "references").mkdir()
    for name in ("setup.md", "owners-manual.md", "data.json"):
        (folder / "references" / name).write_text(f"this is {name}\n")
    (folder / "forms.txt").write_text("this is forms.txt\n")
    return folder


@pytest.fixture
def read(place, folder):
    skills = place.skills()
    return lambda reference=None: skills.text(skills.get("one"), reference)


def test_without_a_reference_it_is_the_skill_file(read, folder):
    assert read() == (folder / "SKILL.md").read_text()


@pytest.mark.parametrize(
    ("reference", "file"),
    [
        ("references/setup.md", "setup.md"),
        ("references/setup", "setup.md"),
        ("setup.md", "setup.md"),
        ("setup", "setup.md"),
        ("@references/setup.md", "setup.md"),
        ("./references/setup.md", "setup.md"),
        (" setup ", "setup.md"),
        ("owners-manual", "owners-manual.md"),
        ("data.json", "data.json"),
        ("forms.txt", "forms.txt"),
        ("references/../forms.txt", "forms.txt"),
    ],
)
def test_a_reference_is_named_by_path_or_by_name(read, reference, file):
    assert read(reference) == f"this is {file}\n"


def test_byte_marks_and_carriage_returns_are_taken_off(read, folder):
    (folder / "references/setup.md").write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\n")
    assert read("setup") == "one\ntwo\n"


def test_an_unknown_one_says_what_there_is_and_what_was_meant(read):
    with pytest.raises(BadUsage) as caught:
        read("setpu")
    assert caught.value.message == "the skill `one` has no reference `setpu`"
    assert caught.value.hint == (
        "did you mean `references/setup.md`? there are SKILL.md, references/data.json, references/owners-manual.md, "
        "references/setup.md, forms.txt"
    )


@pytest.mark.parametrize("reference", ["", " ", "@", ".", "references", "no\0thing", "x" * 100_000, "a/" * 5000])
def test_what_names_no_file_is_no_reference(read, reference):
    with pytest.raises(BadUsage, match="has no reference"):
        read(reference)


@pytest.mark.parametrize(
    "reference", ["../two/SKILL.md", "../../../secret", "/etc/passwd", "references/../../../x", ".."]
)
def test_a_path_out_of_the_folder_is_refused(place, read, reference):
    place.make(".agents/skills/two")
    with pytest.raises(BadUsage, match="leads out of the folder"):
        read(reference)


def test_so_is_a_link_out_of_it_and_one_inside_works(place, read, folder, tmp_path):
    (tmp_path / "secret").write_text("secret")
    (folder / "references/out.md").symlink_to(tmp_path / "secret")
    (folder / "references/in.md").symlink_to("setup.md")
    (folder / "above").symlink_to("..")
    for reference in ("out", "references/out.md", "above/one/SKILL.md/../../../x"):
        with pytest.raises(BadUsage):
            read(reference)
    assert read("in") == "this is setup.md\n"
    assert "references/out.md" not in place.own()[0].references()


def test_only_text_is_shown_and_not_too_much_of_it(read, folder):
    (folder / "references/bytes.md").write_bytes(b"\xff\xfe")
    (folder / "references/nul.md").write_bytes(b"a\0b")
    (folder / "references/long.md").write_bytes(b"x" * 1_000_001)
    os.mkfifo(folder / "references/pipe.md")
    for name, words in {
        "bytes": "is not a text",
        "nul": "is not a text",
        "long": "more than",
        "pipe": "named pipe",
    }.items():
        with pytest.raises(BadUsage, match=words):
            read(name)


def test_references_are_texts_in_order_and_nothing_else(place, folder):
    (folder / "tools").mkdir()
    (folder / "tools/run").write_text("x")
    (folder / "mcp.json").write_text("{}")
    (folder / ".hidden").write_text("x")
    (folder / "picture.png").write_bytes(b"\x89PNG\0")
    (folder / "assets/deep/deeper").mkdir(parents=True)
    (folder / "assets/deep/deeper/note.md").write_text("x")
    os.mkfifo(folder / "references/pipe.md")
    assert place.own()[0].references() == [
        "references/data.json",
        "references/owners-manual.md",
        "references/setup.md",
        "assets/deep/deeper/note.md",
        "forms.txt",
    ]


def test_a_folder_without_end_is_not_looked_at_to_its_end(place, folder, monkeypatch):
    monkeypatch.setattr("haft.sources.skills.skill._MOST_LOOKED_AT", 50)
    for number in range(200):
        (folder / f"references/{number}.md").write_text("x")
        (folder / f"{number}.md").write_text("x")
    found = place.own()[0].references()
    assert len(found) <= 50 and all(path.startswith("references/") for path in found)


def test_servers_are_named_and_what_is_no_map_of_them_is_said(place, folder):
    (skill,) = place.own()
    assert server_names(skill) == []
    (folder / "mcp.json").write_text('{"github": {"command": "npx"}, "db": {}}')
    assert server_names(skill) == ["db", "github"]
    for text in ("[]", "{", "[" * 100_000, "\xff"):
        (folder / "mcp.json").write_text(text)
        with pytest.raises(BadUsage, match=r"mcp\.json of the skill `one`"):
            server_names(skill)
