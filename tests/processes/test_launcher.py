"""One command: its input, its output, and the report of its end."""

import asyncio
import os
import signal
import sys

import pytest

from haft.contracts import StartFailed, ToolFailed
from haft.processes.streams import Feed
from sampling import SELDOM

pytestmark = pytest.mark.every_user(share=SELDOM)


# What comes back.


def test_stdout_and_stderr_arrive_apart(bash):
    sink = bash("echo out; echo err >&2; printf 'more'")
    assert (sink.stdout, sink.stderr) == (b"out\nmore", b"err\n")


def test_output_arrives_while_the_command_still_runs(bench, workspace):
    async def go():
        with bench() as b:
            seen = asyncio.Event()

            class Watching:
                def output(self, stream, data):
                    seen.set()

                def processes_ended(self, children):
                    pass

            running = asyncio.create_task(b.bash("echo first; until [ -e go ]; do sleep 0.01; done", sink=Watching()))
            await asyncio.wait_for(seen.wait(), 20)
            assert not running.done()
            (workspace / "go").touch()
            await running

    asyncio.run(go())


@pytest.mark.parametrize("code", [0, 1, 2, 42, 127, 255])
def test_the_exit_code_is_the_commands(bash, code):
    end = bash(f"exit {code}").exit
    assert (end.code, end.signal) == (code, None)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV, signal.SIGUSR1])
def test_a_signal_that_ends_the_command_becomes_128_and_its_number(bash, number):
    end = bash(f"kill -{int(number)} $$").exit
    assert (end.code, end.signal) == (128 + number, number)


def test_output_that_is_not_text_arrives_byte_for_byte(execute):
    script = "import sys; sys.stdout.buffer.write(bytes(range(256)) * 1000)"
    assert execute(sys.executable, "-c", script).stdout == bytes(range(256)) * 1000


# What it is handed.


def test_a_command_has_only_its_three_streams_whatever_the_host_has_open(bench, tmp_path):
    async def go():
        opened = [os.open(tmp_path, os.O_RDONLY) for _ in range(20)]
        for descriptor in opened:
            os.set_inheritable(descriptor, True)
        try:
            with bench() as b:
                # A second command, too: by then the helper has served one.
                return [await b.run(sys.executable, "-S", "-c", _LIST_DESCRIPTORS) for _ in range(2)]
        finally:
            for descriptor in opened:
                os.close(descriptor)

    assert [sink.stdout for sink in asyncio.run(go())] == [b"0 1 2\n"] * 2


_LIST_DESCRIPTORS = """
import os
def is_open(number):
    try:
        os.fstat(number)
    except OSError:
        return False
    return True
print(*[number for number in range(4096) if is_open(number)])
"""


def test_concurrent_commands_do_not_see_each_others_descriptors(bench):
    async def go():
        with bench() as b:
            runs = [b.run(sys.executable, "-S", "-c", _LIST_DESCRIPTORS, stdin=b"x" * 100_000) for _ in range(10)]
            return await asyncio.gather(*runs)

    assert {sink.stdout for sink in asyncio.run(go())} == {b"0 1 2\n"}


def test_a_command_leads_a_session_and_group_of_its_own_without_a_terminal(bash):
    sink = bash("echo $$ $(ps -o sid=,pgid=,tty= -p $$)")
    pid, session, group, terminal = sink.stdout.decode().split()
    assert pid == session == group
    assert terminal == "?"


def test_signals_that_the_host_ignores_or_blocks_are_not_ignored_or_blocked_by_a_command(bench):
    numbers = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGPIPE)
    before = {number: signal.signal(number, signal.SIG_IGN) for number in numbers}
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2})

    async def go():
        with bench() as b:
            return await b.run("grep", "-E", "^Sig(Ign|Blk)", "/proc/self/status")

    try:
        sink = asyncio.run(go())
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for number, handler in before.items():
            signal.signal(number, handler)
    reserved = 0b11 << 31  # signals 32 and 33 are the C library's own: no program can reset them
    assert [int(line.split()[1], 16) & ~reserved for line in sink.stdout.splitlines()] == [0, 0]


def test_input_is_delivered_and_closed(execute):
    assert execute("cat", stdin=b"hello").stdout == b"hello"


def test_without_input_the_command_sees_its_end_at_once(execute):
    assert execute("cat").stdout == b""


def test_three_megabytes_of_input_come_back_whole(execute):
    data = os.urandom(3_000_000)
    assert execute("cat", stdin=data).stdout == data


def test_a_command_that_never_reads_its_input_is_not_held_up_by_it(bash):
    sink = bash("echo done", stdin=b"x" * 3_000_000)
    assert (sink.stdout, sink.exit.code) == (b"done\n", 0)


def test_a_command_that_closes_its_input_early_ends_as_it_likes(bash):
    assert bash("head -c 5; exec 0<&-; echo; exit 3", stdin=b"y" * 3_000_000).exit.code == 3


def test_odd_arguments_arrive_byte_for_byte(execute):
    odd = ["", " ", "a b", "*", "$HOME", "'", '"', "\\", "\n", "-n", "ünï", "\udcff\udc80", "\x01\x7f", "💾"]
    sink = execute("printf", "%s\\0", *odd)
    assert sink.stdout.split(b"\0")[:-1] == [os.fsencode(word) for word in odd]


def test_odd_values_of_the_environment_arrive_byte_for_byte(bash):
    assert bash("printf %s \"$ODD\"", env={"ODD": "a\n\udcff='\""}).stdout == b"a\n\xff='\""  # fmt: skip


