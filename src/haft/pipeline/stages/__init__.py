"""The stages of the pipeline: one file, one class, one reason each. Their order stands in `pipeline.order`."""

from haft.pipeline.stages.approve import Approve
from haft.pipeline.stages.build import ApproveBuild
from haft.pipeline.stages.confine import Confine
from haft.pipeline.stages.decide import Decide
from haft.pipeline.stages.invoke import Invoke
from haft.pipeline.stages.prepare import Prepare
from haft.pipeline.stages.queue import Queue
from haft.pipeline.stages.record import Durability, Record
from haft.pipeline.stages.resolve import Resolve
from haft.pipeline.stages.settle import Settle
from haft.pipeline.stages.shape import Shape
from haft.pipeline.stages.transact import Transact
from haft.pipeline.stages.validate import Validate

__all__ = [
    "Approve",
    "ApproveBuild",
    "Confine",
    "Decide",
    "Durability",
    "Invoke",
    "Prepare",
    "Queue",
    "Record",
    "Resolve",
    "Settle",
    "Shape",
    "Transact",
    "Validate",
]
