"""The pipeline: every call of every tool goes through it. `order` is the page to read first.

It knows tools as a contract, never their formats; mechanisms of the layer below by what they do, never how.
"""

from typing import TYPE_CHECKING

from haft.lazy import face

if TYPE_CHECKING:
    from haft.pipeline.hooks import preview_of
    from haft.pipeline.order import Parts
    from haft.pipeline.pipeline import Pipeline
    from haft.pipeline.run import Run
    from haft.pipeline.stages.decide import Decide
    from haft.pipeline.stages.record import Durability

__getattr__ = face(
    __name__,
    {
        "hooks": "preview_of",
        "order": "Parts",
        "pipeline": "Pipeline",
        "run": "Run",
        "stages.decide": "Decide",
        "stages.record": "Durability",
    },
)
