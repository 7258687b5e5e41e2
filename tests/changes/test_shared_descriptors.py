"""Two calls at once that share a socket: what one hands to the other does not reach what was committed."""

import asyncio
import functools
import sys

import pytest

from haft import ToolService

pytestmark = [
    pytest.mark.every_user,
    pytest.mark.skipif(sys.platform != "linux", reason="there are no layers elsewhere"),
]

RECEIVE = """
import mmap, os, socket, time
cache = os.path.expanduser("~/.cache/shared")
os.makedirs(cache, exist_ok=True)
listening = socket.socket(socket.AF_UNIX)
listening.bind(cache + "/socket.new")
listening.listen()
os.rename(cache + "/socket.new", cache + "/socket")
ends, _ = listening.accept()
file, directory = socket.recv_fds(ends, 1, 2)[1]
mapped = mmap.mmap(file, 0)
while not os.path.exists(cache + "/go"):
    time.sleep(0.002)
os.pwrite(file, b"#!evil", 0)
mapped[6:12] = b"mapped"
mapped.flush()
try:
    os.close(os.open("planted", os.O_CREAT | os.O_WRONLY, dir_fd=directory))
except OSError:
    pass  # Landlock, where there is some.
print("written")
"""
SEND = """
import os, socket, time
cache = os.path.expanduser("~/.cache/shared")
while not os.path.exists(cache + "/socket"):
    time.sleep(0.002)
os.mkdir("new")
with open("new/script", "w") as script:
    script.write("harmless, and looked at")
ends = socket.socket(socket.AF_UNIX)
ends.connect(cache + "/socket")
handed = [os.open("new/script", os.O_RDWR), os.open("new", os.O_RDONLY)]
socket.send_fds(ends, [b"x"], handed)
"""


def in_a_loop(test):
    @functools.wraps(test)
    def run(*arguments, **named):
        asyncio.run(test(*arguments, **named))

    return run


async def yes(_request):
    return True


def lines(program):
    return f"{sys.executable} -c '{program}'"


@in_a_loop
async def test_a_descriptor_that_one_call_hands_to_another_does_not_reach_what_was_committed(tmp_path):
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    async with ToolService.open(workspace, home=tmp_path / "state", approver=yes, installed=False) as service:
        receiving = service.call("shell", {"command": lines(RECEIVE)})
        sent = await service.call("shell", {"command": lines(SEND)})
        assert (sent.status, sent.changes.state, sent.changes.complete) == ("done", "committed", True), sent.error
        assert [one.path for one in sent.changes.files] == ["new", "new/script"]
        went = await service.call("shell", {"command": "touch ~/.cache/shared/go"})
        received = await receiving
        assert (went.status, received.status, received.output.strip()) == ("done", "done", "written"), received.output
        assert (workspace / "new" / "script").read_text() == "harmless, and looked at"
        assert [one.name for one in (workspace / "new").iterdir()] == ["script"]
        assert (await service.undo(sent.run_id)).status == "done"
    assert [*workspace.iterdir()] == []


@in_a_loop
async def test_a_descriptor_handed_to_another_call_does_not_reach_what_is_held(tmp_path):
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    async with ToolService.open(workspace, home=tmp_path / "state", approver=yes, installed=False) as service:
        receiving = service.call("shell", {"command": lines(RECEIVE)})
        sent = await service.call("shell", {"command": f"{lines(SEND)}; echo planted > .envrc"})
        assert sent.changes.state == "held", sent.changes
        await service.call("shell", {"command": "touch ~/.cache/shared/go"})
        assert (await receiving).output.strip() == "written"
        assert (await service.apply(sent.run_id)).status == "done"
        assert (workspace / "new" / "script").read_text() == "harmless, and looked at"
        assert sorted(one.name for one in (workspace / "new").iterdir()) == ["script"]
