"""Agent Studio templates: by their files alone."""

import pytest

from haft.sources.agent_studio.check import check_template

GOOD = '''"""
Read a JSON file of this project. Use it for settings, never for secrets.
"""
from typing import Any, ClassVar, Optional
from pydantic import BaseModel, Field

class UserParameters(BaseModel):
    pass

class ToolParameters(BaseModel):
    kind: ClassVar[str] = "x"
    path: str = Field(description="which file")
    limit: Optional[int] = Field(default=None, description="how many entries")

def run_tool(config: UserParameters, args: ToolParameters) -> Any:
    return args.path

OUTPUT_KEY = "tool_output"

if __name__ == "__main__":
    print(OUTPUT_KEY, run_tool(UserParameters(), ToolParameters(path="x")))
'''


def made(tmp_path, source=GOOD, requirements="requests\npydantic>=2\n", name="settings_file", packing=False):
    folder = tmp_path / name
    folder.mkdir()
    if source is not None:
        (folder / "tool.py").write_bytes(source if isinstance(source, bytes) else source.encode())
    if requirements is not None:
        (folder / "requirements.txt").write_text(requirements)
    return check_template(str(folder), {"json"}, packing=packing)


def without(*texts):
    source = GOOD
    for text in texts:
        assert text in source
        source = source.replace(text, "")
    return source


def test_the_good_one_has_nothing_against_it(tmp_path):
    report = made(tmp_path)
    assert (report.kind, report.name, list(report.findings)) == ("agent-studio", "settings file", [])


@pytest.mark.parametrize(
    ("change", "expected", "ok"),
    [
        ({"source": None}, "studio-structure", False),
        ({"requirements": None}, "studio-structure", False),
        ({"source": "def x(:\n"}, "python-parse", False),
        ({"source": GOOD.replace("class UserParameters", "class Config")}, "studio-user-parameters", False),
        ({"source": GOOD.replace("class ToolParameters", "class Arguments")}, "studio-tool-parameters", False),
        ({"source": GOOD.replace("UserParameters(BaseModel)", "UserParameters")}, "studio-base", False),
        ({"source": GOOD.replace("from pydantic", "from elsewhere")}, "studio-base", False),
        ({"source": GOOD.replace("def run_tool", "def main")}, "studio-run-tool", False),
        ({"source": GOOD.replace("def run_tool", "async def run_tool")}, "studio-run-tool", False),
        ({"source": GOOD.replace("(config: UserParameters, ", "(")}, "studio-run-tool", False),
        ({"source": without('if __name__ == "__main__":\n    ')}, "studio-main", False),
        ({"source": without('OUTPUT_KEY = "tool_output"')}, "studio-output-key", True),
        ({"requirements": "pydantic-settings\nrequests\n"}, "studio-pydantic", True),
        ({"source": GOOD.split('"""\n', 2)[2]}, "studio-docstring", True),
        ({"source": GOOD.replace("Read a JSON file of this project. Use it for settings, never for secrets.", "Reads")},
         "vague-description", True),
        ({"name": "settings-file"}, "studio-name", True),
        ({"source": without(' = Field(description="which file")')}, "parameter-undescribed", True),
        ({"source": GOOD.replace("path: str =", "path =")}, "no-type", True),
        ({"source": GOOD.replace("    path: str", "    json: str")}, "parameter-hidden", True),
        ({"source": GOOD + "# \u202e\n"}, "hidden-characters", False),
        ({"source": GOOD.replace("which file", "which\\u200bfile")}, "hidden-characters", False),
        ({"source": "# coding: utf-7\n" + GOOD}, "python-coding", False),
        ({"source": b"# coding: latin-1\n# \xe9\n" + GOOD.encode()}, "python-coding", False),
        ({"source": GOOD.encode() + b"\0"}, "python-parse", False),
        ({"source": GOOD.encode() + b"# \xff\n"}, "python-parse", False),
        ({"source": GOOD + f"x = {'(' * 5000}\n"}, "python-parse", False),
        ({"source": GOOD.replace("path: str =", f"path: {'List[' * 120}int{']' * 120} =")}, "studio-unread-type", True),
        ({"source": GOOD.replace("path: str", "path: Box")}, "studio-unread-type", True),
        ({"source": GOOD.replace("Field(default=None, ", "Field(")}, "studio-optional", True),
        ({"source": GOOD.replace("(description=", "(alias='limit', description=")}, "studio-alias", True),
        ({"source": GOOD.replace("    path: str", "    path: int\n    path: str")}, "studio-duplicate", True),
        ({"source": GOOD.replace("print(OUTPUT_KEY, ", "print(")}, "studio-key-unprinted", True),
        ({"source": GOOD.split('"""\n', 2)[2], "packing": True}, "studio-pack-docstring", False),
        ({"name": "settings-file", "packing": True}, "studio-pack-name", False),
    ],
)  # fmt: skip
def test_a_breach_has_a_code(tmp_path, change, expected, ok):
    report = made(tmp_path, **change)
    assert report.has(expected), report.findings
    assert report.ok is ok


