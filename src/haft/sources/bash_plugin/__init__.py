"""Bash tool plugins: one script is one tool, called as `bash FILE schema|preview|run|error`.

`references` reads what a configuration names, `finding` the files that it means, `schema` what they say, `passing` how
arguments reach them; `tool` runs them, and `source` keeps what is known. Importing this package is cheap.
"""

from typing import TYPE_CHECKING

from haft.lazy import face

if TYPE_CHECKING:
    from haft.sources.bash_plugin.check import check_plugin, files_to_check
    from haft.sources.bash_plugin.discover import DESCRIPTOR, PluginFile, files_of, is_bash_plugin
    from haft.sources.bash_plugin.references import PluginReference, read_reference
    from haft.sources.bash_plugin.source import BashPlugins, as_found, describe
    from haft.sources.bash_plugin.tool import Policy

__getattr__ = face(
    __name__,
    {
        "check": "check_plugin files_to_check",
        "discover": "DESCRIPTOR PluginFile files_of is_bash_plugin",
        "references": "PluginReference read_reference",
        "source": "BashPlugins as_found describe",
        "tool": "Policy",
    },
)
