"""`haft tools check`: finds problems in tools of any format, and says how to fix them.

`targets` finds out what a path is, and `checker` checks many targets at once, each with the `ToolSource` of its format.
The caller passes the sources, and the launcher, which runs programs so that they describe themselves; Python files are
read, never imported. Only `fixes` changes files.
"""

from typing import TYPE_CHECKING

from haft.lazy import face

if TYPE_CHECKING:
    from haft.authoring.check.agents import agent_files, check_agent, check_agent_tables
    from haft.authoring.check.checker import check_targets
    from haft.authoring.check.fixes import FixResult, apply_fixes
    from haft.authoring.check.targets import placed, targets_of
    from haft.sources import Target
    from haft.sources.agent_studio import check_template
    from haft.sources.checks import CODES, Code, Finding, Level, Report, check_listing, code_of
else:
    __getattr__ = face(
        __name__,
        {
            "agents": "agent_files check_agent check_agent_tables",
            "checker": "check_targets",
            "fixes": "FixResult apply_fixes",
            "targets": "placed targets_of",
            "haft.sources": "Target",
            "haft.sources.agent_studio": "check_template",
            "haft.sources.checks": "CODES Code Finding Level Report check_listing code_of",
        },
    )
