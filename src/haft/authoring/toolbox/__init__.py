"""Writes toolbox executables: one for each command of a program, or one for each tool."""

from typing import TYPE_CHECKING

from haft.lazy import face

if TYPE_CHECKING:
    from haft.authoring.toolbox.executables import WrittenExecutable
    from haft.authoring.toolbox.exporter import export
    from haft.authoring.toolbox.wrapper import pinned, wrap
    from haft.sources.cli import Command, Form, introspect_commands, read_spec_file
else:
    __getattr__ = face(
        __name__,
        {
            "exporter": "export",
            "executables": "WrittenExecutable",
            "wrapper": "pinned wrap",
            "haft.sources.cli": "Command Form introspect_commands read_spec_file",
        },
    )
