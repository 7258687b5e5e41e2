"""Sources of strangers: nothing is run, nothing raises, and what is answered is small."""

import json
import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from haft.schema import Validator, why_too_large
from haft.sources.agent_studio.parse import LONGEST_LINE, MOST_PARSED
from haft.sources.agent_studio.template import Problem, Template
from haft.sources.agent_studio.template_reader import read_template

HEAD = "from typing import *\nfrom pydantic import *\nimport enum\n"


def answer(source):
    """What is said of it, which holds for any bytes."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = read_template(source)
    if isinstance(found, Problem):
        assert found.message and len(found.message) < 1_000 and (found.line is None or found.line >= 1)
        found.message.encode()
    else:
        for parameters in (found.user, found.tool):
            assert why_too_large(parameters.schema) is None
            json.dumps(parameters.schema, allow_nan=False, ensure_ascii=False).encode()
            Validator(parameters.schema)
        found.description.encode()
    return found


def of_type(written, before=""):
    return answer(f"{HEAD}{before}\nclass ToolParameters(BaseModel):\n    x: {written}\n".encode())


def test_nothing_of_a_source_is_run(tmp_path):
    ran = tmp_path / "ran"
    source = f"""
open({str(ran)!r}, "w").write("1")
class Meta(type):
    open({str(ran)!r}, "w").write("2")
class ToolParameters(open({str(ran)!r}, "w")):
    x: open({str(ran)!r}, "w") = open({str(ran)!r}, "w")
    y: "open({str(ran)!r}, 'w')" = Field(default_factory=lambda: open({str(ran)!r}, "w"))
    z: str = f"{{open({str(ran)!r}, 'w')}}"
