"""`make check` fails on an import that passes the face of another package by."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent.parent / "scripts" / "faces.py"


@pytest.mark.parametrize(
    ("words", "passes_by"),
    [
        ("from haft.policy import PolicyEngine", False),
        ("from haft.policy.policy_engine import PolicyEngine", True),
        ("from haft.policy import policy_engine", True),
        ("import haft.policy.policy_engine", True),
        ("def late():\n    from haft.policy.policy_engine import PolicyEngine", True),
        ("from haft.sources.skills import Skill", False),
        ("from haft.sources.skills.skill import Skill", True),
        ("from haft.sources import Found", False),
        ("from haft.runs.history import History", False),
    ],
)
def test_an_import_of_another_package_names_its_face(tmp_path, words, passes_by):
    root = tmp_path / "haft"
    for file in ("policy/policy_engine.py", "sources/skills/skill.py", "runs/history.py"):
        (root / file).parent.mkdir(parents=True)
        (root / file).touch()
    (root / "runs" / "asking.py").write_text(words + "\n")
    done = subprocess.run([sys.executable, SCRIPT, root], capture_output=True, text=True)
    assert done.returncode == passes_by, done.stdout
    assert ("haft/runs/asking.py:" in done.stdout) == passes_by


def test_the_code_keeps_to_it():
    done = subprocess.run([sys.executable, SCRIPT], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "every import of another package goes through its face\n")
