"""The table of programs: one module for each family of programs, combined here into one mapping by the program's name.

An entry lists the options and operands with which a program only reads. A command needs approval if its program has no
entry, or if it has an option that the entry does not list.
"""

from __future__ import annotations

from typing import Final

from haft.policy.analysis.program import Program
from haft.policy.analysis.programs.archives import ARCHIVES
from haft.policy.analysis.programs.bytes import BYTES
from haft.policy.analysis.programs.comparing import COMPARING
from haft.policy.analysis.programs.filters import FILTERS
from haft.policy.analysis.programs.find import FIND
from haft.policy.analysis.programs.git import GIT
from haft.policy.analysis.programs.listing import LISTING
from haft.policy.analysis.programs.packages import PACKAGES
from haft.policy.analysis.programs.searching import SEARCHING
from haft.policy.analysis.programs.shell import SHELL
from haft.policy.analysis.programs.system import SYSTEM
from haft.policy.analysis.programs.text import TEXT
from haft.policy.analysis.programs.versions import VERSIONS

__all__ = ["PROGRAMS"]

PROGRAMS: Final[dict[str, Program]] = {
    **VERSIONS,
    **SHELL,
    **LISTING,
    **TEXT,
    **COMPARING,
    **SEARCHING,
    **FIND,
    **FILTERS,
    **BYTES,
    **ARCHIVES,
    **SYSTEM,
    **GIT,
    **PACKAGES,
}
