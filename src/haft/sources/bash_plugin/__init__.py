"""Bash tool plugins: one script is one tool, called as `bash FILE schema|preview|run|error`.

`references` parses the entries of a configuration, `discover` finds the scripts, `schema` parses what a script prints
about itself, and `arguments` passes arguments to a script. `tool` runs a script, and `source` keeps the cache entries.
Importing this package is cheap.
"""

from typing import TYPE_CHECKING

from haft.lazy import face

if TYPE_CHECKING:
    from haft.sources.bash_plugin.check import check_plugin, files_to_check
    from haft.sources.bash_plugin.discover import DESCRIPTOR, PluginFile, files_of, is_bash_plugin
    from haft.sources.bash_plugin.references import PluginReference, read_reference
    from haft.sources.bash_plugin.source import BashPlugins, describe, found_tool
    from haft.sources.bash_plugin.tool import Policy
else:
    __getattr__ = face(
        __name__,
        {
            "check": "check_plugin files_to_check",
            "discover": "DESCRIPTOR PluginFile files_of is_bash_plugin",
            "references": "PluginReference read_reference",
            "source": "BashPlugins found_tool describe",
            "tool": "Policy",
        },
    )
