"""Python plugins: a class with `init`, `get_tool_schemas` and `execute_tool`, or a file of `@tool` functions.

No code of a plugin runs in the host. A plugin class has a worker process in the sandbox. This process keeps the
plugin's state between calls. For a file of functions, each call has its own process. `entries` finds the plugins of a
configuration. `program` runs in the worker process. `worker` runs in the host, starts the worker process and sends
calls to it. `source` makes the tools and caches their descriptions. Importing this package is cheap.
"""

from typing import TYPE_CHECKING

from haft.lazy import face

if TYPE_CHECKING:
    from haft.sources.python_plugin.entries import PluginEntry, digest_of_config, entries_of, has_same_files
    from haft.sources.python_plugin.source import PythonPlugins
else:
    __getattr__ = face(
        __name__,
        {
            "entries": "PluginEntry digest_of_config entries_of has_same_files",
            "source": "PythonPlugins",
        },
    )
