"""Records scenarios: from past runs, and while a person works. `record_run` writes the scenario of one past run."""

from typing import TYPE_CHECKING

from haft.lazy import face

if TYPE_CHECKING:
    from haft.testing.recording.recorder import Recorded, record_run
    from haft.testing.recording.replay import NotReproducible
else:
    __getattr__ = face(__name__, {"recorder": "Recorded record_run", "replay": "NotReproducible"})

__all__ = ["NotReproducible", "Recorded", "record_run"]
