"""A surface reaches nothing below the facades: `make check` refuses it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_a_surface_that_reaches_below_the_facades_breaks_a_contract_of_make_check(tmp_path):
    shutil.copytree(ROOT / "src" / "haft", tmp_path / "haft", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    command = [
        Path(sys.executable).with_name("lint-imports"), "--no-logo", "--contract", "surfaces-see-only-the-facades",
    ]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    assert subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True).returncode == 0
    with (tmp_path / "haft" / "surfaces" / "text" / "home.py").open("a") as file:
        file.write("\n\ndef reach():\n    from haft.policy.rules import rule\n    import haft.storage\n")
    said = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert said.returncode != 0
    assert "haft.surfaces.text.home -> haft.policy.rules.rule" in said.stdout
    assert "haft.surfaces.text.home -> haft.storage" in said.stdout
