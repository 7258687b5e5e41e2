"""What all parameters of operations share."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class Given(BaseModel):
    """The parameters of an operation. In JSON and queries, their names are written as the command line's JSON has
    them. Unknown ones are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=to_camel, populate_by_name=True)


class Nothing(Given):
    """An operation without parameters."""
