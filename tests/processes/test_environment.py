"""The environment of a tool is built from a short list, never inherited."""

import asyncio
import os

import pytest

from haft.processes import built_environment

pytestmark = pytest.mark.every_user


def test_a_tool_gets_the_few_variables_that_programs_need_and_nothing_else():
    host = {"PATH": "/usr/bin", "HOME": "/home/x", "LC_ALL": "C", "AWS_SECRET_ACCESS_KEY": "s", "BASH_ENV": "/x"}
    assert built_environment(host, "/w") == {"PATH": "/usr/bin", "HOME": "/home/x", "LC_ALL": "C"}


@pytest.mark.parametrize(
    ("path", "kept"),
    [
        ("/usr/bin:.:/bin", "/usr/bin:/bin"),
        ("/usr/bin::/bin", "/usr/bin:/bin"),
        ("/usr/bin:bin:./x:../y", "/usr/bin"),
        ("/w/bin:/usr/bin", "/usr/bin"),
        ("/w:/usr/bin", "/usr/bin"),
        ("/usr/../w/bin:/usr/bin", "/usr/bin"),
        ("/wider/bin:/usr/bin", "/wider/bin:/usr/bin"),
    ],
)
def test_path_has_no_relative_entry_and_none_inside_the_workspace(path, kept):
    assert built_environment({"PATH": path}, "/w")["PATH"] == kept


def test_a_path_of_which_nothing_can_be_kept_is_replaced_by_the_systems():
    assert "/usr/bin" in built_environment({"PATH": ".:/w"}, "/w")["PATH"].split(":")
    assert "/usr/bin" in built_environment({}, "/w")["PATH"].split(":")


@pytest.mark.parametrize("name", ["MY_SECRET", "LD_PRELOAD", "BASH_ENV", "PYTHONPATH", "BASH_FUNC_ls%%", "GIT_DIR"])
def test_nothing_of_the_hosts_environment_reaches_a_command(name, execute, monkeypatch):
    monkeypatch.setenv(name, "/nowhere/hunter2")
    sink = execute("env", "-0")
    names = {line.split(b"=")[0].decode() for line in sink.stdout.split(b"\0") if line}
    assert b"hunter2" not in sink.stdout
    assert names <= {*built_environment(os.environ, "/w"), "MARK"}


def test_the_helpers_own_environment_is_empty_so_that_no_command_reads_secrets_there(bench, monkeypatch):
    monkeypatch.setenv("MY_SECRET", "hunter2")

    async def go():
        with bench() as b:
            return await b.bash("cat /proc/$PPID/environ; ppid=$(awk '/PPid/{print $2}' /proc/$PPID/status); "
                                "cat /proc/$ppid/environ")  # fmt: skip

    assert b"hunter2" not in asyncio.run(go()).stdout


def test_variables_of_the_call_are_added(bash):
    assert bash('echo "$GREETING"', env={"GREETING": "hello wörld"}).stdout.decode() == "hello wörld\n"
