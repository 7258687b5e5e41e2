"""Where tools come from: one folder for each format, each making `Tool`s of what it finds.

`service` introduces them to the registry and the pipeline, which know nothing of formats. Below are `schema`, `files`
and `contracts`; a source starts no process and opens no database.
"""

from typing import TYPE_CHECKING

from haft.lazy import face

if TYPE_CHECKING:
    from haft.sources.brief_run import DESCRIBE_SECONDS, MAX_STDOUT, ProgramOutput, run_briefly, stderr_summary
    from haft.sources.description_cache import NOT_DESCRIBED, DescribedFile, GrantsFor, no_grants
    from haft.sources.owner_task import Owned
    from haft.sources.port import ProgressCallback, SourceHost, Target, ToolSource

__getattr__ = face(
    __name__,
    {
        "description_cache": "DescribedFile GrantsFor NOT_DESCRIBED no_grants",
        "brief_run": "DESCRIBE_SECONDS MAX_STDOUT ProgramOutput run_briefly stderr_summary",
        "owner_task": "Owned",
        "port": "SourceHost Target ProgressCallback ToolSource",
    },
)
