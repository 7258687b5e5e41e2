"""The pipeline: every call of every tool goes through it. `order` is the page to read first.

It knows tools as a contract, never their formats; mechanisms of the floor below by what they do, never how.
"""

from haft.pipeline.order import Parts
from haft.pipeline.pipeline import Pipeline
from haft.pipeline.run import Run

__all__ = ["Parts", "Pipeline", "Run"]
