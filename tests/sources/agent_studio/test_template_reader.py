"""What is read of a whole `tool.py`."""

import ast

import pytest

from haft.schema import Validator
from haft.sources.agent_studio.template import UNKNOWN, Problem, Template
from haft.sources.agent_studio.template_reader import read_template

COMPLETE = '''"""
A simple JSON reader tool that reads JSON files from a given path
relative to the tool's directory.
"""

from pydantic import BaseModel, Field
from typing import Any
import json
import argparse
from pathlib import Path
import sys
import os

ROOT_DIR = Path(__file__).parent
sys.path.append(str(ROOT_DIR))
os.chdir(ROOT_DIR)


class UserParameters(BaseModel):
    pass


class ToolParameters(BaseModel):
    filepath: str = Field(
        description="The local path to the JSON file to read, relative to the tool's directory."
    )


def run_tool(config: UserParameters, args: ToolParameters) -> Any:
    filepath = args.filepath
    data = json.load(open(filepath))
    return json.dumps(data, indent=2)


OUTPUT_KEY = "tool_output"

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--user-params", required=True)
    parser.add_argument("--tool-params", required=True)
    args = parser.parse_args()

    config = UserParameters(**json.loads(args.user_params))
    params = ToolParameters(**json.loads(args.tool_params))

    output = run_tool(config, params)
    print(OUTPUT_KEY, output)
'''
HEAD = "from typing import *\nfrom pydantic import *\n"


def read(source):
    template = read_template(source.encode())
    assert isinstance(template, Template), template
    return template


def tool(body, before=HEAD, bases="BaseModel"):
    return read(f"{before}\nclass ToolParameters({bases}):\n{body}\n").tool


def codes(template):
    return [problem.code for problem in (*template.breaches, *template.remarks)]


def test_the_complete_example_of_the_specification_is_read():
    template = read(COMPLETE)
    assert template.description == ast.get_docstring(ast.parse(COMPLETE))
    assert template.user.schema == {"type": "object", "properties": {}}
    assert template.tool.schema == {
        "type": "object",
        "properties": {
            "filepath": {
                "type": "string",
                "description": "The local path to the JSON file to read, relative to the tool's directory.",
            }
        },
        "required": ["filepath"],
    }
    assert template.output_key == "tool_output"
    assert template.imports == ("pydantic", "typing", "json", "argparse", "pathlib", "sys", "os")
    assert codes(template) == []


def test_the_user_parameters_of_the_specification_are_read():
    user = read(
        "from pydantic import BaseModel\nfrom typing import Optional\n"
        "class UserParameters(BaseModel):\n"
        '    """Configuration parameters set once when the tool is added to a workflow."""\n'
        "    api_key: str                        # Required parameter\n"
        "    endpoint: Optional[str] = None      # Optional parameter with default\n"
    ).user
    assert user.required == ("api_key",)
    assert [(one.name, one.default, one.null_when_absent) for one in user.fields] == [
        ("api_key", UNKNOWN, False), ("endpoint", None, False),
    ]  # fmt: skip
    assert "Configuration" not in str(user.schema)


def test_the_tool_parameters_of_the_specification_are_read():
    schema = tool(
        '    """Arguments passed by an agent each time it invokes this tool."""\n'
        '    query: str = Field(description="The search query to execute")\n'
        '    max_results: int = Field(default=10, description="Maximum number of results")',
        "from pydantic import BaseModel, Field\n",
    ).schema
    assert schema == {
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "The search query to execute"},
            "max_results": {"type": "integer", "description": "Maximum number of results", "default": 10},
        },
        "required": ["query"],
    }


