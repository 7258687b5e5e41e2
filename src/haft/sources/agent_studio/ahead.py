"""How much of a template can be run before its call is known: what only defines things, up to its main block.

It is a list of what is known to read nothing that a call could bring or change, to print nothing and to keep nothing
open. Whatever else stands in a file is left for the call.
"""

from __future__ import annotations

import ast
from collections.abc import Collection
from typing import Final

from haft.sources.agent_studio.scope import dotted, is_main

_CALLS: Final = frozenset(
    """Field ConfigDict PrivateAttr Path PurePath TypeVar Decimal bool bytes dict float frozenset int len list max min
    range set sorted str tuple pathlib.Path re.compile os.getenv os.environ.get os.path.abspath os.path.basename
    os.path.dirname os.path.join os.path.normpath os.path.realpath logging.getLogger typing.TypeVar pydantic.Field
    pydantic.ConfigDict pydantic.PrivateAttr field_validator model_validator validator root_validator field_serializer
    computed_field""".split()  # noqa: SIM905  it would fill the page
)
_METHODS: Final = frozenset(
    """absolute as_posix capitalize format get joinpath keys lower replace resolve split strip title upper with_name
    with_suffix""".split()  # noqa: SIM905  the same
)
_STATEMENTS: Final = frozenset({"os.chdir", "sys.path.append", "sys.path.insert"})
_OF_THE_CALL: Final = frozenset({"sys.argv", "sys.orig_argv", "sys.stdin", "sys.stdout", "sys.stderr"})
_BUILT_IN_DECORATORS: Final = frozenset({"classmethod", "property", "staticmethod"})


def quiet_until(module: ast.Module, own_modules: Collection[str]) -> int | None:
    """How many statements can be run ahead; None where that is not all of those before the main block, or more follow
    it. `own_modules` lie beside the file: what they do is not known."""
    mains = [number for number, node in enumerate(module.body) if is_main(node)]
    if len(mains) != 1 or mains[0] != len(module.body) - 1:
        return None
    try:
        quiet = _Quiet(module, own_modules)
        return mains[0] if all(map(quiet.statement, module.body[: mains[0]])) else None
    except RecursionError:
        return None


class _Quiet:
    def __init__(self, module: ast.Module, own_modules: Collection[str]) -> None:
        self._own_modules = own_modules
        self._defined = {node.name for node in ast.walk(module) if isinstance(node, ast.FunctionDef | ast.ClassDef)} | {
            node.id for node in ast.walk(module) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        }

    def statement(self, node: ast.stmt) -> bool:
        match node:
            case ast.Pass() | ast.Expr(value=ast.Constant()):
                return True
            case ast.Import(names=names):
                return not any(each.name.partition(".")[0] in self._own_modules for each in names)
            case ast.ImportFrom(module=str() as name, level=0):
                return name.partition(".")[0] not in self._own_modules
            case ast.Assign(targets=targets, value=value):
                return all(isinstance(target, ast.Name) for target in targets) and self.value(value)
            case ast.AnnAssign(target=ast.Name(), annotation=annotation, value=value):
                return self.value(annotation) and (value is None or self.value(value))
            case ast.Expr(value=ast.Call(func=called, args=args, keywords=[])):
                return dotted(called) in _STATEMENTS and all(map(self.value, args))
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                return self._function(node)
            case ast.ClassDef(bases=bases, keywords=keywords, body=body, decorator_list=[]):
                inherited = [*bases, *(word.value for word in keywords)]
                return all(map(self.value, inherited)) and all(map(self.statement, body))
            case _:
                return False

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
        arguments = node.args
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
        evaluated = [each.annotation for each in every if each is not None]
        evaluated += [node.returns, *arguments.defaults, *arguments.kw_defaults]
        return all(map(self._decorator, node.decorator_list)) and all(
            each is None or self.value(each) for each in evaluated
        )

    def _decorator(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Name):
            return node.id in _BUILT_IN_DECORATORS | _CALLS and node.id not in self._defined
        return isinstance(node, ast.Call) and self.value(node)

    def value(self, node: ast.expr) -> bool:
        match node:
            case ast.Constant() | ast.Name() | ast.Lambda():
                return True
            case ast.Attribute(value=inner):
                return dotted(node) not in _OF_THE_CALL and self.value(inner)
            case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts) | ast.BoolOp(values=parts):
                return all(map(self.value, parts))
            case ast.Dict(keys=keys, values=values):
                return all(key is not None and self.value(key) for key in keys) and all(map(self.value, values))
            case ast.Subscript(value=inner, slice=index):
                return self.value(inner) and self.value(index)
            case ast.BinOp(left=left, op=ast.BitOr() | ast.Div() | ast.Add() | ast.Mod(), right=right):
                return self.value(left) and self.value(right)
            case ast.UnaryOp(operand=inner):
                return self.value(inner)
            case ast.Call():
                return self._call(node)
            case _:
                return False

    def _call(self, node: ast.Call) -> bool:
        name = dotted(node.func)
        is_known = name in _CALLS and (name or "").partition(".")[0] not in self._defined
        if not is_known and isinstance(node.func, ast.Attribute):
            is_known = node.func.attr in _METHODS and self.value(node.func.value)
        return is_known and all(map(self.value, node.args)) and all(self.value(word.value) for word in node.keywords)
