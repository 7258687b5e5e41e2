"""The faces of the packages: what a face says to the type checker and what it gives to Python are the same names."""

import ast
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

import haft
from haft.lazy import late_module

ROOT = Path(haft.__file__).parent
FACES = sorted(
    path for path in ROOT.rglob("__init__.py") if "from haft.lazy import face" in path.read_text(encoding="utf-8")
)

NEEDS_EXTRA = {"haft.service.telemetry.metrics": "prometheus_client"}
"""Modules that import a package of an extra. haft may be installed without it."""


def name_of(path):
    return ".".join(("haft", *path.parent.relative_to(ROOT).parts))


@pytest.mark.parametrize("path", FACES, ids=name_of)
def test_a_face_gives_every_name_that_it_lists_and_no_other(path):
    typed = {
        (name.name, statement.module)
        for block in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(block, ast.If)
        for statement in block.body
        if isinstance(statement, ast.ImportFrom)
        for name in statement.names
    }
    room = import_module(name_of(path))
    homes = dict(zip(room.__getattr__.__code__.co_freevars, room.__getattr__.__closure__, strict=True))["homes"]
    fetched = {
        (name, home if home.startswith("haft.") else f"{name_of(path)}.{home}")
        for name, home in homes.cell_contents.items()
    }
    assert typed == fetched
    for name, home in fetched:
        if home not in NEEDS_EXTRA or find_spec(NEEDS_EXTRA[home]) is not None:
            assert getattr(room, name) is getattr(import_module(home), name)


def test_a_face_has_no_other_names():
    with pytest.raises(AttributeError, match="no attribute 'absent'"):
        import_module(name_of(FACES[0])).absent


def test_a_late_module_is_imported_when_something_of_it_is_used():
    sys.modules.pop("colorsys", None)
    colorsys = late_module("colorsys")
    assert "colorsys" not in sys.modules
    assert colorsys.rgb_to_hsv is import_module("colorsys").rgb_to_hsv
    with pytest.raises(AttributeError):
        colorsys.nothing
