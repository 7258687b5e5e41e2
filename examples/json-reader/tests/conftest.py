"""Where these tests have their fixture from."""

from haft.testing import haft_tools

__all__ = ["haft_tools"]
