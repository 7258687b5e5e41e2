"""Memory that a process holds without having it: in files, sockets, pipes and tables of the kernel. It counts, and no
honest program is the worse for it.

As root a cgroup counts where there is one; `test_ordinary_user` runs it once more as an ordinary user, who has none.
"""

import asyncio
import shutil
import sys
from pathlib import Path

import pytest

from haft.service import ToolService

pytestmark = [
    pytest.mark.every_user,
    pytest.mark.skipif(sys.platform != "linux", reason="limits on processes need Linux"),
]

PYTHON = sys.executable
LIMIT = 200_000_000
HOARDS = Path(__file__).with_name("hoards.py")
ENOSYS = 38


async def yes(_request) -> bool:
    return True


@pytest.fixture(scope="module")
def shell(tmp_path_factory):
    """Runs a command in a workspace that has the hoards."""
    base = tmp_path_factory.mktemp("memory")
    (base / "workspace").mkdir()
    shutil.copy(HOARDS, base / "workspace")
    services = {}

    async def opened(mode):
        service = ToolService.open(
            base / "workspace",
            approver=yes,
            home=base / mode,
            installed=False,
            settings={"sandbox.mode": mode, "limits.memory_bytes": LIMIT},
        )
        return await service.__aenter__()

    with asyncio.Runner() as runner:

        def shell(command, mode="auto", **grants):
            async def call():
                if mode not in services:
                    services[mode] = await opened(mode)
                return await services[mode].call("shell", {"command": command}, grants=grants or None)

            return runner.run(asyncio.wait_for(call(), 60))

        yield shell
        for service in services.values():
            runner.run(service.__aexit__(None, None, None))


def check_ended(outcome, most):
    """The limit ended it before it had more than that."""
    assert (outcome.status, outcome.error and outcome.error.code) == ("error", "limit-exceeded"), outcome
    assert outcome.limits.hit == "memory_bytes"
    assert "all" not in outcome.output
    assert int((outcome.output.split() or ["0"])[-1]) <= most


def counts(shell, *hoards, most=3 * LIMIT, **how):
    for hoard in hoards:
        check_ended(shell(f"exec {PYTHON} -S hoards.py {hoard}", **how), most)


def is_bounded(shell, *hoards, **how):
    """What no count of the kernel shows: it is known by what the machine has lost, and other tests may give back as
    much meanwhile."""
    counts(shell, *hoards, most=7 * LIMIT, **how)


def test_files_without_a_name_count_whether_open_or_mapped_or_on_their_way_through_a_socket(shell):
    counts(shell, "files_that_are_open", "files_that_are_mapped", "files_on_their_way")


def test_messages_that_nobody_has_read_count(shell):
    counts(shell, "messages", "messages_over_loopback")


def test_messages_count_whose_sender_is_gone(shell):
    is_bounded(shell, "messages_of_nobody", "packets_of_nobody")


def test_messages_count_in_sockets_that_are_on_their_way_themselves(shell):
    counts(shell, "messages_in_sockets_on_their_way")


def test_pages_count_of_which_a_message_has_a_byte(shell):
    is_bounded(shell, "pages_in_messages")


def test_what_pipes_of_many_processes_hold_counts(shell):
    counts(shell, "pipes")


def test_shared_memory_counts_when_a_page_is_left_of_the_mapping(shell):
    is_bounded(shell, "remains_of_mappings")


def test_tables_count_that_say_which_memory_is_whose(shell):
    counts(shell, "tables")


def test_what_system_v_keeps_without_a_process_counts(shell):
    counts(shell, "segments", "queues", "semaphores")


def test_messages_count_in_the_network_of_the_host(shell):
    counts(shell, "messages", network=True)
    is_bounded(shell, "messages_of_nobody", network=True)


def test_memory_counts_that_no_process_has_where_the_sandbox_is_off(shell):
    counts(shell, "files_that_are_open", "messages", mode="off")
    is_bounded(shell, "files_on_their_way", mode="off")


