"""JSON Schema: makes schemas from Python signatures and compact forms, validates values, explains errors, and reads
values from a command line.

The registry, the sources and the pipeline use this package; it uses only `contracts`. The two large libraries, pydantic
and jsonschema-rs, are imported by the functions that need them, so that listing tools stays fast.
"""

from typing import TYPE_CHECKING

from haft.lazy import face

if TYPE_CHECKING:
    from haft.schema.bounds import why_too_large
    from haft.schema.coercion import coerce
    from haft.schema.compact import from_compact, from_words
    from haft.schema.docstring import read_docstring
    from haft.schema.provider_schemas import for_providers
    from haft.schema.signature import Signature, problems_of, read_signature
    from haft.schema.text import escaped, shortened
    from haft.schema.validate import Validator, validator_for, why_not_json
else:
    __getattr__ = face(
        __name__,
        {
            "bounds": "why_too_large",
            "coercion": "coerce",
            "compact": "from_compact from_words",
            "docstring": "read_docstring",
            "provider_schemas": "for_providers",
            "signature": "Signature problems_of read_signature",
            "text": "escaped shortened",
            "validate": "Validator validator_for why_not_json",
        },
    )
