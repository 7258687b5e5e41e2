"""The audit log: which calls were requested, decided and run, in a hash chain that reveals tampering.

The outermost stage of the pipeline writes this log, also for rejected calls. `haft audit` reads the log. The log
contains no outputs of calls.
"""

from typing import TYPE_CHECKING

from haft.lazy import face

if TYPE_CHECKING:
    from haft.audit.redact import Redactor, secret_values
    from haft.audit.trail import Trail, entries, entries_from, last_entries, newest_entries
    from haft.audit.verification import Verdict, verify
else:
    __getattr__ = face(
        __name__,
        {
            "redact": "Redactor secret_values",
            "trail": "Trail entries entries_from last_entries newest_entries",
            "verification": "Verdict verify",
        },
    )
