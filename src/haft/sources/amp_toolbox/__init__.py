"""Amp toolbox executables: any program that answers TOOLBOX_ACTION=describe and does TOOLBOX_ACTION=execute.

`finding` looks at directories, `asking` and `reading` learn what a file is, `describing` does that for many at once,
`source` keeps what is known, `tool` and `wire` run it. Importing this package is cheap: what asks and runs is
imported on use.
"""

from typing import TYPE_CHECKING

from haft.lazy import face

if TYPE_CHECKING:
    from haft.sources.amp_toolbox.check import check_executable
    from haft.sources.amp_toolbox.describe import fetching_hint, script
    from haft.sources.amp_toolbox.describe_action import run_describe
    from haft.sources.amp_toolbox.description import NO_DESCRIPTION, Description, Unreadable, read_description
    from haft.sources.amp_toolbox.discover import PROJECT, Candidate, Place, candidate, is_data, standard_places
    from haft.sources.amp_toolbox.exports import MARK, Export, as_the_tool, export_at
    from haft.sources.amp_toolbox.interpreters import missing_interpreter
    from haft.sources.amp_toolbox.separator import shown_by
    from haft.sources.amp_toolbox.source import Separators, Toolboxes, as_found
    from haft.sources.amp_toolbox.start_command import own_places
    from haft.sources.amp_toolbox.tool import PREFIX

__getattr__ = face(
    __name__,
    {
        "describe_action": "run_describe",
        "check": "check_executable",
        "describe": "fetching_hint script",
        "exports": "Export MARK as_the_tool export_at",
        "discover": "Candidate PROJECT Place candidate is_data standard_places",
        "interpreters": "missing_interpreter",
        "description": "Description NO_DESCRIPTION Unreadable read_description",
        "separator": "shown_by",
        "source": "Separators Toolboxes as_found",
        "start_command": "own_places",
        "tool": "PREFIX",
    },
)
