"""The stages of the pipeline: each is one file with one class and one purpose. `pipeline.order` has their order."""

from haft.pipeline.stages.approve import Approve
from haft.pipeline.stages.approve_build import ApproveBuild
from haft.pipeline.stages.confine import Confine
from haft.pipeline.stages.decide import Decide
from haft.pipeline.stages.invoke import Invoke
from haft.pipeline.stages.keep_order import KeepOrder
from haft.pipeline.stages.limit import ApplyLimits
from haft.pipeline.stages.limit_open import LimitOpen
from haft.pipeline.stages.prepare import Prepare
from haft.pipeline.stages.queue import Queue
from haft.pipeline.stages.recall import Recall
from haft.pipeline.stages.record import Durability, Record
from haft.pipeline.stages.resolve import Resolve
from haft.pipeline.stages.retry_lookup import RetryLookup
from haft.pipeline.stages.review import Review
from haft.pipeline.stages.take_locks import TakeLocks
from haft.pipeline.stages.transact import Transact
from haft.pipeline.stages.validate import Validate

__all__ = [
    "ApplyLimits",
    "Approve",
    "ApproveBuild",
    "Confine",
    "Decide",
    "Durability",
    "Invoke",
    "KeepOrder",
    "LimitOpen",
    "Prepare",
    "Queue",
    "Recall",
    "Record",
    "Resolve",
    "RetryLookup",
    "Review",
    "TakeLocks",
    "Transact",
    "Validate",
]
