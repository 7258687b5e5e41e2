"""Any class over the supported types: the schema and pydantic agree on any value."""

import json
import sys
import typing
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from haft.sources.agent_studio.template import UNKNOWN

sys.path.insert(0, str(Path(__file__).parent))
from pydantic_oracle import executed, of_fields, takes, tool_of

# Neither 0 nor 1: for Python these are False and True, for JSON they are not.
WHOLE = st.integers(2, 40) | st.integers(-40, -2)
FRACTION = st.sampled_from([-7.5, -2.25, 2.5, 3.0, 19.75])
TEXT = st.text("abcxyzé 9", max_size=6)
LEAVES = st.none() | st.booleans() | WHOLE | FRACTION | TEXT
ANY = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3, unique_by=json.dumps) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
CLASSES = """
class Color(str, Enum):
    RED = "red"
    BLUE = "blue"

class Inner(BaseModel):
    size: int
    note: Optional[str]
    more: List["Inner"] = []

class Base(BaseModel):
    model_config = ConfigDict(extra="forbid")
    zero: Optional[int]
    one: int = 3

def compute():
    return 3
"""
INNER = st.fixed_dictionaries(
    {"size": WHOLE, "note": st.none() | TEXT}, optional={"more": st.just([{"size": 2, "note": None}])}
)
SIMPLE = [
    ("str", TEXT), ("int", WHOLE), ("float", WHOLE | FRACTION), ("bool", st.booleans()), ("Any", ANY),
    ("Dict", st.dictionaries(TEXT, ANY, max_size=2)), ("list", st.lists(ANY, max_size=2)), ("Color", st.just("red")),
    ("Inner", INNER), ('Literal["a", "b", None]', st.sampled_from(["a", "b", None])),
    ("Literal[True, 7]", st.sampled_from([True, 7])), ("'int'", WHOLE),
    ("Set[str]", st.lists(TEXT, unique=True, max_size=3)),
]  # fmt: skip


def wrapped(inner):
    """Types around a type, with values that they take."""
    return st.one_of(
        inner.map(lambda one: (f"List[{one[0]}]", st.lists(one[1], max_size=3))),
        inner.map(lambda one: (f"Dict[str, {one[0]}]", st.dictionaries(TEXT, one[1], max_size=3))),
        inner.map(lambda one: (f"Optional[{one[0]}]", st.none() | one[1])),
        inner.map(lambda one: (f"t.Union[None, {one[0]}]", st.none() | one[1])),
        inner.map(lambda one: (f"Annotated[{one[0]}, 'a note']", one[1])),
        st.tuples(inner, inner).map(lambda two: (f"Union[{two[0][0]}, {two[1][0]}]", two[0][1] | two[1][1])),
        st.tuples(inner, inner).map(
            lambda two: (f"Tuple[{two[0][0]}, {two[1][0]}]", st.tuples(two[0][1], two[1][1]).map(list))
        ),
    )  # fmt: skip


TYPES = st.recursive(st.sampled_from(SIMPLE), wrapped, max_leaves=4)
LIMITED = st.sampled_from(
    [
        ("int", "ge=3, lt=30", WHOLE),
        ("Optional[float]", "gt=-5, le=20.5", st.none() | FRACTION),
        ("str", "min_length=2, max_length=4", TEXT),
        ("str", 'pattern="^[a-z]*$"', TEXT),
        ("List[int]", "min_length=1, max_length=2", st.lists(WHOLE, max_size=3)),
        ("Dict[str, str]", "max_length=1", st.dictionaries(TEXT, TEXT, max_size=2)),
        ("int", "multiple_of=4", WHOLE),
    ]
)
DEFAULTS = st.sampled_from(
    ["", " = None", " = 5", " = 'x'", " = ['a', -2]", " = ...", " = Field(...)", " = Field(description='told')",
     " = Field(7, description='told', examples=[7])", " = Field(default=None, title='T')",
     " = Field(default_factory=list)", " = F(default_factory=lambda: {'k': 2})", " = Field(default=compute())",
     " = Field(alias='other_{name}')", " = Field(validation_alias='second_{name}', alias='x', default='d')"]
)  # fmt: skip


@st.composite
def classes(draw):
    """The source of a class, and values that it may be called with."""
    fields, values = [], {}
    for name in draw(st.lists(st.sampled_from(["one", "two", "three", "four"]), unique=True, max_size=4)):
        if draw(st.booleans()):
            written, limits, held = draw(LIMITED)
            described = draw(st.sampled_from(["", ", description='told'", ", default=None"]))
            fields.append(f"{name}: {written} = Field({limits}{described})")
        else:
            written, held = draw(TYPES)
            fields.append(f"{name}: {written}{draw(DEFAULTS).replace('{name}', name)}")
        values[name] = held
    bases = draw(st.sampled_from(["BaseModel", "Model, extra='forbid'", "pydantic.BaseModel", "Base"]))
    return of_fields(*fields, before=CLASSES, bases=bases), values


@settings(max_examples=150)
@given(classes(), st.data())
def test_the_schema_takes_what_the_class_takes(written, data):
    body, values = written
    made, (parameters, validator) = executed(body), tool_of(body)
    keys = {field.name: field.key for field in parameters.fields}
    call = {}
    for name, held in values.items():
        if data.draw(st.integers(0, 5)):
            call[keys[name]] = data.draw(held if data.draw(st.integers(0, 3)) else ANY)
    if data.draw(st.integers(0, 5)) == 0:
        call["unheard"] = 5
    if validator.is_valid(call):
        assert takes(made, parameters.sent(call)), (call, parameters.schema)
    else:
        assert not takes(made, call, strictly=True), (call, parameters.schema)


@settings(max_examples=100)
@given(classes())
def test_what_is_known_of_the_fields_is_what_pydantic_knows(written):
    body, _values = written
    made, (parameters, _validator) = executed(body), tool_of(body)
    truth = made.model_fields
    assert [field.name for field in parameters.fields] == list(truth)
    for field in parameters.fields:
        real = truth[field.name]
        may_be_none = type(None) in typing.get_args(real.annotation)
        assert field.required is (real.is_required() and not may_be_none)
        assert field.null_when_absent is (real.is_required() and may_be_none)
        assert field.key == (real.validation_alias or real.alias or field.name)
        assert field.description in (real.description or real.title or "", "a note")
        if field.default is not UNKNOWN:
            assert field.default == real.get_default(call_default_factory=True)
    assert set(parameters.required) == {field.key for field in parameters.fields if field.required}