@pytest.mark.parametrize(
    ("field", "required", "null"),
    [
        ("x: int", True, False),
        ("x: int = 3", False, False),
        ("x: int = None", False, False),
        ("x: int = Field(description='d')", True, False),
        ("x: int = Field(...)", True, False),
        ("x: int = Field(..., description='d')", True, False),
        ("x: int = Field(3)", False, False),
        ("x: int = Field(default=3)", False, False),
        ("x: int = Field(default_factory=make)", False, False),
        ("x: int = Field(default=compute())", False, False),
        ("x: int = compute()", False, False),
        ("x: int = Field(**options)", False, False),
        ("x: Optional[int]", False, True),
        ("x: int | None", False, True),
        ("x: Union[None, int]", False, True),
        ("x: Optional[int] = Field(description='d')", False, True),
        ("x: Optional[int] = None", False, False),
        ("x: Annotated[Optional[int], Field(default=None)]", False, False),
        ("x: Any", True, False),
        ("x: Optional[Any]", False, True),
        ("x: Literal['a', None]", True, False),
    ],
)
def test_required_is_what_has_no_default_and_may_not_be_none(field, required, null):
    parameters = tool(f"    {field}")
    assert parameters.required == (("x",) if required else ())
    assert parameters.null_when_absent == (("x",) if null else ())
    assert parameters.sent({}) == ({"x": None} if null else {})


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("3", 3), ("-2.5", -2.5), ("'a' 'b'", "ab"), ("['a', 1]", ["a", 1]), ("{'k': None}", {"k": None}),
        ("(1, 2)", [1, 2]),
        ("LIMIT", 20), ("LIMIT + 1", 21), ("f'{LIMIT} rows'", "20 rows"), ("dedent('  x')", "x"), ("Color.RED", "red"),
        ("Color.RED.value", "red"), ("list()", []), ("TWICE", UNKNOWN), ("os.environ['X']", UNKNOWN),
        ("1e999", UNKNOWN),
        ("b'x'", UNKNOWN), ("'\\ud800'", UNKNOWN), ("2 ** 9999999", UNKNOWN), ("LOOP", UNKNOWN), ("{1: 2}", UNKNOWN),
    ],
)  # fmt: skip
def test_a_default_is_shown_where_it_is_a_constant(written, expected):
    before = HEAD + (
        "from textwrap import dedent\nimport enum\nLIMIT = 10 * 2\nTWICE = 1\nTWICE = 2\nLOOP = LOOP\n"
        "class Color(enum.Enum):\n    RED = 'red'\n"
    )
    for field in (
        f"x: Any = {written}",
        f"x: Any = Field({written})",
        f"x: Any = Field(default_factory=lambda: {written})",
    ):
        (one,) = tool(f"    {field}", before).fields
        assert one.default == expected and not one.required
        assert one.schema == ({} if expected is UNKNOWN else {"default": expected})


def test_an_alias_is_the_name_under_which_a_field_is_sent():
    parameters = tool(
        "    first: int = Field(alias='a')\n"
        "    second: int = Field(validation_alias=AliasChoices('b', 'c'), alias='z')\n"
        "    third: Optional[int] = Field(alias='d')\n    plain: int"
    )
    assert parameters.renamed == {"first": "a", "second": "b", "third": "d"}
    assert parameters.required == ("a", "b", "plain")
    assert parameters.sent({"first": 1, "b": 2, "plain": 3}) == {"a": 1, "b": 2, "plain": 3, "d": None}


def test_an_alias_that_is_computed_requires_nothing():
    for body, words in (
        ("    first: int = Field(alias=name())", ""),
        ("    first: int", ", alias_generator=to_camel"),
        ("    first: int = Field(validation_alias=AliasPath('a', 0))", ""),
    ):
        parameters = tool(body, bases=f"BaseModel{words}, extra='ignore'")
        assert parameters.required == () and not parameters.fields[0].is_known
    assert tool("    first: int", bases="BaseModel, alias_generator=x, populate_by_name=True").required == ("first",)


@pytest.mark.parametrize(
    ("body", "bases", "forbids"),
    [
        ("    x: int", "BaseModel", False),
        ("    x: int", "BaseModel, extra='forbid'", True),
        ("    model_config = ConfigDict(extra='forbid')", "BaseModel", True),
        ("    model_config = {'extra': 'forbid'}", "BaseModel", True),
        ("    model_config = ConfigDict(extra='allow')", "BaseModel", False),
        ("    model_config = ConfigDict(extra=compute())", "BaseModel", False),
        ("    class Config:\n        extra = Extra.forbid", "BaseModel", True),
        ("    x: int", "Strict", True),
        ("    model_config = ConfigDict(extra='ignore')", "Strict", False),
        ("    model_config = ConfigDict(extra='forbid')", "Elsewhere, BaseModel", False),
    ],
)
def test_what_is_not_named_is_refused_where_the_class_forbids_it(body, bases, forbids):
    before = HEAD + "class Strict(BaseModel):\n    model_config = ConfigDict(extra='forbid')\n"
    assert (tool(body, before, bases).schema.get("additionalProperties") is False) is forbids


