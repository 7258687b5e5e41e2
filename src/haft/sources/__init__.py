"""Where tools come from: one folder for each format, each making `Tool`s of what it finds.

`service` introduces them to the registry and the pipeline, which know nothing of formats. Below are `schema`, `files`
and `contracts`; a source starts no process and opens no database.
"""

from typing import TYPE_CHECKING

from haft.lazy import face

if TYPE_CHECKING:
    from haft.sources.answers import NOT_ASKED, Claim, Granted, nothing
    from haft.sources.asking import DESCRIBE_SECONDS, MOST_SAID, Said, ask, tail_of
    from haft.sources.owned import Owned
    from haft.sources.port import SourceHost, Target, Told, ToolSource

__getattr__ = face(
    __name__,
    {
        "answers": "Claim Granted NOT_ASKED nothing",
        "asking": "DESCRIBE_SECONDS MOST_SAID Said ask tail_of",
        "owned": "Owned",
        "port": "SourceHost Target Told ToolSource",
    },
)
