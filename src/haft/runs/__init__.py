"""The life of a run on disk: states, events, whole output, the host's lease, cancel requests, recovery.

The pipeline writes through `Scribe` and `KeptOutput`; surfaces read through `History`. It does not know what a tool is.
"""

from haft.runs.entry import RunRecord, entry_of
from haft.runs.following import follow
from haft.runs.history import History
from haft.runs.journal import Journal
from haft.runs.kept import Frame, KeptOutput
from haft.runs.lease import Lease, live_hosts
from haft.runs.recovery import recover
from haft.runs.scribe import Scribe
from haft.runs.table import Filter

__all__ = [
    "Filter",
    "Frame",
    "History",
    "Journal",
    "KeptOutput",
    "Lease",
    "RunRecord",
    "Scribe",
    "entry_of",
    "follow",
    "live_hosts",
    "recover",
]
