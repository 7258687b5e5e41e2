"""Bash tool plugins: one script is one tool, called as `bash FILE schema|preview|run|error`.

`references` reads what a configuration names, `finding` the files that it means, `schema` what they say, `passing` how
arguments reach them; `tool` runs them, and `source` keeps what is known. Importing this room is cheap.
"""

from haft.sources.bash_plugin.finding import PluginFile, files_of
from haft.sources.bash_plugin.references import PluginReference, read_reference
from haft.sources.bash_plugin.source import BashPlugins, as_found
from haft.sources.bash_plugin.tool import Policy

__all__ = ["BashPlugins", "PluginFile", "PluginReference", "Policy", "as_found", "files_of", "read_reference"]
