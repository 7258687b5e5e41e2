"""For tool writers: a pytest fixture that calls a tool through the whole service, as an agent does.

Write `pytest_plugins = ["haft.testing"]` in the `conftest.py` at the root of your tests, or import the fixture with
`from haft.testing import haft_tools`. Then:

def test_it_counts_lines(haft_tools):
    haft_tools.load("plugins/count-lines")
    (haft_tools.workspace / "a.txt").write_text("1\\n2\\n")
    outcome = haft_tools.call("count_lines", path="a.txt")
    assert (outcome.status, outcome.output) == ("done", "2\\n")

The fixture is a `ToolBench`. Only its module imports pytest, and no other package of haft imports this one. Programs
that call models are tested with `haft.testing.scripted_model`, which needs no pytest.
"""

from typing import TYPE_CHECKING

from haft.lazy import face

if TYPE_CHECKING:
    from haft.testing.bench import ToolBench
    from haft.testing.fixtures import haft_tools
else:
    __getattr__ = face(__name__, {"bench": "ToolBench", "fixtures": "haft_tools"})

__all__ = ["ToolBench", "haft_tools"]


def __dir__() -> list[str]:
    return __all__  # pytest looks for fixtures among these.
