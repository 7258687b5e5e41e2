"""The record: what was asked, decided and done, in a chain that shows tampering.

Written by the pipeline's outermost stage, refusals included; read by `haft audit`. It does not hold outputs.
"""

from haft.audit.redact import Redactor, secret_values
from haft.audit.trail import Trail, entries, last_entries
from haft.audit.verifying import Verdict, verify

__all__ = ["Redactor", "Trail", "Verdict", "entries", "last_entries", "secret_values", "verify"]
