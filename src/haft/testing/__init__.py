"""For writers of tools: a pytest fixture that calls a tool as an agent's call would, through the whole service.

Name it in the `conftest.py` at the root of your tests, `pytest_plugins = ["haft.testing"]`, or import it where you need
it, `from haft.testing import haft_tools`. Then:

def test_it_counts_lines(haft_tools):
    haft_tools.load("plugins/count-lines")
    (haft_tools.workspace / "a.txt").write_text("1\\n2\\n")
    outcome = haft_tools.call("count_lines", path="a.txt")
    assert (outcome.status, outcome.output) == ("done", "2\\n")

The fixture is a `ToolBench`. Above it is nothing but tests; below it are the service and what the service is made of.
This is the one package that imports pytest, and nothing of haft imports this package.
"""

from haft.testing.bench import ToolBench
from haft.testing.fixtures import haft_tools

__all__ = ["ToolBench", "haft_tools"]