def test_what_is_no_field_is_left_out():
    parameters = tool(
        "    model_config: ConfigDict = {}\n    kind: ClassVar[str] = 'x'\n    other: 'ClassVar' = 2\n"
        "    fixed: Final[int] = 3\n"
        "    _private: int = 4\n    x: int\n    @field_validator('x')\n    def check(cls, value): return value\n"
        "    @property\n    def y(self) -> int: return 5\n    class Inner(BaseModel):\n        z: int"
    )
    assert [one.name for one in parameters.fields] == ["x"]


def test_fields_of_bases_come_first_and_are_replaced():
    before = HEAD + (
        "class A(BaseModel):\n    a: int\n    b: int\nclass B(A):\n    b: str = 'b'\n    c: int\n"
        "class Mixin(BaseModel):\n    m: int = 1\n"
    )
    parameters = tool("    c: float\n    d: int\n    d = 4", before, "B, Mixin")
    assert {one.name: one.schema for one in parameters.fields} == {
        "m": {"type": "integer", "default": 1}, "a": {"type": "integer"}, "b": {"type": "string", "default": "b"},
        "c": {"type": "number"}, "d": {"type": "integer", "default": 4},
    }  # fmt: skip
    assert parameters.required == ("a", "c")


def test_a_base_with_arguments_brings_its_fields():
    before = HEAD + "T = TypeVar('T')\nclass Base(BaseModel, Generic[T], extra='forbid'):\n    held: T\n    size: int\n"
    parameters = tool("    more: int = 1", before, "Base[int]")
    assert parameters.required == ("held", "size")
    assert parameters.schema["additionalProperties"] is False
    assert [one.name for one in parameters.fields if not one.is_known] == ["held"]


def test_a_model_that_contains_itself_is_referred_to():
    parameters = tool(
        "    root: Node\n    same: Optional[ToolParameters] = None",
        HEAD + "class Node(BaseModel):\n    value: int\n    inner: Optional['Node']\n",
    )
    validator = Validator(parameters.schema)
    assert set(parameters.schema["$defs"]) == {"Node", "ToolParameters"}
    assert validator.is_valid({"root": {"value": 1, "inner": {"value": 2, "inner": None}}})
    assert not validator.is_valid({"root": {"value": 1, "inner": {"value": 2}}})
    assert not validator.is_valid({"root": {"value": 1, "inner": {"value": "x", "inner": None}}})


def test_both_classes_have_the_models_that_they_share():
    template = read(
        HEAD + "class Node(BaseModel):\n    v: int\nclass UserParameters(BaseModel):\n    n: Node\n"
        "class ToolParameters(BaseModel):\n    n: List[Node]\n"
    )
    assert template.user.schema["$defs"] == template.tool.schema["$defs"] != {}


def test_a_class_inside_the_class_is_meant_before_others():
    parameters = tool(
        "    class Kind(str, Enum):\n        A = 'a'\n    kind: Kind",
        HEAD + "from enum import Enum\nclass Kind(Enum):\n    B = 'b'\n",
    )
    assert parameters.schema["properties"]["kind"] == {"type": "string", "enum": ["a"]}


def test_a_text_below_a_field_describes_it_only_where_pydantic_says_so():
    body = "    x: int\n    '''what x is'''"
    assert tool(body).fields[0].description == ""
    assert tool(body, bases="BaseModel, use_attribute_docstrings=True").fields[0].description == "what x is"


def test_a_title_describes_where_nothing_else_does_and_is_no_title():
    parameters = tool("    x: int = Field(title='T')\n    y: int = Field(title='T', description='D')")
    assert [one.schema for one in parameters.fields] == [
        {"type": "integer", "description": "T"}, {"type": "integer", "description": "D"},
    ]  # fmt: skip


