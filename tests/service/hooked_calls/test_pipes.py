"""A rewritten line inside a sandbox that forbids sockets, as Codex has it: over named pipes."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

from agent_shell import with_service

import haft.surfaces.hook
from haft.service.hooked_calls.pipes import pipes_of

HOOK = Path(haft.surfaces.hook.__file__).parent
INSIDE = """
import sys
__file__ = {path!r}
exec(compile(open(__file__).read().replace('__name__ == "__main__"', "False"), __file__, "exec"))
start = load("start_hook")
def forbidden(*_, **__):
    raise PermissionError(1, "Operation not permitted")
start.connected = forbidden
import posix
posix._exit(load("start_shell").main(start, {words!r}))
"""
"""The program of the line, in a process that cannot connect to sockets."""


async def line(home, ticket, command, cwd, **options):
    program = INSIDE.format(path=str(HOOK / "start.py"), words=[ticket, command])
    return await asyncio.create_subprocess_exec(
        sys.executable, "-I", "-S", "-c", program, cwd=cwd, env={**os.environ, "HAFT_HOME": str(home)},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options,
    )  # fmt: skip


async def ticket(service, workspace, command, **options):
    decision = await service.hooked.ticket(
        command, agent="codex", session="s1", cwd=str(workspace), has_own_sandbox=True, **options
    )
    assert decision.ticket is not None, decision.reason
    return decision.ticket


def test_the_command_runs_and_its_output_and_status_come_back(tmp_path):
    async def body(service, workspace):
        command = "touch made; echo out; echo err >&2; printf '%300000s' x; exit 3"
        name = await ticket(service, workspace, command)
        process = await line(tmp_path / "home", name, command, workspace)
        out, err = await process.communicate()
        assert (process.returncode, out, err) == (3, b"out\n" + b" " * 299999 + b"x", b"err\n")
        assert (workspace / "made").exists()
        assert not os.path.exists(pipes_of(service.home, name)), "its pipes are left"

    with_service(tmp_path, body)


def test_where_the_agents_sandbox_forbids_to_write_the_command_cannot_write(tmp_path):
    async def body(service, workspace):
        command = "touch made"
        name = await ticket(service, workspace, command)
        shown = INSIDE.format(path=str(HOOK / "start.py"), words=[name, command])
        closed = shown.replace("import posix\n", "import posix\nposix.access = lambda *_: False\n")
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-I", "-S", "-c", closed, cwd=workspace,
            env={**os.environ, "HAFT_HOME": str(tmp_path / "home")}, stderr=subprocess.PIPE,
        )  # fmt: skip
        _, err = await process.communicate()
        assert process.returncode == 1 and b"Read-only file system" in err
        assert not (workspace / "made").exists()

    with_service(tmp_path, body)


def test_the_command_ends_with_the_process_of_the_line(tmp_path):
    async def body(service, workspace):
        for number, status in ((signal.SIGKILL, -signal.SIGKILL), (signal.SIGTERM, 128 + signal.SIGTERM)):
            command = "echo begun; sleep 1000"
            name = await ticket(service, workspace, command)
            process = await line(tmp_path / "home", name, command, workspace)
            assert await process.stdout.readline() == b"begun\n"
            (run,) = service._host.pipeline.live.values()
            process.send_signal(number)
            assert await process.wait() == status
            assert (await run).status == "cancelled"

    with_service(tmp_path, body)


def test_the_line_says_so_when_nobody_is_at_the_other_end(tmp_path):
    async def body(service, workspace):
        name = await ticket(service, workspace, "echo a")
        service.hooked.close()
        process = await line(tmp_path / "home", name, "echo a", workspace)
        out, err = await process.communicate()
        assert (process.returncode, out) == (126, b"")
        assert b"sandbox forbids to reach haft's helper" in err

    with_service(tmp_path, body)
