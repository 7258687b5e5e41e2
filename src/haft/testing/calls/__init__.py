"""The call of a scenario: in a world of its own, through a whole service.

`observe` makes the call in a `World`, and `judged` compares what it did. An `Injection` is a fault that the call meets.
"""

from typing import TYPE_CHECKING

from haft.lazy import face

if TYPE_CHECKING:
    from haft.testing.calls.approving import Answers, ScriptedApprover
    from haft.testing.calls.injection import Injection
    from haft.testing.calls.loading import Loading
    from haft.testing.calls.observing import judged, loading_of, observe
    from haft.testing.calls.repository import GIT, git_of, make_repository
    from haft.testing.calls.world import World
else:
    __getattr__ = face(
        __name__,
        {
            "approving": "Answers ScriptedApprover",
            "injection": "Injection",
            "loading": "Loading",
            "observing": "judged loading_of observe",
            "repository": "GIT git_of make_repository",
            "world": "World",
        },
    )

__all__ = [
    "GIT",
    "Answers",
    "Injection",
    "Loading",
    "ScriptedApprover",
    "World",
    "git_of",
    "judged",
    "loading_of",
    "make_repository",
    "observe",
]
