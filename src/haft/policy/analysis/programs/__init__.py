"""What is known of programs: one table a family, gathered here by the program's name.

An entry lists what only reads. Programs that are missing, and options that are missing of those that are here, ask.
"""

from __future__ import annotations

from typing import Final

from haft.policy.analysis.program import Program
from haft.policy.analysis.programs.archives import ARCHIVES
from haft.policy.analysis.programs.bytes import BYTES
from haft.policy.analysis.programs.comparing import COMPARING
from haft.policy.analysis.programs.filters import FILTERS
from haft.policy.analysis.programs.finding import FINDING
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
    **FINDING,
    **FILTERS,
    **BYTES,
    **ARCHIVES,
    **SYSTEM,
    **GIT,
    **PACKAGES,
}
