"""Command lines as tools: the subcommands of a program, described once and called with JSON arguments."""

from typing import TYPE_CHECKING

from haft.lazy import face

if TYPE_CHECKING:
    from haft.sources.cli.introspect import Form, introspect_commands
    from haft.sources.cli.schema import with_help
    from haft.sources.cli.source import CommandLine, CommandLines
    from haft.sources.cli.spec import Command
    from haft.sources.cli.spec_file import read_spec_file
else:
    __getattr__ = face(
        __name__,
        {
            "introspect": "Form introspect_commands",
            "schema": "with_help",
            "source": "CommandLines CommandLine",
            "spec": "Command",
            "spec_file": "read_spec_file",
        },
    )
