"""The streams of an agent's shell: whatever they are, nothing is lost, and nothing of the agent's is changed."""

import asyncio
import contextlib
import fcntl
import os
import pty
import socket

import pytest
from agent_shell import with_service

AGENT = {"agent": "claude-code", "session": "s1"}


async def run(service, workspace, command, **streams):
    decision = await service.hooked.ticket(command, **AGENT, cwd=str(workspace))
    assert decision.ticket, decision.reason
    return await service.hooked.run(decision.ticket, command, cwd=str(workspace), **streams)


@contextlib.contextmanager
def nothing():
    descriptor = os.open(os.devnull, os.O_RDWR)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def test_output_is_appended_to_a_file(tmp_path):
    async def body(service, workspace):
        with nothing() as null, open(tmp_path / "log", "ab") as log:
            log.write(b"before\n")
            log.flush()
            await run(
                service, workspace, "echo out; echo err >&2", stdin=null, stdout=log.fileno(), stderr=log.fileno()
            )
        assert (tmp_path / "log").read_text() == "before\nout\nerr\n"

    with_service(tmp_path, body)


@pytest.mark.parametrize("kind", ["pipe", "socket", "file"])
def test_input_reaches_the_command_and_ends(tmp_path, kind):
    async def body(service, workspace):
        with contextlib.ExitStack() as leaving:
            if kind == "pipe":
                stdin, other = os.pipe()
                os.write(other, b"some words")
                os.close(other)
                leaving.callback(os.close, stdin)
            elif kind == "socket":
                ours, theirs = socket.socketpair()
                ours.sendall(b"some words")
                ours.close()
                stdin = leaving.enter_context(theirs).fileno()
            else:
                (tmp_path / "given").write_bytes(b"some words")
                stdin = leaving.enter_context(open(tmp_path / "given", "rb")).fileno()
            out = leaving.enter_context(open(tmp_path / "out", "wb"))
            await run(service, workspace, "wc -w", stdin=stdin, stdout=out.fileno(), stderr=out.fileno())
        assert (tmp_path / "out").read_text().strip() == "2"

    with_service(tmp_path, body)


def test_a_command_does_not_get_the_agents_terminal(tmp_path):
    async def body(service, workspace):
        main, terminal = pty.openpty()
        with open(tmp_path / "out", "wb") as out:
            command = "[ -t 0 ] && echo terminal; cat; echo end"
            await run(service, workspace, command, stdin=terminal, stdout=out.fileno(), stderr=out.fileno())
        os.close(main)
        os.close(terminal)
        assert (tmp_path / "out").read_text() == "end\n"

    with_service(tmp_path, body)


def test_a_command_waits_for_an_agent_that_reads_slowly_and_nothing_is_lost(tmp_path):
    async def body(service, workspace):
        read, write = os.pipe()
        flags = fcntl.fcntl(write, fcntl.F_GETFL)
        size = 30_000_000
        with nothing() as null:
            streams = {"stdin": null, "stdout": write, "stderr": null}
            running = asyncio.ensure_future(
                run(service, workspace, f"yes 0123456789 | head -c {size}; touch done", **streams)
            )
            assert await asyncio.to_thread(os.read, read, 10) == b"0123456789"
            while not (found := [*service._host.pipeline.live.values()]) or found[0].output_buffer is None:
                await asyncio.sleep(0.01)
            for _ in range(100):  # Long enough to copy much more, if nothing made the command wait.
                await asyncio.sleep(0.01)
            assert found[0].output_buffer.all.total < size // 2
            assert fcntl.fcntl(write, fcntl.F_GETFL) == flags, "the agent's stream was made non-blocking"
            reading = asyncio.ensure_future(asyncio.to_thread(_size_of, read))
            assert (await running).status == 0
        os.close(write)
        assert await reading == size - 10

    with_service(tmp_path, body)


def _size_of(descriptor):
    size = 0
    while data := os.read(descriptor, 1 << 20):
        size += len(data)
    os.close(descriptor)
    return size


def test_a_reader_that_is_gone_does_not_stop_the_command(tmp_path):
    async def body(service, workspace):
        read, write = os.pipe()
        os.close(read)
        with nothing() as null:
            end = await run(
                service, workspace, "yes | head -c 10000000; touch made", stdin=null, stdout=write, stderr=null
            )
        os.close(write)
        assert end.status == 0 and (workspace / "made").exists()

    with_service(tmp_path, body)


def test_secrets_are_masked_on_their_way_to_the_agent(tmp_path):
    async def body(service, workspace):
        with nothing() as null, open(tmp_path / "out", "wb") as out:
            await run(service, workspace, "echo my-se''cret-word", stdin=null, stdout=out.fileno(), stderr=null)
        assert "my-secret-word" not in (tmp_path / "out").read_text()

    with_service(tmp_path, body, secrets=["my-secret-word"])
