"""The conformance suite for tool sources: what haft demands of every format, as named checks.

The author of a source describes one of its tools in a `SourceCase`, and calls `check_source`. haft's own sources pass
the same checks. pytest is not needed.
"""

from typing import TYPE_CHECKING

from haft.lazy import face

if TYPE_CHECKING:
    from haft.testing.conformance.case import SourceCase, Verdict
    from haft.testing.conformance.suite import CHECKS, check_source
else:
    __getattr__ = face(__name__, {"case": "SourceCase Verdict", "suite": "CHECKS check_source"})
