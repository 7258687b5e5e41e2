"""`haft tools check`: what is wrong with tools of any format, and how to mend it.

`targets` says what a path is, and `checking` checks many at once: each by the `ToolSource` of its format. The caller
hands over the sources and the launcher through which programs are asked; Python is read and never imported. `mending`
changes files; nothing else here does.
"""

from typing import TYPE_CHECKING

from haft.lazy import face

if TYPE_CHECKING:
    from haft.authoring.check.checking import check_targets
    from haft.authoring.check.mending import Mended, mend
    from haft.authoring.check.targets import placed, targets_of
    from haft.sources import Target
    from haft.sources.agent_studio import check_template
    from haft.sources.checks import CODES, Code, Finding, Level, Report, check_listing, code_of

__getattr__ = face(
    __name__,
    {
        "checking": "check_targets",
        "mending": "Mended mend",
        "targets": "placed targets_of",
        "haft.sources": "Target",
        "haft.sources.agent_studio": "check_template",
        "haft.sources.checks": "CODES Code Finding Level Report check_listing code_of",
    },
)
