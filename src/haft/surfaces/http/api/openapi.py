"""The OpenAPI 3.1 document of the API, made from the table of endpoints.

It names every answer that an operation can give, and links operations: from the place of an id in an answer to the
operations that take it.
"""

from __future__ import annotations

import functools
from typing import Any, Final

from pydantic import TypeAdapter

from haft.surfaces.http.api.endpoint import Endpoint, Link
from haft.surfaces.http.api.idempotency import HEADER
from haft.surfaces.http.api.problems import MEDIA_TYPE, STATUSES, TITLES, status_of
from haft.surfaces.http.api.table import BY_NAME, ENDPOINTS
from haft.version import __version__

_SCHEMAS: Final = "#/components/schemas/{model}"
_ALWAYS: Final = (401, 403, 422, 429, 500, 503)
"""The statuses that every operation can answer with."""
_PROBLEM: Final = {
    "type": "object",
    "description": "Problem details (RFC 9457), with haft's own code.",
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "code": {"type": "string", "description": "What is wrong: as in the errors of outcomes."},
        "hint": {"type": ["string", "null"], "description": "What to do next."},
        "retryable": {"type": "boolean", "description": "Whether the same request can succeed later."},
        "trace": {"type": "string", "description": "The trace id of the request, as in the log of the server."},
    },
    "required": ["type", "title", "status", "detail", "code", "hint", "retryable", "trace"],
}


@functools.cache
def document() -> dict[str, Any]:
    """The whole document."""
    made, shared = _schemas()
    paths: dict[str, Any] = {}
    for endpoint in ENDPOINTS:
        operation = _operation(endpoint, made[endpoint.name, "validation"], made[endpoint.name, "serialization"])
        paths.setdefault(endpoint.whole_path, {})[endpoint.method.lower()] = operation
    statuses = sorted({*STATUSES.values()})
    return {
        "openapi": "3.1.0",
        "info": {"title": "haft", "version": __version__, "description": "The HTTP API of `haft serve http`."},
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "schemas": {**shared, "Problem": _PROBLEM},
            "responses": {str(status): _problem_response(status) for status in statuses},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _schemas() -> tuple[dict[Any, Any], dict[str, Any]]:
    """The schema of each endpoint's parameters and of its answer, and the schemas that they share."""
    inputs: list[tuple[str, Any, TypeAdapter[Any]]] = [
        (each.name, "validation", TypeAdapter(each.given)) for each in ENDPOINTS
    ]
    answers: list[tuple[str, Any, TypeAdapter[Any]]] = [
        (each.name, "serialization", TypeAdapter(each.answer)) for each in ENDPOINTS
    ]
    made, shared = TypeAdapter.json_schemas([*inputs, *answers], by_alias=True, ref_template=_SCHEMAS)
    return dict(made), shared.get("$defs", {})


def statuses_of(endpoint: Endpoint) -> list[int]:
    """The statuses of the errors that an operation can answer with."""
    found = {*_ALWAYS, *(status_of(code) for code in endpoint.codes)}
    if endpoint.path_names:
        found.add(404)
    if endpoint.has_body:
        found |= {400, 413, 415}
    elif endpoint.changes_state:
        found.add(413)
    if endpoint.takes_key:
        found.add(409)
    return sorted(found)


def _operation(endpoint: Endpoint, given: dict[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
    fields = _fields(endpoint)
    required = set(fields.get("required", ()))
    properties: dict[str, Any] = dict(fields.get("properties", {}))
    in_path = [_parameter("path", name, properties.pop(name, _NAME), is_required=True) for name in endpoint.path_names]
    operation: dict[str, Any] = {
        "operationId": endpoint.name,
        "summary": endpoint.summary,
        "description": _told(endpoint),
        "tags": [endpoint.handler.__module__.rpartition(".")[2]],
        "parameters": in_path,
    }
    if endpoint.has_body:
        body = {**given, "properties": properties, "required": sorted(required - set(endpoint.path_names))}
        body = {key: value for key, value in body.items() if key not in ("$ref", "title")}
        body |= {"type": "object", "additionalProperties": False}
        operation["requestBody"] = {"required": True, "content": {"application/json": {"schema": body}}}
    else:
        operation["parameters"] += [
            _parameter("query", name, _without_null(schema), is_required=name in required)
            for name, schema in properties.items()
        ]
    if endpoint.takes_key:
        key = {"type": "string", "pattern": r"^[\x21-\x7e]{1,255}$"}
        operation["parameters"].append(_parameter("header", HEADER, key, is_required=False))
    content = {} if endpoint.media_type != "application/json" else {"schema": answer}
    success: dict[str, Any] = {"description": endpoint.summary, "content": {endpoint.media_type: content}}
    if endpoint.links:
        success["links"] = {_link_name(link): _link(link, endpoint) for link in endpoint.links}
    operation["responses"] = {str(endpoint.status): success}
    for status in statuses_of(endpoint):
        operation["responses"][str(status)] = {"$ref": f"#/components/responses/{status}"}
    return operation


_NAME: Final = {"type": "string"}


def _fields(endpoint: Endpoint) -> dict[str, Any]:
    """The schema of the parameters, with their types written out where they stand."""
    return endpoint.given.model_json_schema(by_alias=True, ref_template=_SCHEMAS)


def _told(endpoint: Endpoint) -> str:
    told = " ".join((endpoint.handler.__doc__ or endpoint.summary).split())
    return told if endpoint.action is None else f"{told} Needs the right `{endpoint.action}`."


def _parameter(place: str, name: str, schema: dict[str, Any], *, is_required: bool) -> dict[str, Any]:
    shown = {key: value for key, value in schema.items() if key not in ("title", "description", "default")}
    found = {"name": name, "in": place, "required": is_required, "schema": shown}
    return found | ({"description": schema["description"]} if "description" in schema else {})


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema for a query, in which nothing can be null."""
    choices = [each for each in schema.get("anyOf", ()) if each != {"type": "null"}]
    if len(choices) != 1:
        return schema
    return {**{key: value for key, value in schema.items() if key not in ("anyOf", "default")}, **choices[0]}


def _link_name(link: Link) -> str:
    return f"{link.to}From{''.join(part.title() for part in next(iter(link.parameters.values())).split('/'))}"


def _link(link: Link, source: Endpoint) -> dict[str, Any]:
    to = BY_NAME[link.to]
    in_path, body, parameters = set(to.path_names), {}, {}
    for name, pointer in link.parameters.items():
        value = f"$response.body#{pointer}"
        if name in in_path:
            parameters[f"path.{name}"] = value
        elif to.has_body:
            body[name] = value
        else:
            parameters[f"query.{name}"] = value
    if to.is_in_workspace and source.is_in_workspace:
        parameters["path.workspace"] = "$request.path.workspace"
    return {"operationId": link.to, "parameters": parameters, **({"requestBody": body} if body else {})}


def _problem_response(status: int) -> dict[str, Any]:
    schema = {"$ref": _SCHEMAS.format(model="Problem")}
    return {"description": TITLES[status], "content": {MEDIA_TYPE: {"schema": schema}}}
