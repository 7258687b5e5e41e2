"""Builds the spec of a tool from its function and the arguments of its decorator.

`invoke` does this once for each tool, when the spec is first used. The digest covers everything that a person who
approves the tool would want to read again after a change: texts, schemas, effects and source code.
"""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from haft.contracts import (
    BadConfig,
    Effects,
    Hosting,
    Provenance,
    TaskSupport,
    ToolName,
    ToolSpec,
    clean_tool_name,
    is_tool_name,
    near_miss,
)
from haft.schema import Signature


@dataclass(frozen=True, slots=True)
class Claims:
    """What the author of a tool states besides the function itself. If `name`, `description` or `origin` is None, the
    value comes from the function."""

    name: str | None = None
    description: str | None = None
    effects: Effects = field(default_factory=Effects)
    timeout: float | None = None
    hosting: Hosting = "in-process"
    provenance: Provenance = "embedded"
    origin: str | None = None
    task_support: TaskSupport | None = None
    reads: tuple[str, ...] | None = None
    writes: tuple[str, ...] | None = None
    resource: str | None = None


NO_CLAIMS = Claims()


def function_name(function: Callable[..., Any]) -> str:
    """The name of a function. For a partial, the name of the function inside; for a callable object, the name of its
    class."""
    while hasattr(function, "func") and hasattr(function, "keywords"):
        function = function.func
    return str(getattr(function, "__name__", None) or type(function).__name__)


def describe(function: Callable[..., Any], claims: Claims, signature: Signature) -> ToolSpec:
    """The spec of a function. Raises `BadConfig` if its name cannot be a tool name."""
    import hashlib

    name = claims.name if claims.name is not None else function_name(function)
    if not is_tool_name(name):
        raise BadConfig(
            f"{name!r} cannot be the name of a tool: 1 to 64 letters, digits, `_` and `-` can",
            hint=f'give it one: `@tool(name="{clean_tool_name(name)}")`',
        )
    description = signature.description if claims.description is None else claims.description
    definition: dict[str, Any] = {
        "name": name,
        "description": description,
        "inputSchema": signature.input_schema,
        "outputSchema": signature.output_schema,
        "effects": claims.effects.to_json(),
        "hosting": claims.hosting,
        "source": _source(function),
    }
    if claims.task_support is not None:
        definition["taskSupport"] = claims.task_support
    touched = {"reads": claims.reads, "writes": claims.writes, "resource": claims.resource}
    definition.update({key: value for key, value in touched.items() if value is not None})
    canonical = json.dumps(definition, sort_keys=True, separators=(",", ":"), default=str)
    return ToolSpec(
        name=ToolName(name),
        kind="python",
        description=description,
        input_schema=signature.input_schema,
        output_schema=signature.output_schema,
        effects=claims.effects,
        provenance=claims.provenance,
        origin=_origin(function) if claims.origin is None else claims.origin,
        digest=hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest(),
        hosting=claims.hosting,
        timeout=claims.timeout,
        reads=claims.reads,
        writes=claims.writes,
        resource=claims.resource,
        files=() if claims.provenance == "embedded" else _files(function),
        meta={} if claims.task_support is None else {"taskSupport": claims.task_support},
    )


def path_parameters(function: Callable[..., Any], option: str, names: Sequence[str] | None) -> tuple[str, ...] | None:
    """The names of parameters that `@tool` got in `reads=` or `writes=`. Raises `BadConfig` if the function has no such
    parameter."""
    if names is None:
        return None
    if isinstance(names, str):
        raise BadConfig(f'`{option}="{names}"` must be a list', hint=f'write `{option}=["{names}"]`')
    known = inspect.signature(function).parameters
    for name in names:
        if name not in known:
            similar = near_miss(name, known)
            raise BadConfig(
                f"`{option}` names `{name}`, but `{function_name(function)}` has no parameter of this name",
                hint=f"did you mean `{similar}`?"
                if similar is not None
                else f"`{option}` names the parameters that are paths, not the paths; `{option}=[]` means none",
            )
    return tuple(names)


def check_resource(resource: object) -> None:
    """Raise `BadConfig` if this is no name of a resource."""
    if resource is not None and not (isinstance(resource, str) and resource.strip()):
        raise BadConfig(f"`resource={resource!r}` is no name", hint='write a name such as `resource="postgres:main"`')


def refuse_unbound_method(function: Callable[..., Any]) -> None:
    """Refuse a method without its object, before `self` becomes a parameter of the tool."""
    qualified = str(getattr(function, "__qualname__", "")).rpartition("<locals>.")[2]
    if not inspect.isfunction(function) or "." not in qualified:
        return
    first = next(iter(inspect.signature(function).parameters), None)
    if first in ("self", "cls"):
        owner, _, method = qualified.rpartition(".")
        raise BadConfig(
            f"`{qualified}` is a method and has no object to be called on",
            hint=f"pass the method of an object: `{owner}(…).{method}`",
        )


def _origin(function: Callable[..., Any]) -> str:
    while hasattr(function, "func") and hasattr(function, "keywords"):
        function = function.func
    named = function if hasattr(function, "__qualname__") else type(function)
    return f"{getattr(named, '__module__', '?')}:{named.__qualname__}"


def _files(function: Callable[..., Any]) -> tuple[str, ...]:
    """The path of the file that defines the function; empty if there is no such file."""
    try:
        found = inspect.getsourcefile(function)
    except TypeError:
        return ()
    return () if found is None else (os.path.abspath(found),)


def _source(function: Callable[..., Any]) -> str | None:
    try:
        return inspect.getsource(function)
    except (OSError, TypeError):  # the function was typed at a prompt, is compiled, or was made by a call
        return None
