"""JSON Schema: made from Python signatures, checked, explained in sentences, and read from a command line.

Above it are the registry, the sources and the pipeline; below it only `contracts`. The two heavy libraries, pydantic
and jsonschema-rs, are imported by the functions that need them, so that listing tools stays cheap.
"""

from haft.schema.coerce import coerce
from haft.schema.signature import Signature, problems_of, read_signature
from haft.schema.text import shortened
from haft.schema.validate import Validator, is_unicode, validator_for

__all__ = [
    "Signature",
    "Validator",
    "coerce",
    "is_unicode",
    "problems_of",
    "read_signature",
    "shortened",
    "validator_for",
]
