"""Agent Studio templates: by their files alone."""

import pytest

from haft.authoring.check.studio import check_template, template_name

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


def made(tmp_path, source=GOOD, requirements="requests\npydantic>=2\n", name="settings_file"):
    folder = tmp_path / name
    folder.mkdir()
    if source is not None:
        (folder / "tool.py").write_text(source)
    if requirements is not None:
        (folder / "requirements.txt").write_text(requirements)
    return check_template(str(folder), {"json"})


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
    ],
)
def test_other_ways_of_writing_the_same_are_taken(tmp_path, source):
    assert not made(tmp_path, source).findings


def test_nothing_of_a_template_is_run(tmp_path):
    made(tmp_path, GOOD + f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    assert not (tmp_path / "ran").exists()


def test_a_folders_suffix_is_no_part_of_the_name():
    assert template_name("/x/my_api_tool_xk9f2m") == "my api tool"
    assert template_name("/x/calculator") == "calculator"


def test_the_line_and_the_file_are_said(tmp_path):
    report = made(tmp_path, "x = 1\ndef run_tool(:\n")
    (finding,) = (finding for finding in report.findings if finding.code == "python-parse")
    assert (finding.line, finding.path) == (2, str(tmp_path / "settings_file" / "tool.py"))


@pytest.mark.parametrize("blank", ["\n", " ", "pydantic-settings \t"])
def test_requirements_of_a_megabyte_are_read_line_by_line(tmp_path, blank):
    blanks = blank * (1_000_000 // len(blank))
    assert made(tmp_path, requirements=f"{blanks}\n  pydantic [email] >= 2\n").ok
    assert made(tmp_path, requirements=blanks, name="other").has("studio-pydantic")
