"""What all parameters of operations share."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

RUN_ID = r"^r_[0-9a-f]{24}$"
BATCH_ID = r"^b_[0-9a-f]{24}$"
RunName = Annotated[str, Field(pattern=RUN_ID)]
BatchName = Annotated[str, Field(pattern=BATCH_ID)]
RunOrBatch = Annotated[str, Field(pattern=r"^[rb]_[0-9a-f]{24}$")]
RequestName = Annotated[str, Field(pattern=r"^[arb]_[0-9a-f]{24}$")]
"""The id of a request, of its run, or of its batch."""
ToolName = Annotated[str, Field(min_length=1, max_length=200)]
Text = Annotated[str, Field(max_length=10_000)]
JsonObject = dict[str, Any]
NoArguments = Annotated[JsonObject, Field(default_factory=dict)]


class Given(BaseModel):
    """The parameters of an operation. In JSON and queries, their names are written as the command line's JSON has
    them. Unknown ones are refused."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, alias_generator=to_camel, populate_by_name=True, use_attribute_docstrings=True
    )


class Nothing(Given):
    """An operation without parameters."""


class RunGiven(Given):
    """The run that the path names."""

    run: RunName