def test_a_directory_whose_name_is_not_text_can_be_worked_in(bash, workspace):
    name = b"d \xff\n'"
    os.mkdir(os.path.join(os.fsencode(workspace), name))
    sink = bash("pwd -P; touch here", cwd=os.fsdecode(name))
    assert sink.stdout == os.path.join(os.fsencode(workspace), name) + b"\n"
    assert os.listdir(os.path.join(os.fsencode(workspace), name)) == [b"here"]


# What cannot be started.


def test_a_program_that_does_not_exist_is_said_to_be_missing(execute):
    with pytest.raises(StartFailed, match="`no-such-program` was not found"):
        execute("no-such-program")


def test_a_file_that_is_not_executable_is_said_to_be_so(execute, workspace):
    (workspace / "plain").write_text("#!/bin/sh\n")
    with pytest.raises(StartFailed, match="is not executable"):
        execute("./plain")


def test_a_file_that_is_no_program_is_said_to_be_so(execute, workspace):
    (workspace / "data").write_bytes(b"\x7fELF nonsense")
    (workspace / "data").chmod(0o755)
    with pytest.raises(StartFailed, match="cannot be started"):
        execute("./data")


def test_a_nul_in_an_argument_is_refused_before_anything_starts(execute):
    with pytest.raises(ToolFailed, match="NUL"):
        execute("echo", "a\0b")
    with pytest.raises(ToolFailed, match="NUL"):
        execute("echo", env={"A": "a\0b"})


def test_arguments_that_are_too_long_are_said_to_be_so(execute):
    with pytest.raises(StartFailed, match="too long"):
        execute("echo", "x" * 200_000)
    with pytest.raises(StartFailed, match="too long"):
        execute("echo", *["x" * 100_000] * 60)


def test_an_empty_command_is_refused(execute):
    with pytest.raises(StartFailed, match="no command"):
        execute()


def test_a_working_directory_that_is_missing_is_an_error_and_leaves_no_descriptor(bench):
    async def go():
        with bench() as b:
            await b.bash("true")
            before = len(os.listdir("/proc/self/fd"))
            with pytest.raises(FileNotFoundError):
                await b.bash("true", cwd="nowhere")
            assert len(os.listdir("/proc/self/fd")) == before
            assert (await b.bash("echo still works")).stdout == b"still works\n"

    asyncio.run(go())


def test_a_failed_start_leaves_no_descriptor_and_the_next_command_works(bench):
    async def go():
        with bench() as b:
            await b.bash("true")
            before = len(os.listdir("/proc/self/fd"))
            for _ in range(5):
                with pytest.raises(StartFailed):
                    await b.run("no-such-program", stdin=b"x")
            assert len(os.listdir("/proc/self/fd")) == before
            assert (await b.bash("echo still works")).stdout == b"still works\n"

    asyncio.run(go())


# Many, and much.


def test_thirty_commands_at_once_each_get_their_own_output(bench):
    async def go():
        with bench() as b:
            return await asyncio.gather(*(b.bash(f"echo {n}; sleep 0.05; echo {n} >&2; exit {n}") for n in range(30)))

    for number, sink in enumerate(asyncio.run(go())):
        assert (sink.stdout, sink.stderr, sink.exit.code) == (b"%d\n" % number, b"%d\n" % number, number)


def test_a_flood_on_one_line_does_not_grow_the_host_and_leaves_other_commands_their_turn(bench):
    def resident() -> int:
        with open("/proc/self/status") as file:
            return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmRSS"))

    class Counting:
        total = most = 0

        def output(self, stream, data):
            self.total += len(data)
            self.most = max(self.most, resident())

        def processes_ended(self, children):
            pass

    async def go():
        with bench() as b:
            await b.bash("head -c 10000000 /dev/zero | tr '\\0' x", sink=Counting())
            before, flood = resident(), Counting()
            running = asyncio.create_task(b.bash("head -c 300000000 /dev/zero | tr '\\0' x", sink=flood))
            while not flood.total:
                await asyncio.sleep(0.001)
            answers = 0
            while not running.done():
                assert (await b.bash("echo here")).stdout == b"here\n"
                answers += not running.done()
            await running
            assert flood.total == 300_000_000
            assert flood.most - before < 20_000_000
            assert answers >= 1

    asyncio.run(go())


def test_a_sink_that_fails_does_not_hang_the_command_and_its_error_is_raised(bench):
    class Broken:
        def output(self, stream, data):
            raise ValueError("no more room")

        def processes_ended(self, children):
            pass

    async def go():
        with bench() as b:
            with pytest.raises(ValueError, match="no more room"):
                await b.bash("head -c 3000000 /dev/zero; touch ended", sink=Broken())

    asyncio.run(go())


def test_input_is_taken_when_the_child_has_read_it_or_reads_no_more():
    async def main():
        loop = asyncio.get_running_loop()
        reading, writing = os.pipe()
        feed = Feed(writing, b"", loop, keeps_open=True)
        first, second = feed.send(b"1" * 10), feed.send(b"2" * 1_000_000)
        await first
        assert not second.done()
        with open(reading, "rb", closefd=False) as file:
            assert await asyncio.to_thread(file.read, 1_000_010) == b"1" * 10 + b"2" * 1_000_000
        await second
        unread = feed.send(b"3" * 1_000_000)
        feed.close()
        await unread
        await feed.send(b"4")
        os.close(reading)

    asyncio.run(asyncio.wait_for(main(), 60))
