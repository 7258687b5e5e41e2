"""`haft tools check`: what is wrong with tools of any format, and how to mend it.

`targets` says what a path is, `checking` checks many at once: each by the `checking` of its format, which lies with its
source. Programs are asked through the launcher that the caller hands over; Python is read and never imported. `mending`
changes files; nothing else here does.
"""

from typing import TYPE_CHECKING

from haft.lazy import face

if TYPE_CHECKING:
    from haft.authoring.check.checking import check_target, check_targets
    from haft.authoring.check.mending import Mended, mend
    from haft.authoring.check.targets import Format, Target, target_at, targets_of
    from haft.sources.agent_studio.checking import check_template
    from haft.sources.checks.codes import CODES, code_of
    from haft.sources.checks.codes.model import Code, Level
    from haft.sources.checks.definition import check_listing
    from haft.sources.checks.findings import Finding, Report

__getattr__ = face(
    __name__,
    {
        "checking": "check_target check_targets",
        "mending": "Mended mend",
        "targets": "Format Target target_at targets_of",
        "haft.sources.agent_studio.checking": "check_template",
        "haft.sources.checks.codes": "CODES code_of",
        "haft.sources.checks.codes.model": "Code Level",
        "haft.sources.checks.definition": "check_listing",
        "haft.sources.checks.findings": "Finding Report",
    },
)
