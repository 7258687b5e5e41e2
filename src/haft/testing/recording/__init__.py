"""Records scenarios: from past runs, and while a person works.

`record_run` writes the scenario of one past run, and `RecordingSession` one for each call from now on.
"""

from typing import TYPE_CHECKING

from haft.lazy import face

if TYPE_CHECKING:
    from haft.testing.recording.recorder import Recorded, record_run
    from haft.testing.recording.replay import NotReproducible
    from haft.testing.recording.session import NotRecorded, RecordingSession
else:
    __getattr__ = face(
        __name__,
        {
            "recorder": "Recorded record_run",
            "replay": "NotReproducible",
            "session": "NotRecorded RecordingSession",
        },
    )

__all__ = ["NotRecorded", "NotReproducible", "Recorded", "RecordingSession", "record_run"]
