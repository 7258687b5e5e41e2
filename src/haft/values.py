"""Dataclasses that are cheap to define.

`dataclasses.dataclass` writes and compiles up to six functions for every class at import: a third of the time of a
short command. Here all classes share the functions for `==`, `hash` and `repr`. `__init__` is compiled when the first
instance of a class is created, because a process makes no instance of most classes. Type checkers,
`dataclasses.replace`, `fields` and `asdict`, pickling and orjson treat the classes as normal dataclasses.
"""

from __future__ import annotations

import inspect
from operator import attrgetter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataclasses import dataclass, field, replace
else:
    from reprlib import recursive_repr

    _NONE = object()

    class field:  # noqa: N801  as it is named in `dataclasses`
        """The options of a field."""

        __slots__ = ("compare", "default", "default_factory", "repr")

        def __init__(self, *, default=_NONE, default_factory=_NONE, repr=True, compare=True) -> None:  # noqa: A002
            self.default = default
            self.default_factory = default_factory
            self.repr = repr
            self.compare = compare

    def dataclass(cls=None, /, *, frozen=False, slots=False, eq=True):
        """As in `dataclasses`, with only the options that haft uses."""
        if cls is None:
            return lambda cls: _made(cls, frozen, slots, eq)
        return _made(cls, frozen, slots, eq)

    def replace(value, /, **changes):
        """As in `dataclasses`."""
        for name in value.__match_args__:
            if name not in changes:
                changes[name] = getattr(value, name)
        return value.__class__(**changes)

    def _made(cls, frozen, slots, eq):
        known = cls._FIELDS = _read(cls)
        names = cls.__match_args__ = tuple(known)
        own = cls.__dict__
        if frozen:
            cls.__setattr__, cls.__delattr__ = _set, _delete
        if eq:
            values = _getter([name for name in names if known[name].compare])
            if "__eq__" not in own:
                cls.__eq__ = _equal_by(values)
            if own.get("__hash__") is None:  # Python sets it to None in a class that defines `__eq__`.
                cls.__hash__ = _hash_by(values) if frozen else None
        if "__repr__" not in own:
            cls.__repr__ = _shown
        cls.__dataclass_fields__, cls.__signature__ = _FIELDS_OF, _SIGNATURE
        if slots:
            cls = _slotted(cls, names)
        if slots and frozen:
            cls.__getstate__, cls.__setstate__ = _get_state, _set_state
        if "__init__" not in own:
            _init_later(cls, frozen=frozen)
        return cls

    def _read(cls):
        """The fields of a class, those of its bases first. Defaults stay class attributes, as in `dataclasses`."""
        known: dict[str, field] = {}
        for base in cls.__mro__[-1:0:-1]:
            known.update(base.__dict__.get("_FIELDS", ()))
        for name, kind in cls.__annotations__.items():
            if "ClassVar" in str(kind):
                continue
            found = cls.__dict__.get(name, _NONE)
            if not isinstance(found, field):
                found = field(default=found)
            elif found.default is _NONE:
                delattr(cls, name)
            else:
                setattr(cls, name, found.default)
            known[name] = found
        return known

    def _slotted(cls, names):
        body = dict(cls.__dict__)
        inherited = {name for base in cls.__mro__[1:] for name in base.__dict__.get("__slots__", ())}
        body["__slots__"] = tuple(name for name in names if name not in inherited)
        for name in (*names, "__dict__", "__weakref__"):
            body.pop(name, None)
        made = type(cls)(cls.__name__, cls.__bases__, body)
        made.__qualname__ = cls.__qualname__
        return made

    def _init_later(cls, *, frozen):
        def __init__(self, *given, **named) -> None:
            cls.__init__ = _init_of(cls, frozen=frozen)
            cls.__init__(self, *given, **named)

        cls.__init__ = __init__

    def _init_of(cls, *, frozen):
        """The `__init__` of a class, compiled from plain assignments."""
        slots = any("__slots__" in base.__dict__ for base in cls.__mro__[:-1])
        words, space = [], {"_none": _NONE, "_put": object.__setattr__}
        lines = ["_own = self.__dict__"] if frozen and not slots else []
        for name, each in cls._FIELDS.items():
            given = name
            if each.default is not _NONE:
                space[f"_of_{name}"] = each.default
                words.append(f"{name}=_of_{name}")
            elif each.default_factory is not _NONE:
                space[f"_of_{name}"] = each.default_factory
                words.append(f"{name}=_none")
                given = f"_of_{name}() if {name} is _none else {name}"
            else:
                words.append(name)
            # The setter of a slot costs half of `_put`, and an entry in `__dict__` a third.
            if frozen and not slots:
                lines.append(f"_own[{name!r}] = {given}")
            elif frozen and (setter := getattr(getattr(cls, name, None), "__set__", None)) is not None:
                space[f"_set_{name}"] = setter
                lines.append(f"_set_{name}(self, {given})")
            else:
                lines.append(f"_put(self, {name!r}, {given})" if frozen else f"self.{name} = {given}")
        if hasattr(cls, "__post_init__"):
            lines.append("self.__post_init__()")
        exec(f"def __init__(self, {', '.join(words)}):\n " + "\n ".join(lines or ["pass"]), space)  # noqa: S102  names of fields
        made = space["__init__"]
        made.__qualname__ = f"{cls.__qualname__}.__init__"
        return made

    def _getter(names):
        """A function that returns the values of these fields, for comparing."""
        if len(names) == 1:
            return attrgetter(names[0])
        return attrgetter(*names) if names else lambda _value: ()

    def _equal_by(values):
        def __eq__(self, other):
            return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

        return __eq__

    def _hash_by(values):
        def __hash__(self):
            return hash(values(self))

        return __hash__

    @recursive_repr()
    def _shown(self):
        each = (f"{name}={getattr(self, name)!r}" for name, known in self._FIELDS.items() if known.repr)
        return f"{self.__class__.__qualname__}({', '.join(each)})"

    def _set(self, name, value):
        from dataclasses import FrozenInstanceError

        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def _delete(self, name):
        from dataclasses import FrozenInstanceError

        raise FrozenInstanceError(f"cannot delete field {name!r}")

    def _get_state(self):
        return [getattr(self, name) for name in self._FIELDS]

    def _set_state(self, state):
        for name, value in zip(self._FIELDS, state, strict=True):
            object.__setattr__(self, name, value)

    class _Late:
        """A class attribute that is computed on first access."""

        def __init__(self, name, work) -> None:
            self._name = name
            self._work = work

        def __get__(self, value, cls):
            owner = next(base for base in cls.__mro__ if base.__dict__.get(self._name) is self)
            found = self._work(owner)
            setattr(owner, self._name, found)
            return found

    def _fields_of(cls):
        import dataclasses

        found = {}
        kinds = {}
        for base in cls.__mro__[::-1]:
            kinds.update(getattr(base, "__annotations__", {}))
        for name, each in cls._FIELDS.items():
            options = {"repr": each.repr, "compare": each.compare}
            if each.default is not _NONE:
                options["default"] = each.default
            if each.default_factory is not _NONE:
                options["default_factory"] = each.default_factory
            one = dataclasses.field(**options)
            one.name, one.type, one._field_type, one.kw_only = name, kinds[name], dataclasses._FIELD, False
            found[name] = one
        return found

    def _signature_of(cls):
        if "__init__" not in cls.__dict__ or not cls._FIELDS:
            return None
        found = inspect.signature(_init_of(cls, frozen=False))
        return found.replace(parameters=list(found.parameters.values())[1:])

    _FIELDS_OF = _Late("__dataclass_fields__", _fields_of)
    _SIGNATURE = _Late("__signature__", _signature_of)

__all__ = ["dataclass", "field", "replace"]
