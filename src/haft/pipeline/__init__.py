"""The pipeline: every call of every tool goes through it. Read `order` first.

The pipeline knows tools only by the `Tool` contract, never by their format. It uses the packages below it only through
their public interface.
"""

from typing import TYPE_CHECKING

from haft.lazy import face

if TYPE_CHECKING:
    from haft.pipeline.batch import Batch
    from haft.pipeline.batch_plan import BatchPlan, PlannedCall, plan
    from haft.pipeline.batched_calls import BatchedCall, read_calls
    from haft.pipeline.footprints import Footprints
    from haft.pipeline.hooks import preview_of
    from haft.pipeline.order import Dependencies
    from haft.pipeline.pauses import Pause, Resumed
    from haft.pipeline.pipeline import Pipeline
    from haft.pipeline.run import Run
    from haft.pipeline.run_watcher import RunWatcher, Step
    from haft.pipeline.stages.decide import Decide
    from haft.pipeline.stages.record import Durability
    from haft.pipeline.stages.review import ApplyApproved
else:
    __getattr__ = face(
        __name__,
        {
            "batch": "Batch",
            "batch_plan": "BatchPlan PlannedCall plan",
            "batched_calls": "BatchedCall read_calls",
            "footprints": "Footprints",
            "hooks": "preview_of",
            "order": "Dependencies",
            "pauses": "Pause Resumed",
            "pipeline": "Pipeline",
            "run": "Run",
            "run_watcher": "RunWatcher Step",
            "stages.decide": "Decide",
            "stages.record": "Durability",
            "stages.review": "ApplyApproved",
        },
    )
