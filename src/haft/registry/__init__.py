"""One table of tools, whatever they came from: added, named apart, found, searched, watched.

`service` fills it from the sources and the pipeline resolves calls through it; below it are `schema` and
`contracts`. It invokes nothing and decides nothing.
"""

from haft.registry.catalogue import Catalogue, unknown_tool
from haft.registry.searching import search

__all__ = ["Catalogue", "search", "unknown_tool"]
