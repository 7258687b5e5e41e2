"""What every tool has, whatever its format: a name, a description, parameters. Nothing here starts or reads a file."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from haft.contracts import BadConfig, Listing, clean_tool_name
from haft.schema import excess, shortened, validator_for
from haft.sources.checks.descriptions import check_description
from haft.sources.checks.findings import Finding, Report
from haft.sources.checks.hidden import hidden_in_definition

_TYPED: Final = frozenset(
    ("type", "enum", "const", "anyOf", "oneOf", "allOf", "$ref", "not", "if", "properties", "items", "$dynamicRef")
)
LONGEST_NAME: Final = 64
MOST_NAMED: Final = 8


def check_definition(
    name: str, description: str, schema: Mapping[str, Any], reserved: Collection[str], *, longest: int = LONGEST_NAME
) -> Iterator[Finding]:
    """Everything about a definition. `reserved` are names that haft's own options have."""
    yield from check_name(name, longest)
    yield from check_description(description)
    yield from check_parameters(schema, reserved)
    yield from check_schema(schema)
    yield from hidden_in_definition(name, description, schema)


def check_name(name: str, longest: int = LONGEST_NAME) -> Iterator[Finding]:
    """Whether a name can stand as it is."""
    cleaned = clean_tool_name(name)[:longest]
    if cleaned == name:
        return
    why = f"has more than {longest} characters" if len(name) > longest else "has characters that a name may not have"
    shown = shortened(name, 80)
    yield Finding("bad-name", f"the name `{shown}` {why}", f"it would be called `{cleaned}`: say that, or another one")


def check_parameters(schema: Mapping[str, Any], reserved: Collection[str]) -> Iterator[Finding]:
    """Descriptions, types and names of the parameters."""
    properties = schema.get("properties", {})
    if not isinstance(properties, Mapping):
        return
    silent = [name for name, one in properties.items() if isinstance(one, Mapping) and not described(one)]
    if silent:
        yield Finding(
            "parameter-undescribed",
            f"no description: {listed(silent)}",
            "say what each is, and what happens without it",
        )
    untyped = [name for name, one in properties.items() if isinstance(one, Mapping) and not _TYPED & one.keys()]
    if untyped:
        yield no_type(untyped)
    yield from check_reserved(properties, reserved)


def check_reserved(names: Collection[str], reserved: Collection[str]) -> Iterator[Finding]:
    """Names that haft's own options hide on a command line."""
    hidden = [name for name in names if name in reserved]
    if hidden:
        yield Finding(
            "parameter-hidden",
            f"options of `haft tools use` hide: {listed(hidden)}",
            f"rename it, or pass it after a bare `--`: haft tools use NAME -- --{shortened(hidden[0], 40)} …",
        )


def no_type(names: Collection[str]) -> Finding:
    """That these parameters say no type."""
    return Finding("no-type", f"no type: {listed(names)}", "say string, boolean, number, integer, array or object")


def described(one: Mapping[str, Any]) -> bool:
    """Whether a property says what it is; a title is enough, an empty text is not."""
    return any(isinstance(text := one.get(key), str) and text.strip() for key in ("description", "title"))


def listed(names: Collection[str]) -> str:
    """Names, the first few."""
    shown = [f"`{shortened(str(name), 60)}`" for name in list(names)[:MOST_NAMED]]
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(shown) + more


def check_schema(schema: Mapping[str, Any]) -> Iterator[Finding]:
    """Whether calls can be checked by it."""
    if (why := excess(schema)) is not None:
        yield Finding("schema-excess", f"the input schema is too much: {why}", "describe the parameters more simply")
        return
    if schema.get("type", "object") != "object":
        shown = shortened(repr(schema["type"]), 60)
        yield Finding("schema-error", f"the input schema has the type {shown}", "make it `object`")
    elif not isinstance(schema.get("properties", {}), Mapping):
        yield Finding("schema-error", "the `properties` of the input schema are no object", "make them one")
    else:
        try:
            validator_for(schema)
        except BadConfig as error:
            yield Finding("schema-error", error.message, "mend the input schema")


def check_listing(listing: Listing, reserved: Collection[str]) -> Report:
    """A tool that is loaded, of any format: what it is said to be, or why it is not there."""
    spec = listing.spec
    if listing.state == "broken":
        found = [Finding("not-loaded", f"it could not be loaded: {listing.reason}", None)]
    else:
        found = list(check_definition(spec.name, spec.description, spec.input_schema, reserved))
    return Report(spec.name, spec.kind, spec.name, found)
