"""One table of all tools, from every source: tools are added, renamed on a conflict, found, searched and watched.

`service` fills it from the sources, and the pipeline finds the tool of a call in it. Below it are `schema` and
`contracts`. It runs nothing and decides nothing.
"""

from typing import TYPE_CHECKING

from haft.lazy import face

if TYPE_CHECKING:
    from haft.registry.catalogue import Catalogue, unknown_tool
    from haft.registry.tool_search import search
else:
    __getattr__ = face(
        __name__,
        {
            "catalogue": "Catalogue unknown_tool",
            "tool_search": "search",
        },
    )
