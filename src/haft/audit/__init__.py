"""The audit log: what was asked, decided and done, in a chain that shows tampering.

Written by the pipeline's outermost stage, refusals included; read by `haft audit`. It does not hold outputs.
"""

from typing import TYPE_CHECKING

from haft.lazy import face

if TYPE_CHECKING:
    from haft.audit.redact import Redactor, secret_values
    from haft.audit.trail import Trail, entries, last_entries
    from haft.audit.verifying import Verdict, verify

__getattr__ = face(
    __name__,
    {
        "redact": "Redactor secret_values",
        "trail": "Trail entries last_entries",
        "verifying": "Verdict verify",
    },
)
