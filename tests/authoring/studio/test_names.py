"""What templates and their folders are called, sentence by sentence of the specification."""

import os
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haft.contracts import BadUsage
from haft.sources.agent_studio.manifest import MANIFEST_FILE, Manifest, read_manifest
from haft.sources.agent_studio.names import (
    check_template_name,
    is_template_name,
    name_of_folder,
    new_folder_name,
    slug_of,
)


@pytest.mark.parametrize("name", ["JSON Reader", "calculator", "a", "My API Tool", "123", " a "])
def test_only_alphanumeric_characters_and_spaces_are_allowed(name):
    """Tool template names must match the regex `^[a-zA-Z0-9 ]+$`."""
    assert is_template_name(name)
    check_template_name(name)


@pytest.mark.parametrize("name", ["", " ", "a_b", "a-b", "a.b", "a\n", "ä", "a/b", "..", "٣", "a" * 201, "a\tb", "a\0"])
def test_no_special_characters_underscores_or_hyphens(name):
    """No special characters, underscores, or hyphens."""
    assert not is_template_name(name)
    with pytest.raises(BadUsage, match="is not a valid template name"):
        check_template_name(name)


@pytest.mark.parametrize(
    ("name", "slug"), [("JSON Reader", "json_reader"), ("My API Tool", "my_api_tool"), ("Calculator", "calculator")]
)
def test_the_examples_of_directory_names(name, slug):
    """`{slugified_name}_{random_6_chars}`: json_reader_abc123/, my_api_tool_xk9f2m/, calculator_def456/."""
    assert re.fullmatch(rf"{slug}_[a-z0-9]{{6}}", new_folder_name(name))


def test_a_slug_is_the_name_lowercased_with_spaces_replaced_by_underscores():
    assert slug_of("My API  Tool 2") == "my_api__tool_2"


@given(st.from_regex(r"[a-zA-Z0-9 ]{1,40}", fullmatch=True))
def test_a_folders_name_is_the_slug_and_random(name):
    """The random suffix is a 6-character alphanumeric string."""
    one, other = new_folder_name(name), new_folder_name(name)
    assert one != other and re.fullmatch(rf"{slug_of(name)}_[a-z0-9]{{6}}", one)


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("plain", "plain"),
        ("two_words", "two words"),
        ("a_ABC123", "a ABC123"),
        ("a_abc12", "a abc12"),
        ("_abc123", " abc123"),
        ("a-b_abc123", "a-b abc123"),
        ("json_reader/", "json reader"),
        ("json_writer", "json writer"),
        ("web_search", "web search"),
    ],
)
def test_a_folder_without_a_manifest_is_called_as_it_is(folder, name):
    assert name_of_folder(f"/nowhere/{folder}") == name


def test_a_manifest_says_the_exact_name(tmp_path):
    folder = tmp_path / "json_reader_abc123"
    folder.mkdir()
    (folder / MANIFEST_FILE).write_text('{"id": "1", "name": "JSON Reader", "workflow": null}')
    assert name_of_folder(str(folder)) == "JSON Reader"
    assert read_manifest(str(folder)) == Manifest("1", "JSON Reader", None)
    (folder / MANIFEST_FILE).write_text('{"id": "1", "name": "JSON Reader", "workflow": "W", "more": 1}')
    assert read_manifest(str(folder)) == Manifest("1", "JSON Reader", "W")


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "[]", "null", "1", "{}", '{"id": 1, "name": "a", "workflow": null}', '{"id": "1", "name": null}',
        '{"id": "1", "name": "", "workflow": null}', '{"id": "1", "name": "a", "workflow": 3}', "\xff", "[" * 100_000,
        '{"id": "1", "name": "a"}' + " " * 70_000, '{"id": "1", "name": "' + "a" * 2000 + '"}',
    ],
)  # fmt: skip
def test_a_spoiled_manifest_is_none(tmp_path, text):
    (tmp_path / MANIFEST_FILE).write_bytes(text.encode("latin-1"))
    assert read_manifest(str(tmp_path)) is None


def test_a_manifest_that_is_no_file_is_none_and_not_waited_for(tmp_path):
    good = tmp_path / "good.json"
    good.write_text('{"id": "1", "name": "a", "workflow": null}')
    place = tmp_path / MANIFEST_FILE
    assert read_manifest(str(tmp_path)) is None
    place.symlink_to(good)
    assert read_manifest(str(tmp_path)) is None
    place.unlink()
    os.mkfifo(place)
    assert read_manifest(str(tmp_path)) is None
    place.unlink()
    place.mkdir()
    assert read_manifest(str(tmp_path)) is None
