"""The report about ten broken tools: each says what is wrong with its tool. `HAFT_WRITE_MESSAGES=1` writes the reports
anew; read them, as somebody who does not know the tools."""

import asyncio
import os
import re
import sys
from pathlib import Path

import pytest

from haft.testing import read_scenario_file, run_scenario
from haft.testing.scenarios import lines_of

sys.path.insert(0, str(Path(__file__).parent))
from broken_tools import TOOLS

from sampling import today

MESSAGES = Path(__file__).parent / "messages"


@pytest.mark.parametrize("name", today([*TOOLS], "broken tools"))
def test_a_report_says_what_is_wrong_with_a_tool(name, tmp_path, monkeypatch):
    monkeypatch.setenv("HAFT_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    file, text, scenario = TOOLS[name]
    Path(file).write_text(text)
    Path(file).chmod(0o755)
    Path(f"{name}.scenario.yaml").write_text(scenario)
    (read,) = read_scenario_file(f"{name}.scenario.yaml")
    report = "".join(f"{line}\n" for line in lines_of(asyncio.run(run_scenario(read))))
    report = re.sub(r"\d+\.\d\d s$", "1.23 s", report, flags=re.MULTILINE)
    report = report.replace(f"{tmp_path}/", "…/")
    message = MESSAGES / f"{name}.txt"
    if os.environ.get("HAFT_WRITE_MESSAGES"):
        message.write_text(report)
    assert report == message.read_text()
