"""Toolbox executables that are written: any command line as one for each of its commands, and any tool as one."""

from typing import TYPE_CHECKING

from haft.lazy import face

if TYPE_CHECKING:
    from haft.authoring.toolbox.exporting import export
    from haft.authoring.toolbox.placing import Placed
    from haft.authoring.toolbox.wrapping import pinned, wrap
    from haft.sources.cli import Command, Form, introspect_commands, read_spec_file

__getattr__ = face(
    __name__,
    {
        "exporting": "export",
        "placing": "Placed",
        "wrapping": "pinned wrap",
        "haft.sources.cli": "Command Form introspect_commands read_spec_file",
    },
)
