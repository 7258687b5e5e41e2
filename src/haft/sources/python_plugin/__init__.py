"""Python plugins: a class with `init`, `get_tool_schemas` and `execute_tool`, or a file of `@tool` functions.

None of their code runs in the host. A plugin class has a worker process in the sandbox that keeps its state between
calls; each call of a function has its own process. `entries` finds the plugins of a configuration, `program` runs in
the worker, `worker` is the host's side, and `source` keeps the cache entries. Importing this package is cheap.
"""

from typing import TYPE_CHECKING

from haft.lazy import face

if TYPE_CHECKING:
    from haft.sources.python_plugin.entries import PluginEntry, entries_of
    from haft.sources.python_plugin.source import PythonPlugins
else:
    __getattr__ = face(
        __name__,
        {
            "entries": "PluginEntry entries_of",
            "source": "PythonPlugins",
        },
    )
