"""Types as templates write them: what the schema takes is what pydantic takes."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from pydantic_oracle import executed, of_fields, read, takes, tool_of

ENUMS = """
class Color(str, Enum):
    RED = "red"
    BLUE = "blue"

class Level(IntEnum):
    LOW = 2
    HIGH = 3

class Word(StrEnum):
    FIRST = auto()
    SECOND = "2nd"

class Point(BaseModel):
    x: float
    y: Optional[float]
    label: str = "p"

class Tree(BaseModel):
    value: int
    children: List["Tree"] = []

class Tags(RootModel[List[str]]):
    pass

Mode = Literal["fast", "slow"]
Maybe = Optional[int]
"""

STRANGE = [None, True, False, 5, -7, 2.5, "", "word", "red", [], ["a"], [5], [[2.5, 3]], {}, {"a": "b"}, {"a": 5},
           {"x": 2.5, "y": None}, {"x": 2}, {"value": 3, "children": [{"value": 4}]}, [5, "a"], [{"a": "b"}],
           "fast", "first", "2nd", 2, 3, [5, 6], [True], {"fast": 5}, {"a": [5]}]  # fmt: skip

TYPES = [
    "str", "int", "float", "bool", "Any", "object", "list", "dict", "set", "tuple", "List", "Dict", "Set", "Tuple",
    "List[str]", "list[int]", "List[float]", "List[bool]", "List[Any]", "Dict[str, Any]", "Dict[str, str]",
    "dict[str, int]", "List[Dict[str, str]]", "List[List[float]]", "Optional[Any]", "Optional[str]",
    "Optional[List[str]]", "Optional[Dict[str, Any]]", "Union[int, str]", "Union[str, None]", "int | None",
    "None | int | str", "Union[List[int], Dict[str, int]]", "Set[str]", "FrozenSet[int]", "Tuple[int, str]",
    "Tuple[int, ...]", "tuple[()]", "Sequence[int]", "Mapping[str, int]", "Deque[int]", "DefaultDict[str, int]",
    "Dict[str, List[int]]", 'Literal["fast", "slow"]', 'Literal["a", 5]', "Literal[True, None]", "Literal[False]",
    'Literal["a", None]', "Literal[2, 3]", 'Literal[Mode, "third"]', "Dict[Literal['a', 'b'], int]", "Color", "Level",
    "Word", "List[Color]", "Optional[Color]", "Literal[Color.RED]", "Point", "List[Point]", "Optional[Point]",
    "Dict[str, Point]", "Tree", "Optional[Tree]", "Tags", "Mode", "Maybe", "List[Maybe]", "None", "t.List[t.Any]",
    "typing.Optional[typing.Dict]", "'int'", "'Optional[int]'", "'List[Tree]'", "List['Point']",
    "Annotated[int, Field(ge=3)]", "Annotated[List[int], Field(max_length=1)]", "List[Annotated[int, Field(gt=5)]]",
    "Annotated[Optional[int], Field(lt=5)]", "Annotated[str, StringConstraints(min_length=2)]", "constr(min_length=4)",
    "conint(gt=2, le=5)", "confloat(ge=2.5)", "conlist(int, min_length=2)", "PositiveInt", "NonNegativeInt",
    "NegativeInt", "PositiveFloat", "StrictStr", "StrictBool", "pydantic.SecretStr",
    "collections.OrderedDict[str, int]",
    "typing.Text", "Hashable", "Counter[str]", "Json", "List[Union[int, None, str]]",
]  # fmt: skip


@pytest.mark.parametrize("written", TYPES)
def test_a_type_takes_what_pydantic_takes(written):
    body = of_fields(f"field: {written}", before=ENUMS)
    made, (parameters, validator) = executed(body), tool_of(body)
    (field,) = parameters.fields
    assert field.is_known, written
    for value in STRANGE:
        if not is_two_things(written, value):
            accepted = validator.is_valid({"field": value})
            if accepted:
                assert takes(made, {"field": value}), f"{value!r} is taken by {field.schema}"
            elif takes(made, {"field": value}, strictly=True):
                raise AssertionError(f"{value!r} is refused by {field.schema}")
    expected = set() if "None" in written or "Optional" in written or written == "Maybe" else {"field"}
    if written not in ("None", "Literal[True, None]", 'Literal["a", None]', "List[Union[int, None, str]]"):
        assert set(parameters.required) == expected


def is_two_things(written, value):
    """Where pydantic reads a value in a way that JSON has no word for: text that is JSON, a hash of a list."""
    return written in ("Json", "Hashable") or (written in ("set", "Set") and value == [[2.5, 3]]) or (
        written in ("set", "Set") and value == [{"a": "b"}]
    )  # fmt: skip


@pytest.mark.parametrize(
    ("written", "form"),
    [
        ("datetime.date", "date"), ("datetime.datetime", "date-time"), ("datetime.time", "time"),
        ("datetime.timedelta", "duration"), ("uuid.UUID", "uuid"), ("pathlib.Path", "path"), ("HttpUrl", "uri"),
        ("AnyUrl", "uri"), ("PostgresDsn", "uri"), ("EmailStr", "email"), ("SecretStr", "password"),
        ("pydantic.UUID4", "uuid"), ("ipaddress.IPv4Address", "ipv4"), ("bytes", "binary"), ("FilePath", "file-path"),
        ("AwareDatetime", "date-time"), ("re.Pattern", "regex"), ("Pattern[str]", "regex"),
    ],
)  # fmt: skip
def test_what_json_has_no_type_for_is_a_string_with_a_format(written, form):
    schema = read(of_fields(f"field: {written}")).tool.schema
    assert schema["properties"]["field"] == {"type": "string", "format": form}


@pytest.mark.parametrize(
    "written",
    ["Foreign", "numpy.ndarray", "Callable[[int], str]", "Type[int]", "List", "Generic[T]", "unknown()", "f'int'", "3",
     "'not a type ('", "Optional[Foreign]", "Literal[compute()]", "(int, str)", "lambda: int", "Flags", "Broken"],
)  # fmt: skip
def test_what_is_not_understood_refuses_nothing_and_is_said(written):
    head = "from pydantic import BaseModel, Field\nfrom typing import *\nimport enum\nfrom shapes import List\n"
    classes = "class Flags(enum.Flag):\n    A = 1\nclass Broken(enum.Enum):\n    A = object()\n"
    parameters = read(of_fields(f'field: {written} = Field(description="what")', before=classes), head).tool
    assert parameters.schema["properties"] == {"field": {"description": "what"}}
    assert not parameters.fields[0].is_known


def test_only_the_part_that_is_not_understood_is_open():
    parameters = read(of_fields("field: Dict[str, List[Foreign]]")).tool
    assert parameters.schema["properties"]["field"] == {"type": "object", "additionalProperties": {"type": "array"}}
    assert not parameters.fields[0].is_known


@pytest.mark.parametrize(
    ("field", "good", "bad"),
    [
        ("field: int = Field(ge=2, le=4)", [2, 4], [1, 5]),
        ("field: float = F(gt=2, lt=4)", [2.5], [2, 4]),
        ("field: int = Field(multiple_of=3)", [6], [7]),
        ("field: str = Field(min_length=2, max_length=3)", ["ab"], ["a", "abcd"]),
        ('field: str = Field(pattern="^[a-z]+$")', ["abc"], ["A", ""]),
        ('field: Optional[str] = Field(None, pattern=r"^\\d{2,3}$")', ["12", None], ["1", "1234"]),
        ("field: List[int] = Field(min_length=1, max_length=2)", [[5]], [[], [5, 6, 7]]),
        ("field: Dict[str, int] = Field(min_length=1)", [{"a": 5}], [{}]),
        ("field: Optional[int] = Field(default=None, ge=2)", [None, 3], [1]),
        ("field: Annotated[int, Field(ge=2)] = Field(ge=4)", [4, 3], [1]),
        ("field: Annotated[int, Field(ge=4)] = Field(ge=2, le=6)", [4], [3, 7]),
        ("field: Annotated[int, Field(ge=4), Field(ge=2)]", [3], [1]),
        ("field: PositiveInt = Field(gt=-5)", [1], [-1]),
        ("field: Union[int, List[int]] = Field(5, description='x')", [5, [5]], ["a"]),
    ],
)
def test_limits_of_a_field_hold_in_the_schema(field, good, bad):
    body = of_fields(field)
    made, (_parameters, validator) = executed(body), tool_of(body)
    for values, expected in ((good, True), (bad, False)):
        for value in values:
            assert validator.is_valid({"field": value}) is takes(made, {"field": value}) is expected


@pytest.mark.parametrize(
    "pattern", [r"(?P<x>a)", r"\Aab\Z", r"[[:alpha:]]", r"(?<=a)b", "a{,3}", "(", "é", "a" * 2000, "a++"]
)
def test_a_pattern_that_others_read_differently_is_left_to_pydantic(pattern):
    schema = read(of_fields(f"field: str = Field(pattern={pattern!r})")).tool.schema
    assert schema["properties"]["field"] == {"type": "string"}
