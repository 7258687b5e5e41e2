"""One table of all tools, from every source: tools are added, renamed if their name is taken, looked up and searched,
and changes can be watched.

`service` fills the table from the sources, and the pipeline looks up the tool of a call in it. This package uses only
`schema` and `contracts`. It runs no tool and decides nothing.
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
