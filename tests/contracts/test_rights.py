"""Rights are stored with a paused call, and its next host reads them."""

import dataclasses
import json

from haft.contracts import Rights, rights_from

FULL = Rights(
    "the sub-agent `work`",
    frozenset({"shell", "read_file"}),
    readonly=True,
    restricted=True,
    binds_subagents_only=True,
    limits=(("max_seconds", 60.0), ("max_processes", 128)),
)


def test_what_is_read_again_is_what_was_stored():
    """With every field set, so that no new field is forgotten."""
    fields = [field.name for field in dataclasses.fields(Rights)]
    assert [name for name in fields if getattr(FULL, name) == getattr(Rights("somebody"), name)] == []
    for rights in (FULL, Rights("somebody")):
        assert rights_from(json.loads(json.dumps(rights.to_json()))) == rights
