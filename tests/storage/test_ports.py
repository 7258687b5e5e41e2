"""Nobody above `storage` sees which database there is: `make check` refuses it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import haft.storage

ROOT = Path(__file__).parents[2]


def test_an_import_of_the_database_outside_storage_breaks_a_contract_of_make_check(tmp_path):
    assert not hasattr(haft.storage, "Database"), "the face does not offer it"
    shutil.copytree(ROOT / "src" / "haft", tmp_path / "haft", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    program = Path(sys.executable).with_name("lint-imports")
    command = [program, "--no-logo", "--contract", "one-package-has-the-database"]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    for module in ("runs/history.py", "surfaces/cli/main.py"):
        with (tmp_path / "haft" / module).open("a") as file:
            file.write("from haft.storage.sqlite.database import Database\n")
    said = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert said.returncode != 0
    assert "haft.runs.history -> haft.storage.sqlite.database" in said.stdout
    assert "haft.surfaces.cli.main -> haft.storage.sqlite.database" in said.stdout
