"""The sources of tools: one folder for each format. A source turns what it finds into `Tool`s.

`service` hands these tools to the registry and the pipeline, which know no formats. This package may import `schema`,
`files` and `contracts`. A source starts no process itself: it gets a launcher for that. A source opens no database.
"""

from typing import TYPE_CHECKING

from haft.lazy import face

if TYPE_CHECKING:
    from haft.sources.brief_run import DESCRIBE_SECONDS, MAX_STDOUT, ProgramOutput, run_briefly, stderr_summary
    from haft.sources.description_cache import NOT_DESCRIBED, DescribedFile, GrantsFor, no_grants
    from haft.sources.owner_task import OwnerTask
    from haft.sources.port import ProgressCallback, SourceHost, Target, ToolSource
else:
    __getattr__ = face(
        __name__,
        {
            "description_cache": "DescribedFile GrantsFor NOT_DESCRIBED no_grants",
            "brief_run": "DESCRIBE_SECONDS MAX_STDOUT ProgramOutput run_briefly stderr_summary",
            "owner_task": "OwnerTask",
            "port": "SourceHost Target ProgressCallback ToolSource",
        },
    )
