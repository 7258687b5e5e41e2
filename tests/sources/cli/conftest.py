"""Real programs of three libraries, which print the arguments that they got, and their commands."""

import importlib.util
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from haft.sources.cli import introspector
from haft.sources.cli.spec import commands_of

PROGRAMS = Path(__file__).with_name("programs")
NAMES = {"click": ("click_echo", "main"), "argparse": ("argparse_echo", "build"), "typer": ("typer_echo", "app")}


@dataclass(frozen=True)
class Program:
    """One of them."""

    library: str
    module: str
    found: Any

    @property
    def form(self):
        return "argparse" if self.library == "argparse" else "click"

    def commands(self, program=None, prefix=""):
        """What it says of itself, without a process of its own."""
        told = list(introspector.commands(self.form, self.found))
        listed = commands_of({"program": program or self.module, "commands": told}, self.module, prefix=prefix)
        return {one["name"]: one for one in listed}


@pytest.fixture(scope="session")
def programs():
    """Each by its library."""
    return {library: _loaded(library, *names) for library, names in NAMES.items()}


def _loaded(library, module, name):
    spec = importlib.util.spec_from_file_location(module, PROGRAMS / f"{module}.py")
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[module] = loaded
    spec.loader.exec_module(loaded)
    return Program(library, module, getattr(loaded, name))
