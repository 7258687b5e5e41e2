"""One table of tools, whatever they came from: added, named apart, found, searched, watched.

`service` fills it from the sources and the pipeline resolves calls through it; below it are `schema` and
`contracts`. It invokes nothing and decides nothing.
"""

from typing import TYPE_CHECKING

from haft.lazy import face

if TYPE_CHECKING:
    from haft.registry.catalogue import Catalogue, unknown_tool
    from haft.registry.searching import search

__getattr__ = face(
    __name__,
    {
        "catalogue": "Catalogue unknown_tool",
        "searching": "search",
    },
)
