"""Functions with `@tool`, by their source."""

import ast

import pytest

from haft.authoring.check import targets_of
from haft.sources.python.check import check_python
from haft.sources.python.parsed_source import functions

GOOD = '''from typing import Annotated
from haft import ToolContext, tool
from pydantic import Field


@tool(readonly=True)
def add(a: int, context: ToolContext, b: Annotated[int, Field(description="the other")] = 0) -> int:
    """Add two integers. Use it for exact sums.

    Args:
        a: the first
    """
    return a + b
'''


def found(tmp_path, source):
    (tmp_path / "tools.py").write_text(source)
    return check_python(str(tmp_path / "tools.py"), {"json"})


def test_the_good_one_has_nothing_against_it(tmp_path):
    (report,) = found(tmp_path, GOOD)
    assert (report.kind, report.name, list(report.findings)) == ("python", "add", [])


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("Add two integers. Use it for exact sums.", "Adds", "vague-description"),
        ("        a: the first\n", "", "parameter-undescribed"),
        ("a: int,", "a,", "no-type"),
        ("a: int,", "json: int,", "parameter-hidden"),
        ("a: int,", "a: int, *rest: int,", "variable-arguments"),
        ("readonly=True", "name='a b'", "bad-name"),
        ("exact sums", "exact\u200b sums", "hidden-characters"),
        ("return a + b", "return a +", "python-parse"),
        ('"""Add', 'x = """Add', "no-description"),
    ],
)
def test_a_fault_has_a_code_and_a_line(tmp_path, old, new, expected):
    assert old in GOOD
    (report,) = found(tmp_path, GOOD.replace(old, new))
    lines = [finding.line for finding in report.findings if finding.code == expected]
    assert lines and all(lines), report.findings


def test_what_the_decorator_says_counts(tmp_path):
    said = "name='sum', description='Add two integers. Use it for exact sums.'"
    (report,) = found(tmp_path, GOOD.replace("Add two integers.", "").replace("readonly=True", said))
    assert (report.name, list(report.findings)) == ("sum", [])


def test_each_function_is_a_tool_of_its_own(tmp_path):
    more = '\n\nclass Box:\n    @tool\n    def take(self, what: str):\n        """Take"""\n\n\ndef plain(x): ...\n'
    reports = found(tmp_path, GOOD + more)
    assert [report.name for report in reports] == ["add", "take"]
    assert reports[1].has("vague-description") and "`self`" not in str(reports[1].findings)


def test_an_annotation_nested_without_end_is_no_trouble(tmp_path):
    (report,) = found(tmp_path, GOOD.replace("a: int", "a: " + "int | " * 2000 + "int"))
    assert report.name == "add" or report.has("python-parse")


def test_nothing_is_imported(tmp_path):
    found(tmp_path, GOOD + f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("source", "words"), [("0\n" * 100_001, "more than 200_000 bytes"), (f"f'{'{a}' * 7_000}'", "a line of more than")]
)
def test_what_takes_python_long_is_not_parsed(tmp_path, source, words):
    (report,) = found(tmp_path, source)
    assert [finding.code for finding in report.findings] == ["python-parse"] and words in report.findings[0].message


def test_a_file_is_parsed_once(tmp_path, monkeypatch, sources):
    parsed = []
    parse = ast.parse
    monkeypatch.setattr(ast, "parse", lambda source: parsed.append(source) or parse(source))
    (tmp_path / "tools.py").write_text(GOOD + f"# {tmp_path}\n")
    (target,) = targets_of(sources, str(tmp_path / "tools.py"))
    assert target.format == "python" and check_python(target.path)[0].name == "add"
    assert len(parsed) == 1


def test_functions_come_in_the_order_in_which_they_stand():
    source = "def a(): 0\nclass B:\n def b(): 0\n def c(): 0\nif x:\n def d(): 0\nelse:\n def e(): 0\ndef f(): 0\n"
    assert "".join(function.name for function in functions(ast.parse(source))) == "abcdef"


@pytest.mark.parametrize(
    ("annotation", "needs_description"),
    [
        ("Context", False),
        ("haft.Context | None", False),
        ('"Context"', False),
        ('"ToolContext | None"', False),
        ("str", True),
        ('Literal["Context"]', True),
        ('"not Python"', True),
    ],
)
def test_a_context_needs_no_description(tmp_path, annotation, needs_description):
    source = GOOD.replace("context: ToolContext", f"context: {annotation}")
    (report,) = found(tmp_path, source)
    assert [each.code for each in report.findings] == ["parameter-undescribed"] * needs_description
