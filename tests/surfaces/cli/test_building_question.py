"""The question whether packages are built, at a terminal."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "toolsets"))
sys.path.insert(0, str(Path(__file__).parents[2] / "sandbox"))
from loaded import SMALL_PYDANTIC, written
from test_environments import Index, source_of_spy, wheel


@pytest.fixture
def index():
    index = Index()
    index.files = dict([wheel("pydantic", "2.0", SMALL_PYDANTIC), source_of_spy([])])
    yield index
    index.server.shutdown()
    index.server.server_close()


def test_it_shows_the_sandbox_of_the_build_and_is_answered_yes_or_no(haft, terminal, index):
    (haft.workspace / "haft.toml").write_text('[templates]\npaths = ["./templates"]\n')
    folder = written(haft.workspace / "templates/says", "return spy.__name__", top="import spy")
    (folder / "requirements.txt").write_text("pydantic\nspy\n")
    typed = terminal("tools", "use", "says", UV_DEFAULT_INDEX=index.url)
    typed.until("Approve says? [")
    typed.type("y\n")
    typed.until("read-only, network only to ")
    typed.until("Build? [y/N] ")
    typed.type("w\n")
    typed.until("Build? [y/N] ")
    typed.type("n\n")
    assert typed.end() == 3 and not (folder / ".venv").exists()
