import asyncio
import functools

import pytest

from haft.contracts import BadConfig, Tool
from haft.sources.python import PythonTool, tool


def test_a_decorated_function_is_a_tool_and_still_the_function():
    @tool
    def add(a: int, b: int = 2) -> int:
        """Add two numbers."""
        return a + b

    assert isinstance(add, PythonTool)
    assert isinstance(add, Tool)
    assert add(1, 2) == 3
    assert add(1, b=4) == 5
    assert add.__name__ == "add"
    assert add.__doc__ == "Add two numbers."


def test_the_spec_says_what_the_function_is():
    @tool
    def add(a: int, b: int) -> int:
        """Add two numbers.

        Args:
            a: The first.
        """
        return a + b

    spec = add.spec
    assert (spec.name, spec.kind, spec.provenance) == ("add", "python", "embedded")
    assert spec.description == "Add two numbers."
    assert spec.input_schema["properties"]["a"]["description"] == "The first."
    assert spec.origin.startswith(f"{__name__}:")
    assert spec.digest.__len__() == 64
    assert add.spec is spec


def test_claims_of_the_decorator_win():
    @tool(name="plus", description="Sums.", readonly=True, cacheable=True, network=True, idempotent=True, timeout=3)
    def add(a: int) -> int:
        """Not this."""

    spec = add.spec
    assert (spec.name, spec.description, spec.timeout) == ("plus", "Sums.", 3)
    assert spec.effects.to_json() == {"readonly": True, "cacheable": True, "network": True, "idempotent": True}


def test_a_function_without_docstring_has_an_empty_description():
    @tool
    def quiet(): ...

    assert quiet.spec.description == ""


def test_the_digest_changes_with_what_a_person_would_read():
    def make(description, **claims):
        def function(a: int): ...

        return tool(description=description, name="t", **claims)(function).spec.digest

    assert make("x") == make("x")
    assert len({make("x"), make("y"), make("x", readonly=True)}) == 3

    def one(a: int):
        return a

    def other(a: int):
        return -a

    assert tool(name="t")(one).spec.digest != tool(name="t")(other).spec.digest


def test_a_method_taken_from_an_object_is_a_tool_of_that_object(context):
    class Greeter:
        def __init__(self, word):
            self.word = word

        @tool
        def greet(self, name: str) -> str:
            return f"{self.word} {name}"

        @tool
        @staticmethod
        def shout(name: str) -> str:
            return name.upper()

    greeter = Greeter("hello")
    assert greeter.greet("you") == "hello you"
    assert list(greeter.greet.spec.input_schema["properties"]) == ["name"]
    assert asyncio.run(greeter.greet.invoke({"name": "you"}, context)).text == "hello you"
    assert greeter.shout("you") == Greeter.shout("you") == "YOU"
    assert tool(functools.partial(Greeter("a").greet, name="b")).spec.name == "greet"
    with pytest.raises(BadConfig, match=r"`Greeter\.greet` is a method") as raised:
        _ = Greeter.greet.spec
    assert "Greeter(…).greet" in raised.value.hint


def test_bound_methods_partials_and_callable_objects_become_tools():
    class Adder:
        """Adds."""

        def __call__(self, a: int) -> int:
            return a + 1

        def plus(self, a: int) -> int:
            return a + 2

    def add(a: int, b: int) -> int:
        return a + b

    assert tool(Adder().plus).spec.name == "plus"
    assert tool(Adder()).spec.name == "Adder"
    assert tool(functools.partial(add, b=1)).spec.name == "add"
    assert tool(functools.partial(add, b=1))(2) == 3


def test_a_name_no_tool_can_have_is_refused_when_described():
    with pytest.raises(BadConfig, match="cannot be the name of a tool"):
        _ = tool(lambda a: a).spec
    with pytest.raises(BadConfig, match="cannot be the name of a tool"):
        _ = tool(name="a b")(lambda a: a).spec


def test_what_is_no_function_or_a_tool_already_is_refused():
    with pytest.raises(BadConfig, match="made of a function"):
        tool(5)
    with pytest.raises(BadConfig, match="a tool already"):
        tool(tool(lambda: 1))
