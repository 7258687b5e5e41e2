"""The location of a function, by which a worker process finds the function: a module and a qualified name.

The host calls `locate_function` when an isolated tool is described, and the worker loads that location. The main
program, `__main__`, is loaded under another name, so that code under `if __name__ == "__main__":` does not run again.
The host sends only names to the worker, so a function without a name of its own cannot be isolated.
"""

from __future__ import annotations

import functools
import importlib
import io
import os
import sys
import types
from collections.abc import Callable
from dataclasses import dataclass
from importlib.machinery import PathFinder
from typing import Any, Final, Literal

from haft.contracts import BadConfig

MAIN: Final = "__haft_main__"
"""The module name of a program that is loaded only to find a function in it."""

GUARD: Final = 'put the code that runs the program under `if __name__ == "__main__":`, and its tools outside of it'

LocationKind = Literal["module", "program", "file", "entry"]
"""How a function's code is loaded. `module`: as an ordinary module. `program`: as with `python -m`. `file`: as a
script. `entry`: as a directory or archive with a `__main__`."""


@dataclass(frozen=True, slots=True)
class FunctionLocation:
    """Where a function is defined."""

    name: str
    """The qualified name of the function."""
    module: str
    how: LocationKind
    place: str
    """The name of the module, or the path, that the worker loads."""


def locate_function(function: Callable[..., Any]) -> FunctionLocation:
    """The location of a function. Raises `BadConfig` if a worker could not find the function by its module and name,
    for example if it is a lambda."""
    name, module = getattr(function, "__qualname__", None), getattr(function, "__module__", None)
    if isinstance(function, functools.partial):
        raise _no_location(repr(function.func), "is wrapped in a partial")
    if isinstance(function, types.MethodType):
        raise _no_location(f"`{name}`", "is bound to an object")
    if not isinstance(name, str) or not isinstance(module, str):
        raise _no_location(f"a `{type(function).__name__}`", "has no name in a module")
    if "<lambda>" in name:
        raise _no_location(f"`{name}`", "is a lambda")
    if "<locals>" in name:
        raise _no_location(f"`{name}`", "is defined inside a function")
    if module not in sys.modules:
        raise _no_location(f"`{name}`", f"claims to be in `{module}`, which is not a module")
    return FunctionLocation(name, module, *_program(name) if module == "__main__" else ("module", module))


def attribute(module: types.ModuleType, name: str) -> Any:
    """The object with a qualified name in a module. Raises `AttributeError` if there is none."""
    return functools.reduce(getattr, name.split("."), module)


def load(location: FunctionLocation) -> types.ModuleType:
    """Import the module, or load the program under another name. Raises whatever the loaded code raises."""
    global _is_loading
    _is_loading = True
    try:
        module = _loaded(location)
    finally:
        _is_loading = False
    if _refusal is not None:
        raise _refusal
    return module


def refuse_while_loading() -> None:
    """Refuse calls of isolated tools while a program is being loaded. Without this, a program that calls its tools on
    import would start workers without end."""
    global _refusal
    if _is_loading:
        _refusal = BadConfig("the program called an isolated tool while a worker process was loading it", hint=GUARD)
        raise _refusal


_is_loading = False
_refusal: BadConfig | None = None


def _no_location(what: str, why: str) -> BadConfig:
    return BadConfig(
        f"{what} cannot be an isolated tool: it {why}, so a worker process could not find it",
        hint="isolate a function that is defined with `def` at the top level of a module",
    )


def _program(name: str) -> tuple[LocationKind, str]:
    main = sys.modules["__main__"]
    spec, file = getattr(main, "__spec__", None), getattr(main, "__file__", None)
    if spec is not None and spec.name != "__main__":
        return "program", spec.name
    if spec is not None and file is not None:
        return "entry", os.path.dirname(os.path.abspath(file))
    if file is not None and os.path.isfile(file):
        return "file", os.path.abspath(file)
    raise BadConfig(
        f"`{name}` cannot be an isolated tool: its program has no file that a worker process could load",
        hint="put it into a module; a prompt and `python -c` have no file",
    )


def _loaded(location: FunctionLocation) -> types.ModuleType:
    if location.how == "module":
        return importlib.import_module(location.place)
    module, code = _from_file(location.place) if location.how == "file" else _from_spec(location)
    sys.modules[MAIN] = sys.modules["__main__"] = module
    exec(code, module.__dict__)  # noqa: S102  this runs the program's own code
    return module


def _from_file(path: str) -> tuple[types.ModuleType, types.CodeType]:
    module = types.ModuleType(MAIN)
    module.__file__ = path
    with io.open_code(path) as file:
        return module, compile(file.read(), path, "exec", dont_inherit=True)


def _from_spec(location: FunctionLocation) -> tuple[types.ModuleType, types.CodeType]:
    import importlib.util

    if location.how == "program":
        spec = importlib.util.find_spec(location.place)
    else:
        spec = PathFinder.find_spec("__main__", [location.place])
    loader: Any = None if spec is None else spec.loader
    code = None if spec is None or loader is None else loader.get_code(spec.name)
    if spec is None or code is None:
        raise ModuleNotFoundError(f"there is no program `{location.place}`")
    module = importlib.util.module_from_spec(spec)
    module.__name__ = MAIN
    return module, code
