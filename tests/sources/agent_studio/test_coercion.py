"""Texts that stand for other values: what haft makes of them is what pydantic makes of them."""

import json
import sys
from decimal import Decimal
from pathlib import Path

import pytest
from pydantic import ValidationError

from haft.schema import Validator
from haft.sources.agent_studio.coercion import coerce_arguments

sys.path.insert(0, str(Path(__file__).parent))
from pydantic_oracle import executed, of_fields, tool_of

TEXTS = [
    "5", " 5 ", "+5", "-5", "5.0", "5.00", "5.5", "1_000", "1__0", "_5", "5_", "1e3", "0x10", "٣", "", "007", "5.",
    ".5", "--5", "9" * 30, "\n5\n", "5.0_0", "1.5", "-1.5", "1e5", "1E-2", "+1.5", "1_0.5", " 1.5 ", "0x1p3", "1.2.3",
    "e5", "true", "True", "TRUE", "tRue", "t", "yes", "y", "Y", "on", "ON", "1", "false", "f", "no", "n", "off", "0",
    " true", "1.0", "truth", "2024-01-01", "2024-01-01T00:00:00", "abc", "null", "None",
]  # fmt: skip
BEFORE = """
class Inner(BaseModel):
    size: int
    more: List["Inner"] = []

class Level(IntEnum):
    LOW = 1
    HIGH = 5
"""
TYPES = [
    "int", "float", "bool", "str", "Optional[int]", "Optional[bool]", "Union[int, str]", "Union[str, int]",
    "Union[int, bool]", "Union[bool, int]", "Union[float, int]", "Union[int, float]", "Union[int, List[int]]",
    "PositiveInt", "Level", "Any", "datetime.date", "decimal.Decimal", 'Literal["5", "true"]',
    'Union[Literal["5"], int]',
    "Annotated[int, Field(ge=3)]", "List[int]", "Dict[str, float]", "Tuple[int, bool]", "Set[int]", "Inner",
    "Optional[Inner]", "List[Inner]", "Union[bool, decimal.Decimal]",
    "Union[int, pathlib.Path]", "Union[pathlib.Path, int]", "Optional[decimal.Decimal]",
]  # fmt: skip
WRAPPED = {
    "List[int]": lambda text: [3, text],
    "Set[int]": lambda text: [3, text],
    "Dict[str, float]": lambda text: {"key": text},
    "Tuple[int, bool]": lambda text: [text, text],
    "Inner": lambda text: {"size": text, "more": [{"size": text}]},
    "Optional[Inner]": lambda text: {"size": text},
    "List[Inner]": lambda text: [{"size": text}],
}


@pytest.mark.parametrize("written", TYPES)
def test_what_pydantic_would_convert_passes_and_means_the_same(written):
    body = of_fields(f"x: {written}", before=BEFORE)
    made, (parameters, _validator) = executed(body), tool_of(body)
    validator, passed = Validator(parameters.schema), 0
    for text in TEXTS:
        given = {"x": WRAPPED.get(written, lambda text: text)(text)}
        try:
            truth = made(**given)
        except ValidationError:
            continue
        meant = coerce_arguments(given, parameters.schema)
        if "Decimal" in written and not text.isascii():
            continue
        assert validator.is_valid(meant), (text, meant, parameters.schema)
        assert made(**json.loads(json.dumps(meant))) == truth, (text, meant)
        passed += 1
    assert passed, "pydantic takes some of them"


@pytest.mark.parametrize("written", ["int", "float", "bool", "Optional[int]"])
def test_what_pydantic_would_not_convert_is_refused(written):
    body = of_fields(f"x: {written}")
    made, (parameters, validator) = executed(body), tool_of(body)
    refused = []
    for text in TEXTS:
        try:
            made(x=text)
        except ValidationError:
            refused.append(text)
            assert not validator.is_valid(coerce_arguments({"x": text}, parameters.schema)), text
    assert "abc" in refused


@pytest.mark.parametrize("written", [
    "decimal.Decimal", "Optional[decimal.Decimal]", "Union[bool, decimal.Decimal]", "Union[decimal.Decimal, int]",
    "condecimal(ge=0)", "ByteSize", "Union[ByteSize, bool]", "List[decimal.Decimal]", "Union[datetime.date, bool]",
    "Union[datetime.timedelta, float]", "Union[uuid.UUID, int]", "Union[IPvAnyAddress, bool]",
])  # fmt: skip
def test_no_text_passes_that_the_template_would_see_as_a_number_or_a_truth_value(written):
    body = of_fields(f"x: {written}")
    made, (parameters, validator) = executed(body), tool_of(body)
    wrapped = (lambda text: [text]) if written.startswith("List") else (lambda text: text)
    for text in [*TEXTS, "1000", "1000.0000000000000001", "1kb", "-0", "1.50"]:
        meant = coerce_arguments({"x": wrapped(text)}, parameters.schema)
        if not validator.is_valid(meant):
            continue
        try:
            value, seen = meant["x"], made(**json.loads(json.dumps(meant))).x
        except ValidationError:
            continue
        value, seen = (value[0], seen[0]) if isinstance(value, list) else (value, seen)
        assert not (isinstance(value, str) and isinstance(seen, (bool, int, float, Decimal))), (text, value, seen)


@pytest.mark.parametrize(("text", "number"), [("1000", 1000), ("1e3", 1000), ("0.10", 0.1), (" 12.5 ", 12.5)])
def test_a_decimal_text_is_the_number_that_it_stands_for(text, number):
    schema = tool_of(of_fields("x: decimal.Decimal"))[0].schema
    assert coerce_arguments({"x": text}, schema) == {"x": number}


def test_what_is_no_text_and_what_is_not_declared_stays_as_it_is():
    schema = tool_of(of_fields("x: int", "y: bool = True"))[0].schema
    given = {"x": 5.5, "y": None, "z": "5", "w": {"x": "5"}}
    assert coerce_arguments(given, schema) == given
    assert coerce_arguments({"x": [["5"]]}, schema) == {"x": [["5"]]}
