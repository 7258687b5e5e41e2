"""The life of a run on disk: states, events, whole output, cancel requests, recovery.

The pipeline writes through `Scribe` and `KeptOutput`; surfaces read through `History`. It does not know what a tool is.
"""

from typing import TYPE_CHECKING

from haft.lazy import face

if TYPE_CHECKING:
    from haft.runs.entry import RunRecord, entry_of
    from haft.runs.following import follow
    from haft.runs.history import History
    from haft.runs.journal import Journal, journal_paths
    from haft.runs.kept import Frame, KeptOutput
    from haft.runs.old_outputs import Outputs, outputs_in, remove_outputs
    from haft.runs.recovery import recover
    from haft.runs.scribe import Scribe
    from haft.storage import Filter

__getattr__ = face(
    __name__,
    {
        "entry": "RunRecord entry_of",
        "following": "follow",
        "history": "History",
        "journal": "Journal journal_paths",
        "kept": "Frame KeptOutput",
        "old_outputs": "Outputs outputs_in remove_outputs",
        "recovery": "recover",
        "scribe": "Scribe",
        "haft.storage": "Filter",
    },
)