SHARED = """
import os, time
from multiprocessing import shared_memory
held = shared_memory.SharedMemory(create=True, size=120_000_000)
held.buf[::4096] = b"x" * len(held.buf[::4096])
for _ in range(4):
    if os.fork() == 0:
        sum(held.buf[::4096])
        time.sleep(0.3)
        os._exit(0)
for _ in range(4):
    os.wait()
held.close()
held.unlink()
print("well")
"""


def test_a_shared_file_in_memory_counts_once(shell):
    outcome = shell(f"{PYTHON} -c '{SHARED}'")
    assert (outcome.status, outcome.output) == ("done", "well\n"), outcome


CALL = """
import ctypes, platform
numbers = {"memfd_secret": (447, 447), "io_setup": (206, 0), "memfd_create": (319, 279), "vmsplice": (278, 75)}
libc = ctypes.CDLL(None, use_errno=True)
for name, both in numbers.items():
    number = both[platform.machine() != "x86_64"]
    held = ctypes.c_ulong(0)
    words = {"io_setup": (1, ctypes.byref(held)), "memfd_create": (b"x", 0), "vmsplice": (-1, 0, 0, 0)}.get(name, (0,))
    print(name, 0 if libc.syscall(number, *words) >= 0 else ctypes.get_errno())
"""


def test_what_cannot_be_counted_is_as_if_the_kernel_had_it_not(shell):
    outcome = shell(f"{PYTHON} -S -c '{CALL}'")
    found = dict(line.split() for line in outcome.output.splitlines())
    assert found["memfd_secret"] == found["io_setup"] == str(ENOSYS)
    counted = outcome.limits.enforced["memory_bytes"].startswith("cgroup")
    assert (found["memfd_create"], found["vmsplice"]) == (("0", "9") if counted else (str(ENOSYS), str(ENOSYS)))


def test_nobody_uses_up_the_requests_of_the_machine(shell):
    before = int(Path("/proc/sys/fs/aio-nr").read_text())
    code = (
        "import ctypes, platform, time\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        'number = 206 if platform.machine() == "x86_64" else 0\n'
        "while libc.syscall(number, 1000, ctypes.byref(ctypes.c_ulong(0))) == 0: pass\n"
        'print(open("/proc/sys/fs/aio-nr").read())'
    )
    outcome = shell(f"{PYTHON} -S -c '{code}'")
    assert outcome.status == "done", outcome
    assert int(outcome.output) <= before


PROGRAMS = {
    "node": """node -e '
        const { fork, spawnSync, execFileSync } = require("child_process");
        if (process.argv[1] === "child") { process.send({ well: Buffer.alloc(1000000).length }); process.exit(); }
        const said = spawnSync("cat", { input: Buffer.alloc(3000000, "x") }).stdout.length;
        const shared = new SharedArrayBuffer(1000000);
        const child = fork("child.js");
        child.on("message", (words) => console.log("well", said, words, shared.byteLength));
    '""",
    "bun": """bun -e '
        const said = Bun.spawnSync(["head", "-c", "3000000", "/dev/zero"]).stdout.length;
        const child = Bun.spawn(["cat"], { stdin: new Blob([new Uint8Array(2000000)]), stdout: "pipe" });
        const back = (await new Response(child.stdout).arrayBuffer()).byteLength;
        console.log("well", said, back);
    '""",
    "python": f"""{PYTHON} -c '
import multiprocessing, socket, os
if __name__ == "__main__":
    with multiprocessing.Pool(2) as pool:
        print("well", sum(pool.map(abs, range(1000))), multiprocessing.Array("d", 1000)[:3])
    '""",
    "git": "cd /tmp && git init -q r && cd r && echo x > f && git add f && "
    "git -c user.name=x -c user.email=x commit -qm well && git gc -q && git log --format=%s",
}  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS)
def test_honest_programs_go_on(shell, program):
    if shutil.which(program) is None and program != "python":
        pytest.skip(f"{program} is not on this machine")
    outcome = shell(f"echo 'process.send({{ well: 1 }})' > child.js; {PROGRAMS[program]}")
    assert outcome.status == "done", outcome
    assert outcome.output.startswith("well"), outcome.output
