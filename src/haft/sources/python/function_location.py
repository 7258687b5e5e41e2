"""Where a function stands, so that a worker process finds it: a module and a qualified name.

The host asks `home_of` when an isolated tool is described, and the worker loads that home. The program itself,
`__main__`, is loaded under another name, so that what stands under `if __name__ == "__main__":` does not run again.
Nothing is sent but names: a function that has none of its own cannot be isolated.
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
"""What a program is called while it is loaded to find a function in it."""

GUARD: Final = 'put what the program does under `if __name__ == "__main__":`, and its tools outside of it'

How = Literal["module", "program", "file", "entry"]
"""An ordinary module; or a program, as `python -m` names it, as a file, or as a directory or archive."""


@dataclass(frozen=True, slots=True)
class Home:
    """The place of a function."""

    name: str
    """Its qualified name."""
    module: str
    how: How
    place: str
    """The name or the path of what is loaded."""


def home_of(function: Callable[..., Any]) -> Home:
    """Where a function stands. `BadConfig` where that cannot be said in names."""
    name, module = getattr(function, "__qualname__", None), getattr(function, "__module__", None)
    if isinstance(function, functools.partial):
        raise _homeless(repr(function.func), "is wrapped in a partial")
    if isinstance(function, types.MethodType):
        raise _homeless(f"`{name}`", "is bound to an object")
    if not isinstance(name, str) or not isinstance(module, str):
        raise _homeless(f"a `{type(function).__name__}`", "has no name in a module")
    if "<lambda>" in name:
        raise _homeless(f"`{name}`", "is a lambda")
    if "<locals>" in name:
        raise _homeless(f"`{name}`", "is defined inside of a function")
    if module not in sys.modules:
        raise _homeless(f"`{name}`", f"is said to stand in `{module}`, which is no module")
    return Home(name, module, *_program(name) if module == "__main__" else ("module", module))


def attribute(module: types.ModuleType, name: str) -> Any:
    """What stands in a module under a qualified name. `AttributeError` where nothing does."""
    return functools.reduce(getattr, name.split("."), module)


def load(home: Home) -> types.ModuleType:
    """Import the module, or load the program under another name. Raises whatever its code does."""
    global _is_loading
    _is_loading = True
    try:
        module = _loaded(home)
    finally:
        _is_loading = False
    if _refusal is not None:
        raise _refusal
    return module


def refuse_while_loading() -> None:
    """A program that calls its tools while it is loaded would start workers without end."""
    global _refusal
    if _is_loading:
        _refusal = BadConfig("the program called an isolated tool while a worker process was loading it", hint=GUARD)
        raise _refusal


_is_loading = False
_refusal: BadConfig | None = None


def _homeless(what: str, why: str) -> BadConfig:
    return BadConfig(
        f"{what} cannot be an isolated tool: it {why}, so that a worker process could not find it",
        hint="isolate a function that is defined with `def` at the top of a module",
    )


def _program(name: str) -> tuple[How, str]:
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


def _loaded(home: Home) -> types.ModuleType:
    if home.how == "module":
        return importlib.import_module(home.place)
    module, code = _from_file(home.place) if home.how == "file" else _from_spec(home)
    sys.modules[MAIN] = sys.modules["__main__"] = module
    exec(code, module.__dict__)  # noqa: S102  the program's own code
    return module


def _from_file(path: str) -> tuple[types.ModuleType, types.CodeType]:
    module = types.ModuleType(MAIN)
    module.__file__ = path
    with io.open_code(path) as file:
        return module, compile(file.read(), path, "exec", dont_inherit=True)


def _from_spec(home: Home) -> tuple[types.ModuleType, types.CodeType]:
    import importlib.util

    if home.how == "program":
        spec = importlib.util.find_spec(home.place)
    else:
        spec = PathFinder.find_spec("__main__", [home.place])
    loader: Any = None if spec is None else spec.loader
    code = None if spec is None or loader is None else loader.get_code(spec.name)
    if spec is None or code is None:
        raise ModuleNotFoundError(f"there is no program `{home.place}`")
    module = importlib.util.module_from_spec(spec)
    module.__name__ = MAIN
    return module, code
