"""`haft tools check`: what is wrong with tools of any format, and how to mend it.

`targets` says what a path is, `checking` checks many at once, with one module for each format (`amp_toolbox`,
`bash_plugin`, `studio`, `python_tools`, `skill`) and those for what all share (`files`, `describing`, `definition`,
`descriptions`, `hidden`). `codes` is the table of everything that can be found. Programs are asked through the launcher
that the caller hands over; Python is read and never imported. `mending` changes files; nothing else here does.
"""

from typing import TYPE_CHECKING

from haft.lazy import face

if TYPE_CHECKING:
    from haft.authoring.check.checking import check_target, check_targets
    from haft.authoring.check.codes import CODES, code_of
    from haft.authoring.check.codes.model import Code, Level
    from haft.authoring.check.definition import check_listing
    from haft.authoring.check.findings import Finding, Report
    from haft.authoring.check.mending import Mended, mend
    from haft.authoring.check.studio import check_template
    from haft.authoring.check.targets import Format, Target, target_at, targets_of

__getattr__ = face(
    __name__,
    {
        "checking": "check_target check_targets",
        "codes": "CODES code_of",
        "codes.model": "Code Level",
        "definition": "check_listing",
        "findings": "Finding Report",
        "mending": "Mended mend",
        "studio": "check_template",
        "targets": "Format Target target_at targets_of",
    },
)
