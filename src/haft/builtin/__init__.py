"""The built-in tools, one file each: read, write, edit, list, find, search, shell.

They are tools like any other: the pipeline runs them, and they reach files and processes only through their context.
Importing this package must be fast, because every start of the program does it.
"""

from typing import TYPE_CHECKING

from haft.builtin.edit_file import EditFile
from haft.builtin.find_files import FindFiles
from haft.builtin.list_directory import ListDirectory
from haft.builtin.read_file import ReadFile
from haft.builtin.search import Search
from haft.builtin.shell import Shell
from haft.builtin.write_file import WriteFile
from haft.contracts import Tool
from haft.lazy import face

if TYPE_CHECKING:
    from haft.builtin.ripgrep import find_ripgrep
else:
    __getattr__ = face(__name__, {"ripgrep": "find_ripgrep"})


def builtin_tools() -> tuple[Tool, ...]:
    """All built-in tools, in the order of the documentation."""
    return (ReadFile(), WriteFile(), EditFile(), ListDirectory(), FindFiles(), Search(), Shell())