OUTPUT_KEY = open({str(ran)!r}, "w")
"""
    found = answer(source.encode())
    assert isinstance(found, Template) and [one.name for one in found.tool.fields] == ["x", "y", "z"]
    assert not ran.exists()


@pytest.mark.parametrize(
    "coding", ["utf-7", "utf_7", "unicode_escape", "raw_unicode_escape", "latin-1", "rot13", "no-such"]
)
@pytest.mark.parametrize(
    "place",
    ["# coding: {}\n", "#!/usr/bin/python\n# -*- coding={} -*-\n", "\r# vim: fileencoding={}\r", " \f# coding: {}\n"],
)
def test_a_source_that_python_would_decode_in_another_way_is_refused(coding, place):
    found = answer(place.format(coding).encode() + b"#+AAo-print(1)\n")
    assert isinstance(found, Problem) and found.code == "python-coding"
    assert coding.replace("_", "-") in found.message and found.line in (1, 2)


@pytest.mark.parametrize(
    "first", ["# coding: utf-8\n", "# -*- coding: UTF_8 -*-\n", "# coding: ascii\n", "# coding: utf-8-unix\n"]
)
def test_a_source_that_says_what_it_is_anyway_is_read(first):
    assert isinstance(answer(first.encode() + b"x = 1\n"), Template)


def test_a_coding_is_said_in_the_first_two_lines_only():
    assert isinstance(answer(b"\n\n# coding: utf-7\n"), Template)


def test_ascii_must_be_that():
    assert isinstance(answer("# coding: ascii\n# é\n".encode()), Problem)


def test_a_byte_order_mark_is_no_part_of_the_source():
    assert answer(b'\xef\xbb\xbf"""About."""\n').description == "About."
    assert isinstance(answer(b"\xef\xbb\xbf\xef\xbb\xbfx = 1\n"), Problem)


@pytest.mark.parametrize(
    "source",
    [
        b"\0", b"x = 1\n\0", b"\xff\xfe", b"x = '\xed\xa0\x80'", b"x" * (MOST_PARSED + 1),
        b"x = " + b"1" * LONGEST_LINE,
        b"(" * 5_000, b"[" * 300 + b"]" * 300, b"x = " + b"-" * 9_000 + b"1", b"x = " + b"a|" * 9_000 + b"a",
        b"x = a" + b".a" * 9_000, b"if x: pass\n" + b"elif x: pass\n" * 9_000, b"x = " + b"9" * 9_000, b"def f(:",
    ],
    ids=range(14),
)  # fmt: skip
def test_what_cannot_be_read_is_said(source):
    assert isinstance(answer(source), Problem)


@pytest.mark.parametrize(
    "written",
    [
        "List[" * 90 + "int" + "]" * 90,
        "'" + "List[" * 190 + "int" + "]" * 190 + "'",
        " | ".join(f"Literal[{number}]" for number in range(1_000)),
        "Annotated[" * 60 + "int" + ", Field(ge=1)]" * 60,
        "Union[()]", "Annotated[()]", "Final[()]", "Literal[()]", "Dict[()]", "Optional[int, str]", "Dict[str]",
        "Tuple[...]",
        "List[*Ts]", "Annotated[int, Field(ge='a', le=None, pattern=3, min_length=-1)]",
        "Annotated[int, Field(ge=1e999, lt=-1e999)]", "Literal['\\ud800']",
        "Annotated[str, Field(description='\\ud800')]",
        "Annotated[str, Field(alias='\\ud800')]", "Annotated[str, Field(pattern='(')]", "conlist()",
        "constr(pattern='[')",
        "'\\ud800'", "''", "'x y'", "Literal[1e999]", "Field(default=3)", "Annotated[int, Field(**{'alias': 'y'})]",
        f"Annotated[str, Field(pattern='{'(a{90}){90}'}')]",
    ],
)  # fmt: skip
def test_a_strange_type_has_a_schema_that_holds(written):
    found = of_type(written)
    assert isinstance(found, Template)
    assert [one.name for one in found.tool.fields] == ["x"]


@pytest.mark.parametrize(
    ("before", "written"),
    [
        ("".join(f"T{at} = Dict[str, Union[T{at + 1}, List[T{at + 1}]]]\n" for at in range(60)) + "T60 = int", "T0"),
        ("".join(f"D{at} = [D{at + 1}, D{at + 1}]\n" for at in range(29)) + "D29 = 1", "Any = D0"),
        ("class A(B): pass\nclass B(A): pass", "A"),
        ("".join(f"class C{at}(C{at - 1}):\n    f{at}: int\n" for at in range(500)), "C499"),
        ("class E(enum.Enum):\n    A = E.A", "E"),
        ("class N(BaseModel):\n" + "".join(f"    f{at}: Union[{'N, ' * 150}int]\n" for at in range(90)), "N"),
        ("class M(BaseModel):\n" + "".join(f"    f{at}: Dict[str, List[int]]\n" for at in range(4_000)), "M"),
    ],
)  # fmt: skip
def test_what_unfolds_without_end_is_cut_short(before, written):
    answer(f"{HEAD}{before}\nclass ToolParameters(BaseModel):\n    x: {written}\n".encode())


def test_models_in_a_long_row_are_read():
    row = "".join(f"class C{at}(BaseModel):\n    next: Optional['C{at + 1}'] = None\n" for at in range(300))
    found = of_type("C0", row + "class C300(BaseModel): pass")
    assert isinstance(found, Template) and len(found.tool.schema["$defs"]) == 301


def test_names_that_lead_in_circles_are_unknown():
    for before in ("A = A", "A = B\nB = A", "A = 'A'", "A = List['A']", "class A(RootModel['List[A]']): pass"):
        found = of_type("A", before)
        assert isinstance(found, Template) and not found.tool.fields[0].is_known


WORDS = st.sampled_from(
    [
        "class", "def", "if", "else", "try", "except", "import", "from", "as", "BaseModel", "ToolParameters", "Field",
        "UserParameters", "Optional", "List", "Literal", "Annotated", "Union", "Dict", "Enum", "pydantic", "x",
        "typing", "OUTPUT_KEY", "run_tool", "__name__", "'__main__'", "'x'", "1", "-1", "1.5", "None", "...", "alias",
        "ge", "pattern", "extra", "'forbid'", "(", ")", "[", "]", "{", "}", ",", ":", "=", "|", ".", "+", "*", "**",
        "==", "\n", "\n ", "lambda", "\\", "@", "#", "coding:", "utf-7", "'''",
    ]
)  # fmt: skip


@settings(max_examples=300)
@given(st.lists(WORDS, max_size=60).map(" ".join), st.booleans())
def test_any_words_are_answered(text, in_class):
    answer((f"{HEAD}class ToolParameters(BaseModel):\n    x: {text}\n" if in_class else text).encode())


@settings(max_examples=300)
@given(st.binary(max_size=300), st.sampled_from([b"", b"\xef\xbb\xbf", b"# coding: ", b"x: '"]))
def test_any_bytes_are_answered(content, first):
    answer(first + content)
