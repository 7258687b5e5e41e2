"""Checks the parts that every tool has, whatever its format: name, description, parameters. Starts nothing and reads no
file."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from haft.contracts import BadConfig, Listing, clean_tool_name
from haft.schema import shortened, validator_for, why_too_large
from haft.sources.checks.descriptions import check_description
from haft.sources.checks.findings import Finding, Report
from haft.sources.checks.hidden import hidden_in_definition
from haft.sources.checks.server_texts import check_server_texts

_TYPED: Final = frozenset(
    ("type", "enum", "const", "anyOf", "oneOf", "allOf", "$ref", "not", "if", "properties", "items", "$dynamicRef")
)
LONGEST_NAME: Final = 64
MAX_LISTED: Final = 8


def check_definition(
    name: str, description: str, schema: Mapping[str, Any], reserved: Collection[str], *, longest: int = LONGEST_NAME
) -> Iterator[Finding]:
    """Check a whole definition. `reserved` has the names of haft's own options, which hide parameters of the same name
    on a command line."""
    yield from check_name(name, longest)
    yield from check_description(description)
    yield from check_parameters(schema, reserved)
    yield from check_schema(schema)
    yield from hidden_in_definition(name, description, schema)


def check_name(name: str, longest: int = LONGEST_NAME) -> Iterator[Finding]:
    """Check whether a name can be used unchanged."""
    cleaned = clean_tool_name(name)[:longest]
    if cleaned == name:
        return
    why = f"has more than {longest} characters" if len(name) > longest else "has characters that a name may not have"
    shown = shortened(name, 80)
    yield Finding("bad-name", f"the name `{shown}` {why}", f"haft would call it `{cleaned}`: use that name, or another")


def check_parameters(schema: Mapping[str, Any], reserved: Collection[str]) -> Iterator[Finding]:
    """Check the descriptions, types and names of the parameters."""
    properties = schema.get("properties", {})
    if not isinstance(properties, Mapping):
        return
    undescribed = [name for name, one in properties.items() if isinstance(one, Mapping) and not has_description(one)]
    if undescribed:
        yield Finding(
            "parameter-undescribed",
            f"no description: {quoted_list(undescribed)}",
            "say what each parameter is, and what happens without it",
        )
    untyped = [name for name, one in properties.items() if isinstance(one, Mapping) and not _TYPED & one.keys()]
    if untyped:
        yield no_type(untyped)
    yield from check_reserved(properties, reserved)


def check_reserved(names: Collection[str], reserved: Collection[str]) -> Iterator[Finding]:
    """Find parameters that haft's own options hide on a command line."""
    hidden = [name for name in names if name in reserved]
    if hidden:
        yield Finding(
            "parameter-hidden",
            f"the same name as an option of `haft tools use`: {quoted_list(hidden)}",
            f"rename it, or pass it after a bare `--`: haft tools use NAME -- --{shortened(hidden[0], 40)} …",
        )


def no_type(names: Collection[str]) -> Finding:
    """The finding that these parameters have no type."""
    return Finding("no-type", f"no type: {quoted_list(names)}", "say string, boolean, number, integer, array or object")


def has_description(one: Mapping[str, Any]) -> bool:
    """Whether a property has a description. A title is enough, an empty text is not."""
    return any(isinstance(text := one.get(key), str) and text.strip() for key in ("description", "title"))


def quoted_list(names: Collection[str]) -> str:
    """The first names of a list, in backquotes, and how many more there are."""
    shown = [f"`{shortened(str(name), 60)}`" for name in list(names)[:MAX_LISTED]]
    more = f" and {len(names) - MAX_LISTED} more" if len(names) > MAX_LISTED else ""
    return ", ".join(shown) + more


def check_schema(schema: Mapping[str, Any]) -> Iterator[Finding]:
    """Check whether haft can validate arguments by a schema."""
    if (why := why_too_large(schema)) is not None:
        yield Finding("schema-excess", f"the input schema is too complex: {why}", "describe the parameters more simply")
        return
    if schema.get("type", "object") != "object":
        shown = shortened(repr(schema["type"]), 60)
        yield Finding("schema-error", f"the input schema has the type {shown}", "make it `object`")
    elif not isinstance(schema.get("properties", {}), Mapping):
        yield Finding("schema-error", "the `properties` of the input schema are not an object", "make them one")
    else:
        try:
            validator_for(schema)
        except BadConfig as error:
            yield Finding("schema-error", error.message, "fix the input schema")


def check_listing(listing: Listing, reserved: Collection[str], others: Collection[Listing] = ()) -> Report:
    """Check the definition of a listed tool of any format. If the tool could not be loaded, report that. `others` are
    all listed tools, which a text of an MCP server may name."""
    spec = listing.spec
    if listing.state == "broken":
        found = [Finding("not-loaded", f"it could not be loaded: {listing.reason}", None)]
    else:
        found = list(check_definition(spec.name, spec.description, spec.input_schema, reserved))
        if spec.kind == "mcp":
            found += check_server_texts(spec, others)
    return Report(spec.name, spec.kind, spec.name, found)