@pytest.mark.parametrize(
    "head",
    [
        "from __future__ import annotations\nimport typing as t\nimport pydantic as p\nO, B, F = 1, 2, 3\n",
        "import typing_extensions as t\nfrom pydantic.main import BaseModel as X\nimport pydantic as p\n",
        "try:\n    import typing as t\nexcept ImportError:\n    t = None\nimport pydantic as p\n",
        "import typing\nt = 5\nimport typing as t\nimport pydantic\nimport pydantic as p\n",
    ],
)
def test_names_are_followed_to_where_they_come_from(head):
    source = (
        head + "class ToolParameters(p.BaseModel):\n    x: t.Optional[t.List[int]] = p.Field(None, description='d')\n"
    )
    template = read(source)
    assert template.tool.fields[0].schema == {
        "anyOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "null"}],
        "description": "d", "default": None,
    }  # fmt: skip
    assert "studio-base" not in codes(template)


def test_a_name_that_is_something_else_is_not_taken_for_a_type():
    assert tool("    x: List[int]", HEAD + "def List(): pass\n").schema["properties"]["x"] == {}
    assert tool("    x: int", HEAD + "from mine import int\n").schema["properties"]["x"] == {}


@pytest.mark.parametrize(
    ("source", "key"),
    [
        ("OUTPUT_KEY = 'a'", "a"), ("OUTPUT_KEY: str = 'a'", "a"), ("OUTPUT_KEY = 'a'\nOUTPUT_KEY = 'b'", "b"),
        ("", None), ("OUTPUT_KEY = 5", None), ("OUTPUT_KEY = ''", None), ("OUTPUT_KEY = compute()", None),
        ("KEY = OUTPUT_KEY = 'a'", "a"),
        ("OUTPUT_KEY = 'a'\nOUTPUT_KEY = compute()", None), ("OUTPUT_KEY, B = 'a', 'b'", None),
        ("if x:\n    OUTPUT_KEY = 'a'", None), ("if __name__ == '__main__':\n    OUTPUT_KEY = 'm'", "m"),
        ("def f():\n    OUTPUT_KEY = 'a'", None), ("OUTPUT_KEY = 'a'\nOUTPUT_KEY += 'b'", None),
        ("B = 'b'\nOUTPUT_KEY = B", "b"),
    ],
)  # fmt: skip
def test_the_output_key_is_the_last_constant(source, key):
    assert read(source).output_key == key


def test_imports_are_those_that_happen_when_the_file_is_imported():
    source = (
        "from __future__ import annotations\nimport a, b.c as d\nfrom e.f import g\nfrom . import h\nfrom .i import j\n"
        "try:\n    import k\nexcept ImportError:\n    import l\nif x:\n    import m\nelse:\n    import n\n"
        "if TYPE_CHECKING:\n    import never\nif typing.TYPE_CHECKING:\n    import never\nelse:\n    import o\n"
        "def f():\n    import never\nwith q:\n    import p\nif __name__ == '__main__':\n    import never\nimport a\n"
    )
    assert read(source).imports == ("a", "b.c", "e.f", "k", "l", "m", "n", "o", "p")


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (("class UserParameters(", "class Config("), "studio-user-parameters"),
        (("class ToolParameters(", "class Arguments("), "studio-tool-parameters"),
        (("UserParameters(BaseModel)", "UserParameters(object)"), "studio-base"),
        (("def run_tool", "def main"), "studio-run-tool"),
        (('if __name__ == "__main__":', "if True:"), "studio-main"),
    ],
)
def test_a_part_that_is_missing_is_a_breach(change, code):
    assert change[0] in COMPLETE
    template = read(COMPLETE.replace(*change))
    assert code in [problem.code for problem in template.breaches]


def test_a_module_without_anything_is_a_template_with_every_breach():
    assert isinstance(template := read_template(b""), Template)
    assert [problem.code for problem in template.breaches] == [
        "studio-user-parameters", "studio-tool-parameters", "studio-run-tool", "studio-main",
    ]  # fmt: skip


def test_reading_needs_neither_pydantic_nor_a_validator():
    import subprocess
    import sys

    program = (
        "import sys\nfrom haft.sources.agent_studio.template_reader import read_template\n"
        f"read_template({COMPLETE.encode()!r})\n"
        "print([name for name in ('pydantic', 'jsonschema_rs', 'asyncio') if name in sys.modules])"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert said.stdout == "[]\n"


def test_the_line_of_a_problem_is_said():
    problem = read_template(b"x = 1\n\ndef f(:\n")
    assert isinstance(problem, Problem)
    assert (problem.code, problem.line) == ("python-parse", 3)
    assert "not valid Python" in problem.message