@pytest.mark.parametrize(
    "source",
    [
        GOOD.replace("from pydantic import BaseModel, Field", "import pydantic\nfrom pydantic import Field").replace(
            "(BaseModel)", "(pydantic.BaseModel)"
        ),
        GOOD.replace("import BaseModel,", "import BaseModel as Model,").replace("(BaseModel)", "(Model)"),
        GOOD.replace('__name__ == "__main__"', '"__main__" == __name__'),
        GOOD.replace("OUTPUT_KEY =", "OUTPUT_KEY: str ="),
        GOOD.replace("print(OUTPUT_KEY,", 'print("tool_output",'),
        "# -*- coding: utf-8 -*-\n" + GOOD,
        b"\xef\xbb\xbf" + GOOD.encode(),
        GOOD.replace("\n", "\r\n"),
    ],
)
def test_other_ways_of_writing_the_same_are_taken(tmp_path, source):
    assert not made(tmp_path, source).findings


def test_nothing_of_a_template_is_run(tmp_path):
    made(tmp_path, GOOD + f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    assert not (tmp_path / "ran").exists()


def test_the_whole_of_a_folders_name_counts():
    assert check_template("/x/my_api_reader").name == "my api reader"
    assert check_template("/x/calculator").name == "calculator"


def test_the_line_and_the_file_are_said(tmp_path):
    report = made(tmp_path, "x = 1\ndef run_tool(:\n")
    (finding,) = (finding for finding in report.findings if finding.code == "python-parse")
    assert (finding.line, finding.path) == (2, str(tmp_path / "settings_file" / "tool.py"))


@pytest.mark.parametrize("blank", ["\n", " ", "pydantic-settings \t"])
def test_requirements_of_a_megabyte_are_read_line_by_line(tmp_path, blank):
    blanks = blank * (1_000_000 // len(blank))
    assert made(tmp_path, requirements=f"{blanks}\n  pydantic [email] >= 2\n").ok
    assert made(tmp_path, requirements=blanks, name="other").has("studio-pydantic")


def test_what_is_good_enough_to_run_may_not_be_good_enough_to_pack(tmp_path):
    bare = GOOD.split('"""\n', 2)[2]
    assert made(tmp_path, bare, name="json-reader").ok
    report = check_template(str(tmp_path / "json-reader"), packing=True)
    assert {finding.code for finding in report.findings if finding.level == "error"} == {
        "studio-pack-name", "studio-pack-docstring",
    }  # fmt: skip
    assert made(tmp_path, packing=True).findings == []


@pytest.mark.parametrize(
    ("change", "code", "line"),
    [
        (("limit: Optional[int] = Field(default=None, ", "limit: Optional[int] = Field("), "studio-optional", 13),
        (("    path: str", "    path: Box"), "studio-unread-type", 12),
        (("    path: str", "    path: int\n    path: str"), "studio-duplicate", 12),
        (("UserParameters(BaseModel)", "UserParameters"), "studio-base", 7),
        (("def run_tool(config: UserParameters, ", "def run_tool("), "studio-run-tool", 15),
    ],
)
def test_a_finding_has_its_line_and_a_hint(tmp_path, change, code, line):
    report = made(tmp_path, GOOD.replace(*change))
    (finding,) = (finding for finding in report.findings if finding.code == code)
    assert finding.line == line and finding.hint


def test_more_parameters_than_anyone_reads_are_too_much(tmp_path):
    many = "".join(f"    f{at}: Optional[Optional[ClassVar]] = {{'a': [1, 2, 3, 4, 5]}}\n" for at in range(2_500))
    report = made(tmp_path, GOOD.replace("    path: str", many + "    path: str"))
    assert report.has("schema-excess") and not report.ok


@pytest.mark.parametrize("line", ["-r more.txt", "./here.whl", "-e .", "git+https://example.org/x.git"])
def test_a_requirement_that_would_be_refused_is_told_before(tmp_path, line):
    report = made(tmp_path, requirements=f"pydantic\n{line}\n")
    assert [(one.code, "line 2" in one.message) for one in report.findings] == [("studio-requirements", True)]
    assert report.ok, "an environment may be allowed more than this"
