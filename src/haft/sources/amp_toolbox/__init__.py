"""Amp toolbox executables: programs that answer TOOLBOX_ACTION=describe and run on TOOLBOX_ACTION=execute.

`discover` lists the files in directories. `describe_action` runs one file to describe it, `description` parses the
output, and `describe` turns the result into a cache entry. `source` keeps the entries, `tool` and `wire` run the tool.
Importing this package is cheap: the modules that run programs are imported on use.
"""

from typing import TYPE_CHECKING

from haft.lazy import face

if TYPE_CHECKING:
    from haft.sources.amp_toolbox.check import check_executable
    from haft.sources.amp_toolbox.describe import fetching_hint, script
    from haft.sources.amp_toolbox.describe_action import run_describe
    from haft.sources.amp_toolbox.description import NO_DESCRIPTION, Description, Unreadable, read_description
    from haft.sources.amp_toolbox.discover import (
        PROJECT,
        Candidate,
        ToolboxDirectory,
        candidate,
        is_data,
        standard_places,
    )
    from haft.sources.amp_toolbox.exports import MARK, Export, export_at, exported_tool
    from haft.sources.amp_toolbox.interpreters import missing_interpreter
    from haft.sources.amp_toolbox.separator import detect_separator
    from haft.sources.amp_toolbox.source import Separators, Toolboxes, found_tool
    from haft.sources.amp_toolbox.start_command import readable_paths
    from haft.sources.amp_toolbox.tool import PREFIX
else:
    __getattr__ = face(
        __name__,
        {
            "describe_action": "run_describe",
            "check": "check_executable",
            "describe": "fetching_hint script",
            "exports": "Export MARK exported_tool export_at",
            "discover": "Candidate PROJECT ToolboxDirectory candidate is_data standard_places",
            "interpreters": "missing_interpreter",
            "description": "Description NO_DESCRIPTION Unreadable read_description",
            "separator": "detect_separator",
            "source": "Separators Toolboxes found_tool",
            "start_command": "readable_paths",
            "tool": "PREFIX",
        },
    )
