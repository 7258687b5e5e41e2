"""Decides whether the statements before a template's main block can run early: while the warm pool loads the template,
before the call is known. They can if all of them only define things.

Only certain constructs may run early: they read nothing that a call could pass or change, print nothing and keep
nothing open. All other code waits for the call.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from typing import Final

from haft.sources.agent_studio.scope import dotted, is_main


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_HOMES: Final = {
    "pydantic": _words(
        """Field ConfigDict PrivateAttr field_validator model_validator validator root_validator field_serializer
        computed_field"""
    ),
    "pathlib": _words("Path PurePath"),
    "typing": _words("TypeVar"),
    "decimal": _words("Decimal"),
    "builtins": _words("bool bytes dict float frozenset int len list max min range set sorted str tuple"),
    "re": _words("compile"),
    "os": _words("getenv environ.get"),
    "os.path": _words("abspath basename dirname join normpath realpath"),
    "logging": _words("getLogger"),
}
"""Functions that may be called, by their module."""
_METHODS: Final = _words(
    """absolute as_posix capitalize format get joinpath keys lower replace resolve split strip title upper with_name
    with_suffix"""
)
"""Methods that may be called on texts, paths and dictionaries that the file made itself."""
_LOOKING: Final = _words("os.path.realpath realpath resolve os.chdir")
"""Calls whose result depends on existing files. They are allowed for the template's own files, which are the same in
every call."""
_STATEMENTS: Final = _words("os.chdir sys.path.append sys.path.insert")
_OF_THE_CALL: Final = _words("argv orig_argv stdin stdout stderr")
_BUILT_IN_DECORATORS: Final = _words("classmethod property staticmethod")
_RUN_WHEN_DEFINED: Final = _words(
    "__init_subclass__ __class_getitem__ __set_name__ __prepare__ __new__ __mro_entries__"
)
_PLAIN_NAMES: Final = _words("__all__ __author__ __doc__ __license__ __slots__ __version__")


def preloadable_statements(module: ast.Module, own_modules: Collection[str]) -> int | None:
    """The number of statements before the main block (`if __name__ == "__main__"`), if all of them can run before the
    call. None if one of them must wait for the call, if there is no main block, or if code follows it. `own_modules`
    are the modules beside the file: the file may not import one of them before the call, because what they do is not
    known."""
    mains = [number for number, node in enumerate(module.body) if is_main(node)]
    if len(mains) != 1 or mains[0] != len(module.body) - 1:
        return None
    try:
        quiet = _PreloadChecker(module, own_modules)
        return mains[0] if all(map(quiet.statement, module.body[: mains[0]])) else None
    except RecursionError:
        return None


class _PreloadChecker:
    def __init__(self, module: ast.Module, own_modules: Collection[str]) -> None:
        self._own_modules = own_modules
        self._bound = dict(_bound(module))
        """The origin of each name: the module and the name in it, or empty texts if the file defines it itself."""
        self._plain: set[str] = {"__file__"}
        """The names of texts, numbers, paths and collections that the file made itself."""
        self._placed: set[str] = {"__file__"}
        """The names of paths in the template's own folder."""
        self._sees_other_modules = False

    def statement(self, node: ast.stmt) -> bool:
        match node:
            case ast.Pass() | ast.Expr(value=ast.Constant()):
                return True
            case ast.Import(names=names):
                return all(each.asname is None or each.name != "sys" for each in names) and self._imports(
                    each.name for each in names
                )
            case ast.ImportFrom(module=str() as name, names=names, level=0):
                taken = {each.name for each in names}
                return "*" not in taken and not (name == "sys" and taken & _OF_THE_CALL) and self._imports([name])
            case ast.Assign(targets=targets, value=value):
                return all(map(self._is_plain_target, targets)) and self._assigned(targets, value)
            case ast.AnnAssign(target=ast.Name() as target, annotation=annotation, value=value):
                is_quiet = value is None or self._assigned([target], value)
                return self._is_plain_target(target) and self.value(annotation) and is_quiet
            case ast.Expr(value=ast.Call(func=called, args=args, keywords=[])):
                return self._does(dotted(called), args)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                return self._function(node)
            case ast.ClassDef(decorator_list=[]):
                return self._class(node)
            case _:
                return False

    def _imports(self, names: Collection[str] | Iterator[str]) -> bool:
        """Whether these modules may be imported before the call. They may not if one of them lies beside the file, or
        if the file has changed the search path, because then it is not known which modules Python finds."""
        return not self._sees_other_modules and not any(name.partition(".")[0] in self._own_modules for name in names)

    @staticmethod
    def _is_plain_target(target: ast.expr) -> bool:
        if not isinstance(target, ast.Name):
            return False
        return not (target.id.startswith("_") and target.id.endswith("_")) or target.id in _PLAIN_NAMES

    def _assigned(self, targets: list[ast.expr], value: ast.expr) -> bool:
        names = {target.id for target in targets if isinstance(target, ast.Name)}
        for known, holds in ((self._plain, self._is_plain(value)), (self._placed, self._is_placed(value))):
            known.difference_update(names)
            known.update(names if holds else ())
        return self.value(value)

    def _does(self, name: str | None, args: list[ast.expr]) -> bool:
        root = (name or "").partition(".")[0]
        if name not in _STATEMENTS or self._bound.get(root) != (root, ""):
            return False
        self._sees_other_modules |= name != "os.chdir"
        return all(map(self.value, args)) and (name != "os.chdir" or all(map(self._is_placed, args)))

    def _class(self, node: ast.ClassDef) -> bool:
        """Whether a class can be defined before the call. When Python defines a subclass, it runs methods of the base
        classes, such as `__init_subclass__`. So the result is False for a class that has such a method itself, because
        a later class of the file could be its subclass."""
        if any(word.arg in (None, "metaclass") for word in node.keywords):
            return False
        methods = {one.name for one in node.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)}
        # A base may create members while the class is defined, as an enumeration does, and call these methods.
        if methods & _RUN_WHEN_DEFINED or (node.bases and any(map(_is_special, methods))):
            return False
        inherited = [*node.bases, *(word.value for word in node.keywords)]
        return all(map(self.value, inherited)) and all(map(self.statement, node.body))

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
            is_built_in = node.id in _BUILT_IN_DECORATORS and node.id not in self._bound
            return is_built_in or self._is_known(node)
        return isinstance(node, ast.Call) and self.value(node)

    def value(self, node: ast.expr) -> bool:
        match node:
            case ast.Constant() | ast.Name() | ast.Lambda():
                return not isinstance(node, ast.Lambda) or all(map(self.value, _defaults(node)))
            case ast.Attribute(value=inner, attr=name):
                return name not in _OF_THE_CALL and not _is_special(name) and self.value(inner)
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
        known, name = self._is_known(node.func), dotted(node.func)
        given = [*node.args, *(word.value for word in node.keywords)]
        if not known and isinstance(node.func, ast.Attribute):
            known, name = node.func.attr in _METHODS and self._is_plain(node.func.value), node.func.attr
            if name in _LOOKING and not self._is_placed(node.func.value):
                return False
        elif name in _LOOKING and not all(map(self._is_placed, given)):
            return False
        return known and all(map(self.value, given))

    def _is_known(self, called: ast.expr) -> bool:
        """Whether an expression is one of the allowed functions, and not another function of the same name."""
        name = dotted(called)
        if name is None:
            return False
        root, _, rest = name.partition(".")
        if root not in self._bound:
            return name in _HOMES["builtins"]
        module, original = self._bound[root]
        whole = ".".join(part for part in (module, original, rest) if part)
        return any(whole == f"{home}.{one}" for home, some in _HOMES.items() for one in some)

    def _is_plain(self, node: ast.expr) -> bool:
        match node:
            case ast.Constant() | ast.Dict() | ast.List() | ast.Tuple() | ast.Set():
                return True
            case ast.Name(id=name):
                return name in self._plain
            case ast.Attribute(value=inner) | ast.Subscript(value=ast.Attribute(value=inner, attr="parents")):
                return self._is_plain(inner)
            case ast.BinOp(left=left, right=right):
                return self._is_plain(left) and self._is_plain(right)
            case ast.Call():
                return self._call(node)
            case _:
                return False

    def _is_placed(self, node: ast.expr) -> bool:
        """Whether a path begins with the template's own folder."""
        match node:
            case ast.Name(id=name):
                return name in self._placed
            case ast.Attribute(value=inner) | ast.BinOp(left=inner) | ast.Subscript(value=inner):
                return self._is_placed(inner)
            case ast.Call(func=ast.Attribute(value=inner, attr=name), args=args):
                return (name in _METHODS and self._is_placed(inner)) or (bool(args) and self._is_placed(args[0]))
            case ast.Call(args=[first, *_]):
                return self._is_placed(first)
            case _:
                return False


def _bound(module: ast.Module) -> Iterator[tuple[str, tuple[str, str]]]:
    """Each name that a file binds, with its origin: a module and the name there, or empty texts if the file itself
    defines the name. The file's own definitions come last and override imports."""
    imported: dict[str, set[tuple[str, str]]] = {}
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            for each in node.names:
                whole = each.name if each.asname else each.name.partition(".")[0]
                imported.setdefault(each.asname or whole, set()).add((whole, ""))
        elif isinstance(node, ast.ImportFrom):
            for each in node.names:
                imported.setdefault(each.asname or each.name, set()).add((node.module or "", each.name))
    for name, found in imported.items():
        yield name, found.pop() if len(found) == 1 else ("", "")
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name, ("", "")
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, ("", "")


def _defaults(node: ast.Lambda) -> list[ast.expr]:
    return [*node.args.defaults, *(each for each in node.args.kw_defaults if each is not None)]


def _is_special(name: str) -> bool:
    return name.startswith("_") and name.endswith("_")
