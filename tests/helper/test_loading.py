"""The modules that a helper program loads: every host starts one before its first command, so there must be few."""

import subprocess
import sys

import pytest

from haft.processes.helper import SOURCE

COSTLY = ("asyncio", "ast", "dataclasses", "inspect", "logging", "pathlib", "platform", "subprocess", "tempfile")


@pytest.mark.parametrize("program", ["zygote", "plain"])
def test_a_helper_program_loads_little(program):
    code = f"import sys; sys.path.append({SOURCE!r}); import haft.helper.{program}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True)
    assert {*COSTLY}.isdisjoint(done.stdout.split())
