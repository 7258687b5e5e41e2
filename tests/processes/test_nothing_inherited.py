"""Nothing of the host's environment reaches a command."""

import asyncio
import os

import pytest

from haft.contracts import NO_CONFINEMENT
from haft.sandbox.environment import built_environment
from sampling import SELDOM

pytestmark = pytest.mark.every_user(share=SELDOM)


@pytest.mark.parametrize("name", ["MY_SECRET", "LD_PRELOAD", "BASH_ENV", "PYTHONPATH", "BASH_FUNC_ls%%", "GIT_DIR"])
def test_nothing_of_the_hosts_environment_reaches_a_command(name, execute, monkeypatch):
    monkeypatch.setenv(name, "/nowhere/hunter2")
    sink = execute("env", "-0")
    names = {line.split(b"=")[0].decode() for line in sink.stdout.split(b"\0") if line}
    assert b"hunter2" not in sink.stdout
    assert names <= {*built_environment(os.environ, "/w", NO_CONFINEMENT), "MARK"}


def test_the_helpers_own_environment_is_empty_so_that_no_command_reads_secrets_there(bench, monkeypatch):
    monkeypatch.setenv("MY_SECRET", "hunter2")

    async def go():
        with bench() as b:
            return await b.bash("cat /proc/$PPID/environ; ppid=$(awk '/PPid/{print $2}' /proc/$PPID/status); "
                                "cat /proc/$ppid/environ")  # fmt: skip

    assert b"hunter2" not in asyncio.run(go()).stdout


def test_variables_of_the_call_are_added(bash):
    assert bash('echo "$GREETING"', env={"GREETING": "hello wörld"}).stdout.decode() == "hello wörld\n"
