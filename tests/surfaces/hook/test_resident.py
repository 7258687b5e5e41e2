"""The resident itself: when it ends, and what becomes of hooks meanwhile."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import stat
from asyncio.selector_events import BaseSelectorEventLoop
from pathlib import Path

import pytest

from haft.service import HookConnection, HookKind, HookMessage, ask_where, hook_socket_path
from haft.surfaces.hook import resident as module
from haft.surfaces.hook.resident import Resident


def serve(resident: Resident, *asked: str) -> list[tuple[str, str] | None]:
    """Serve until the resident ends by itself. Meanwhile, ask who answers in each of these state homes."""

    async def work() -> list[tuple[str, str] | None]:
        listening = resident.take()
        assert listening is not None
        serving = asyncio.create_task(resident.serve(listening, {}))
        found = [await asyncio.to_thread(ask_where, home) for home in asked]
        await serving
        return found

    return asyncio.run(work())


def test_it_ends_when_nobody_needs_it_and_leaves_no_socket(tmp_path: Path) -> None:
    home = str(tmp_path)
    assert serve(Resident(home, idle_seconds=0.1), home) == [("resident", "")]
    assert not os.path.exists(hook_socket_path(home))
    assert serve(Resident(home, idle_seconds=0.1), home) == [("resident", "")]


def test_after_haft_was_installed_anew_it_answers_once_more_and_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = str(tmp_path)
    resident = Resident(home)
    monkeypatch.setattr(module, "installation", lambda: (1, 2, 3))
    assert serve(resident, home) == [("resident", "")]
    assert not os.path.exists(hook_socket_path(home))


def test_there_is_one_for_a_state_home(tmp_path: Path) -> None:
    async def work() -> None:
        first, second = Resident(str(tmp_path)), Resident(str(tmp_path))
        listening = first.take()
        assert listening is not None
        assert await asyncio.to_thread(second.take) is None
        listening.close()

    asyncio.run(work())


@pytest.mark.every_user
def test_only_its_user_reaches_the_socket(tmp_path: Path) -> None:
    async def work() -> None:
        listening = Resident(str(tmp_path)).take()
        assert listening is not None
        path = hook_socket_path(tmp_path)
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
        assert stat.S_IMODE(os.stat(os.path.dirname(path)).st_mode) == 0o700
        listening.close()

    asyncio.run(work())


def test_a_long_path_of_the_state_home_is_no_obstacle(tmp_path: Path) -> None:
    home = tmp_path / ("d" * 120)
    home.mkdir()

    assert serve(Resident(str(home), idle_seconds=0.1), str(home)) == [("resident", "")]


def test_it_goes_on_after_it_could_not_accept_a_connection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    accept = BaseSelectorEventLoop.sock_accept
    failures = [OSError(errno.EMFILE, "Too many open files")]

    async def fail_once(loop: BaseSelectorEventLoop, sock: socket.socket) -> object:
        if failures:
            raise failures.pop()
        return await accept(loop, sock)

    monkeypatch.setattr(BaseSelectorEventLoop, "sock_accept", fail_once)
    home = str(tmp_path)
    assert serve(Resident(home, idle_seconds=0.5), home) == [("resident", "")]


def test_a_connection_without_a_message_does_not_keep_it_alive(tmp_path: Path) -> None:
    async def work() -> None:
        resident = Resident(str(tmp_path), idle_seconds=0.1, message_seconds=0.1)
        listening = resident.take()
        assert listening is not None
        _reader, writer = await asyncio.open_unix_connection(hook_socket_path(str(tmp_path)))
        writer.write(b"h9")
        await resident.serve(listening, {})
        writer.close()

    asyncio.run(asyncio.wait_for(work(), 30))


def test_garbage_on_the_socket_ends_only_that_connection(tmp_path: Path) -> None:
    home = str(tmp_path)

    async def fail(connection: HookConnection, message: HookMessage) -> None:
        raise AssertionError

    async def work() -> tuple[str, str] | None:
        resident = Resident(home, idle_seconds=0.1)
        listening = resident.take()
        assert listening is not None
        serving = asyncio.create_task(resident.serve(listening, {HookKind.HOOK: fail}))
        for bad in (b"garbage", b"h5:x", b"h0:,", b"h60:" + b"0:," * 20 + b",", b"s99999999999:"):
            _reader, writer = await asyncio.open_unix_connection(hook_socket_path(home))
            writer.write(bad)
            writer.close()
        found = await asyncio.to_thread(ask_where, home)
        await serving
        return found

    assert asyncio.run(work()) == ("resident", "")
