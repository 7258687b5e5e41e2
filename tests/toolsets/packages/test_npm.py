"""Which program of an installed package of npm runs, and with what."""

import json

import pytest

from haft.contracts import ToolFailed
from haft.toolsets.providers.packages.command_line import parse_command
from haft.toolsets.providers.packages.npm import NpmRecipe

NODE = "#!/usr/bin/env node\n"


def put(place, name, files=None, **about):
    """An installed package."""
    folder = place.top / "server/node_modules" / name
    folder.mkdir(parents=True)
    (folder / "package.json").write_text(json.dumps({"version": "1.0.0", **about}))
    for path, words in (files or {"index.js": NODE}).items():
        (folder / path).write_text(words)


def program(place, *words):
    command = parse_command("npx", words)
    return NpmRecipe(command, place.env, str(place.workspace)).program(str(place.top / "server"))


def test_the_only_program_of_a_package_runs_whatever_its_name(place):
    put(place, "@a/said", bin={"other": "index.js"}, version="2.0.0")
    found = program(place, "@a/said")
    assert (found.path, found.interpreter, found.version) == ("node_modules/@a/said/index.js", "node", "@a/said 2.0.0")


def test_of_several_programs_the_one_with_the_name_of_the_package_runs(place):
    put(place, "@a/said", {"one.js": NODE, "two.js": NODE}, bin={"other": "one.js", "said": "two.js"})
    assert program(place, "@a/said").path == "node_modules/@a/said/two.js"


def test_a_program_is_found_by_its_name_in_any_of_the_packages(place):
    put(place, "first", bin={"one": "index.js"})
    put(place, "second", bin={"two": "index.js", "three": "index.js"})
    assert program(place, "-p", "first", "-p", "second", "two").path == "node_modules/second/index.js"


@pytest.mark.parametrize(
    ("first", "words", "interpreter"),
    [
        (NODE, (), "node"),
        ("console.log(1)", (), "node"),
        ("#!/usr/bin/env bun", (), "bun"),
        ("#!/bin/sh", (), "none"),
    ],
)
def test_the_first_line_of_a_program_says_what_runs_it(place, first, words, interpreter):
    put(place, "said", {"index.js": first}, bin="index.js")
    assert program(place, *words, "said").interpreter == interpreter


@pytest.mark.parametrize(
    ("about", "words", "message"),
    [
        ({}, ("said",), "no single program to run; its programs: none"),
        ({"bin": {"a": "index.js", "b": "other.js"}}, ("said",), "its programs: `a`, `b`"),
        ({"bin": "../../package.json"}, ("said",), "which is not in it"),
        ({"bin": "missing.js"}, ("said",), "which is not in it"),
        ({"bin": ["index.js"]}, ("said",), "its programs: none"),
        ({"bin": "index.js"}, ("-p", "said", "other"), "has no program `other`; its programs: `said`"),
    ],
)
def test_a_package_without_the_program_is_an_error_that_names_its_programs(place, about, words, message):
    put(place, "said", **about)
    (place.top / "server/package.json").write_text("{}")
    with pytest.raises(ToolFailed) as error:
        program(place, *words)
    assert message in error.value.message
