"""Python functions as tools: decorated and passed as objects, or found among installed packages.

The functions run in this process, without a sandbox, unless they are `isolated`. Nothing here imports pydantic before a
tool is described or called.
"""

from typing import TYPE_CHECKING

from haft.lazy import face

if TYPE_CHECKING:
    from haft.sources.python.check import check_python, is_python_tools
    from haft.sources.python.decorate import tool
    from haft.sources.python.discover import Broken, installed_tools
    from haft.sources.python.invoke import PythonTool
    from haft.sources.python.thread_pool import abandoned
else:
    __getattr__ = face(
        __name__,
        {
            "check": "check_python is_python_tools",
            "decorate": "tool",
            "discover": "Broken installed_tools",
            "invoke": "PythonTool",
            "thread_pool": "abandoned",
        },
    )
