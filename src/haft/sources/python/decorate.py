"""`@tool` makes a tool of a Python function.

Users import this decorator. It only wraps the function: the function is inspected when the tool's spec is first needed,
so decorating costs almost nothing at import. Python code can still call the decorated function as before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar, overload

from haft.contracts import BadConfig, Effects, TaskSupport
from haft.sources.python.describe import Claims, check_resource, path_parameters
from haft.sources.python.invoke import Preprocess, PythonTool

Parameters = ParamSpec("Parameters")
Returned = TypeVar("Returned")


@overload
def tool(function: Callable[Parameters, Returned], /) -> PythonTool[Parameters, Returned]: ...


@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    readonly: bool = False,
    cacheable: bool = False,
    network: bool = False,
    idempotent: bool = False,
    timeout: float | None = None,
    isolated: bool = False,
    preprocess: Preprocess | None = None,
    task_support: TaskSupport | None = None,
    reads: Sequence[str] | None = None,
    writes: Sequence[str] | None = None,
    resource: str | None = None,
) -> Callable[[Callable[Parameters, Returned]], PythonTool[Parameters, Returned]]: ...


def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    readonly: bool = False,
    cacheable: bool = False,
    network: bool = False,
    idempotent: bool = False,
    timeout: float | None = None,
    isolated: bool = False,
    preprocess: Preprocess | None = None,
    task_support: TaskSupport | None = None,
    reads: Sequence[str] | None = None,
    writes: Sequence[str] | None = None,
    resource: str | None = None,
) -> Any:
    """Make a tool of a function: `@tool`, or `@tool(readonly=True, …)`.

    Parameters, their types and descriptions come from the signature and the docstring. A parameter annotated
    `ToolContext` receives the call's context and is not part of the schema. `readonly`, `cacheable` and `idempotent`
    are false unless you say otherwise; `network` says that the tool needs the network. `timeout` is in seconds.
    `preprocess` gets the arguments before the call is decided, and returns the arguments to use. An `isolated`
    function runs in its own process, with the sandbox and limits of a command; it must be defined in a module under
    its own name. `task_support` says whether MCP clients get the call as a task: see `TaskSupport`.

    `reads` and `writes` are the names of the parameters that are paths which a call reads or writes, with everything
    below them: `[]` means none, and without them a call may touch any file. `resource` names something that is no file,
    such as `postgres:main`. Calls that touch other files and resources need not wait for each other.
    """
    effects = Effects(readonly=readonly, cacheable=cacheable, network=network, idempotent=idempotent)
    if readonly and writes:
        raise BadConfig("a tool with `readonly=True` writes nothing", hint="leave out `writes`, or `readonly`")
    check_resource(resource)

    def decorate(function: Callable[..., Any]) -> PythonTool[..., Any]:
        claims = Claims(
            name=name,
            description=description,
            effects=effects,
            timeout=timeout,
            hosting="per-call" if isolated else "in-process",
            task_support=task_support,
            reads=path_parameters(function, "reads", reads),
            writes=path_parameters(function, "writes", writes),
            resource=resource,
        )
        return PythonTool(function, claims, preprocess)

    return decorate if function is None else decorate(function)
