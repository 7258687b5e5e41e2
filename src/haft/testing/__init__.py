"""For tool writers: a pytest fixture that calls a tool through the whole service, as an agent does.

Write `pytest_plugins = ["haft.testing"]` in the `conftest.py` at the root of your tests, or import the fixture with
`from haft.testing import haft_tools`. Then:

def test_it_counts_lines(haft_tools):
    haft_tools.load("plugins/count-lines")
    (haft_tools.workspace / "a.txt").write_text("1\\n2\\n")
    outcome = haft_tools.call("count_lines", path="a.txt")
    assert (outcome.status, outcome.output) == ("done", "2\\n")

The fixture is a `ToolBench`. Only this package imports pytest, and no other package of haft imports this one.
"""

from haft.testing.bench import ToolBench
from haft.testing.fixtures import haft_tools

__all__ = ["ToolBench", "haft_tools"]
