"""The conformance suite for tool sources: what haft demands of every format, as named checks.

The author of a source describes one of its tools in a `SourceCase`, and calls `check_source`. haft's own sources pass
the same checks. `check_tools` checks single tools, which it calls. pytest is not needed.
"""

from typing import TYPE_CHECKING

from haft.lazy import face

if TYPE_CHECKING:
    from haft.testing.calls.loading import is_configuration
    from haft.testing.conformance.case import SourceCase, Verdict
    from haft.testing.conformance.suite import CHECKS, check_source
    from haft.testing.conformance.tool_checks import check_tools
else:
    __getattr__ = face(
        __name__,
        {
            "case": "SourceCase Verdict",
            "suite": "CHECKS check_source",
            "tool_checks": "check_tools",
            "haft.testing.calls.loading": "is_configuration",
        },
    )

__all__ = ["CHECKS", "SourceCase", "Verdict", "check_source", "check_tools", "is_configuration"]
