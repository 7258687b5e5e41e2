"""Python plugins: a class with `init`, `get_tool_schemas` and `execute_tool`, or a file of `@tool` functions.

None of their code runs in the host. A plugin has a worker process in the sandbox that keeps its state from call to
call; functions have one for each call. `entries` reads what a configuration means, `program` is the worker, `worker`
the host's side of it, and `source` keeps what is known. Importing this package is cheap."""

from typing import TYPE_CHECKING

from haft.lazy import face

if TYPE_CHECKING:
    from haft.sources.python_plugin.entries import PluginEntry, entries_of
    from haft.sources.python_plugin.source import PythonPlugins

__getattr__ = face(
    __name__,
    {
        "entries": "PluginEntry entries_of",
        "source": "PythonPlugins",
    },
)
