"""The socket at which hooks inside a program reach the run."""

from __future__ import annotations

import asyncio
import os
import socket

import pytest

from haft.service.hook_messages import FORMAT, HookConnection, HookKind
from haft.service.programs import run_place


@pytest.mark.parametrize("clients", [0, 60])
def test_clients_that_ask_nothing_use_few_descriptors_and_others_get_their_answer(tmp_path, monkeypatch, clients):
    monkeypatch.setattr(run_place, "SECONDS_TO_ASK", 0.2)
    monkeypatch.setattr(run_place, "MOST_CONNECTIONS", 20)

    async def connected(path):
        made = socket.socket(socket.AF_UNIX)
        made.setblocking(False)
        await asyncio.get_running_loop().sock_connect(made, path)
        return made

    async def ask():
        async with run_place.outer_socket(str(tmp_path), str(tmp_path), "r_1") as mount:
            path = os.path.join(os.path.relpath(mount.source), "socket")
            before = len(os.listdir("/proc/self/fd"))
            idle = [await connected(path) for _ in range(clients)]
            for _ in range(10 * clients):
                await asyncio.sleep(0)
            assert len(os.listdir("/proc/self/fd")) <= before + clients + 20
            asking = HookConnection(await connected(path))
            try:
                await asking.send(HookKind.WHERE, FORMAT)
                answer = await asyncio.wait_for(asking.receive(), 30)
            finally:
                asking.close()
                for each in idle:
                    each.close()
            assert answer is not None and answer.fields == (b"run", b"r_1")

    asyncio.run(ask())
