"""Other processes open, list, watch and cancel while the first is in the middle of a call: its runs stay alive."""

import subprocess
import sys

import pytest

HOST = """
import asyncio, os, sys
from haft.service import ToolService

async def yes(request):
    return True

async def main():
    async with ToolService.open(sys.argv[1], approver=yes, home=sys.argv[2], installed=False) as service:
        run = service.call("shell", {"command": "echo started; until grep -q now go; do sleep 0.02; done; "
                                                "echo went on; exec sleep 600"})
        async for event in run:
            if event.type == "stdout":
                os.write(1, (run.id + "\\n").encode())
                break
        outcome = await run
        os.write(1, f"{outcome.status}\\n".encode())

asyncio.run(main())
"""

OTHERS = {
    "opens, lists and calls": """
async def main():
    async with ToolService.open(sys.argv[1], home=sys.argv[2], installed=False) as service:
        outcome = await service.call("list_directory", {})
        print(outcome.status, service.run(sys.argv[3]).status, len(service.runs(status="in-progress")))
asyncio.run(main())
""",
    "recovers and lists": """
home = StateHome(sys.argv[2])
recovered = recover_dead_hosts(home)
history = History(home)
print(recovered, history.find(sys.argv[3]).status, len(history.runs(Filter(status="in-progress"))))
""",
    "watches": """
history = History(StateHome(sys.argv[2]))
for event in follow(history, sys.argv[3]):
    if "went on" in event.text:
        print("saw it", history.find(sys.argv[3]).status)
        break
    if "started" in event.text:
        print("watching", flush=True)
""",
    "watches to the end": """
history = History(StateHome(sys.argv[2]))
for event in follow(history, sys.argv[3]):
    if "started" in event.text:
        print("watching", flush=True)
print(event.type, event.facts["outcome"]["status"])
""",
    "cancels": """
async def main():
    async with ToolService.open(sys.argv[1], home=sys.argv[2], installed=False) as service:
        print(service.cancel(sys.argv[3]))
asyncio.run(main())
""",
}
IMPORTS = """
import asyncio, sys
from haft.runs import Filter, History, follow
from haft.service import ToolService, recover_dead_hosts
from haft.storage import StateHome
"""


@pytest.fixture
def host(tmp_path):
    (tmp_path / "workspace").mkdir()
    (tmp_path / "workspace" / "go").touch()
    arguments = [sys.executable, "-c", HOST, tmp_path / "workspace", tmp_path / "home"]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as process:
        process.run = process.stdout.readline().strip()
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture
def other(tmp_path, host):
    """Another process that does something; its output while it goes on."""

    def other(what: str):
        arguments = [tmp_path / "workspace", tmp_path / "home", host.run]
        return subprocess.Popen(
            [sys.executable, "-c", IMPORTS + OTHERS[what], *arguments], stdout=subprocess.PIPE, text=True
        )

    return other


def test_others_come_and_go_and_the_run_goes_on_until_one_cancels_it(host, other, tmp_path):
    visitors = [other("opens, lists and calls"), other("recovers and lists"), other("recovers and lists")]
    said = [visitor.communicate()[0].strip() for visitor in visitors]
    assert said == ["done in-progress 1", "0 in-progress 1", "0 in-progress 1"]

    watching, run_uncancellable = other("watches"), other("watches to the end")
    assert watching.stdout.readline() == run_uncancellable.stdout.readline() == "watching\n"
    # Written in place: the call sees the workspace as it was, and of what is new there only what its files hold.
    (tmp_path / "workspace" / "go").write_text("now")
    assert watching.communicate()[0] == "saw it in-progress\n"

    killed = other("watches")
    assert killed.stdout.readline() == "watching\n"
    killed.kill()
    killed.communicate()
    assert host.poll() is None

    assert other("cancels").communicate()[0] == "True\n"
    assert host.stdout.readline() == "cancelled\n"
    assert run_uncancellable.communicate()[0] == "outcome cancelled\n"
    assert host.wait() == 0
    assert other("cancels").communicate()[0] == "False\n"
