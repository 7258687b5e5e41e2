"""Answers from the cache: what makes an answer stale, what is never answered, and equal calls that come at once."""

import asyncio
import json
import mmap
import os
import random
import subprocess
import sys
import threading
import time

import pytest

import sampling
from haft import ToolService, tool
from haft.policy import repeatable_line


@pytest.fixture
def places(tmp_path):
    (tmp_path / "above" / "workspace" / "sub").mkdir(parents=True)
    return {"workspace": tmp_path / "above" / "workspace", "home": tmp_path / "home"}


class Reader:
    """A tool that reads files, and counts how often it ran."""

    def __init__(self, workspace):
        self.runs = 0
        self.after_reading = lambda: None
        here = str(workspace)

        @tool(readonly=True, cacheable=True, reads=["path"])
        def look(path: str, fail: bool = False) -> str:
            """Read a file."""
            self.runs += 1
            with open(os.path.join(here, path)) as file:
                text = file.read()
            self.after_reading()
            if fail:
                raise RuntimeError(text)
            return text

        self.tool = look


async def ask(service, name, arguments, **options):
    outcome = await service.call(name, arguments, **options)
    assert outcome.ok, outcome.error
    return outcome


async def keep(service, name, arguments, **options):
    """Call until the answer comes from the cache: files that were changed a moment ago are not trusted."""
    for _ in range(200):
        outcome = await ask(service, name, arguments, **options)
        if outcome.cached:
            return outcome
    raise AssertionError(f"never answered from the cache: {outcome}")


# What makes an answer stale.


def same_size_and_mtime(file):
    before = file.stat()
    file.write_text("two")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def replaced_by_rename(file):
    before = file.stat()
    other = file.with_name("other")
    other.write_text("two")
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    other.rename(file)


def written_through_a_hard_link(file):
    elsewhere = file.parents[2] / "elsewhere"
    elsewhere.hardlink_to(file)
    elsewhere.write_text("two")


def replaced_by_a_link(file):
    (file.parent / "target").write_text("two")
    file.unlink()
    file.symlink_to("target")


def directory_exchanged(file):
    folder = file.parent
    folder.rename(folder.with_name("gone"))
    folder.mkdir()
    (folder / "file").write_text("two")


CHANGES = (
    same_size_and_mtime,
    replaced_by_rename,
    written_through_a_hard_link,
    replaced_by_a_link,
    directory_exchanged,
)


@pytest.mark.parametrize("depends_on", ["the file", "the directory", "anything"])
def test_a_changed_file_is_noticed(places, depends_on):
    workspace = places["workspace"]
    names = {"the file": ["path"], "the directory": ["folder"], "anything": None}[depends_on]

    @tool(readonly=True, cacheable=True, reads=names)
    def look(path: str, folder: str) -> str:
        """Read a file."""
        return (workspace / path).read_text()

    async def main():
        async with ToolService.open(**places, tools=[look]) as service:
            for number, change in enumerate(CHANGES):
                arguments = {"path": f"{number}/file", "folder": f"{number}"}
                file = workspace / arguments["path"]
                file.parent.mkdir()
                file.write_text("one")
                assert (await keep(service, "look", arguments)).output == "one"
                change(file)
                outcome = await ask(service, "look", arguments)
                assert (outcome.output, outcome.cached) == ("two", False), change

    asyncio.run(main())


def new_file(workspace):
    (workspace / "sub" / "new").write_text("needle\n")


def deleted_file(workspace):
    (workspace / "sub" / "file").unlink()


def ignored_in(name):
    def change(workspace):
        path = workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("file\n")

    return change


SEARCHED = (
    new_file,
    ignored_in("sub/.ignore"),
    ignored_in(".gitignore"),
    ignored_in("../.ignore"),
    ignored_in(".git/info/exclude"),
    ignored_in("sub/.git/info/exclude"),
    deleted_file,
)


@pytest.mark.parametrize(("name", "arguments"), [("search", {"pattern": "needle"}), ("find_files", {"pattern": "*"})])
def test_a_search_depends_on_the_tree_and_on_its_ignore_files(places, name, arguments):
    (places["workspace"] / "sub" / "file").write_text("needle\n")
    (places["workspace"] / ".git").mkdir()

    async def main():
        async with ToolService.open(**places) as service:
            for number, change in enumerate(SEARCHED):
                await keep(service, name, {**arguments, "path": "sub"})
                change(places["workspace"])
                outcome = await ask(service, name, {**arguments, "path": "sub"})
                assert not outcome.cached, number
                fresh = await ask(service, name, {**arguments, "path": "sub"}, uses_cache=False)
                assert outcome.output == fresh.output

    asyncio.run(main())


def test_the_excludes_of_a_linked_working_tree_count(places):
    common = places["workspace"].parent / "repository"
    (common / "info").mkdir(parents=True)
    (common / "worktrees" / "here").mkdir(parents=True)
    (common / "worktrees" / "here" / "commondir").write_text("../..\n")
    (places["workspace"] / ".git").write_text(f"gitdir: {common}/worktrees/here\n")
    (places["workspace"] / "file").write_text("needle\n")

    async def main():
        async with ToolService.open(**places) as service:
            await keep(service, "search", {"pattern": "needle"})
            (common / "info" / "exclude").write_text("file\n")
            assert not (await ask(service, "search", {"pattern": "needle"})).cached

    asyncio.run(main())


def test_who_calls_from_where_with_which_arguments_and_variables_counts(places, monkeypatch):
    reader = Reader(places["workspace"])
    (places["workspace"] / "file").write_text("one")

    async def main():
        async with ToolService.open(**places, tools=[reader.tool]) as service:
            arguments = {"path": "file", "fail": False}
            await keep(service, "look", arguments)
            assert (await ask(service, "look", {"fail": False, "path": "file"})).cached
            for options in ({"who": "other"}, {"cwd": "sub"}, {"env": {"LANG": "C"}}, {"thread": "T-other"}):
                assert not (await ask(service, "look", arguments, **options)).cached
            assert not (await ask(service, "look", {"path": "./file"})).cached
            assert not (await ask(service, "look", arguments, uses_cache=False)).cached
            monkeypatch.setenv("SOME_SETTING", "x")
            assert not (await ask(service, "look", arguments)).cached
            monkeypatch.delenv("SOME_SETTING")
            assert (await ask(service, "look", arguments)).cached

    asyncio.run(main())


def test_the_answers_of_a_function_end_with_the_function(places):
    first, second = Reader(places["workspace"]), Reader(places["workspace"])
    (places["workspace"] / "file").write_text("one")

    async def main():
        async with ToolService.open(**places, tools=[first.tool]) as service:
            await keep(service, "look", {"path": "file"})
            service.remove("look")
            service.add(second.tool)
            assert not (await ask(service, "look", {"path": "file"})).cached

    asyncio.run(main())


@pytest.mark.parametrize("moment", ["before", "twice"])
def test_a_write_during_the_call_or_in_the_same_tick_is_noticed(places, moment):
    """With `twice`, the file has its old content again when the call ends, and perhaps even its old times."""
    reader = Reader(places["workspace"])
    file = places["workspace"] / "file"

    async def main():
        async with ToolService.open(**places, tools=[reader.tool]) as service:
            for number in range(30):
                file.write_text("old")
                if moment == "twice":
                    file.write_text("new")
                    reader.after_reading = lambda: file.write_text("old")
                else:
                    reader.after_reading = lambda: file.write_text("new")
                seen = await ask(service, "look", {"path": "file"})
                reader.after_reading = lambda: None
                outcome = await ask(service, "look", {"path": "file"})
                assert outcome.output == file.read_text() != seen.output, number
                assert not outcome.cached

    asyncio.run(main())


def test_a_rule_that_is_added_meanwhile_rejects_a_call_with_a_kept_answer(places):
    (places["workspace"] / "file").write_text("needle\n")

    async def main():
        async with ToolService.open(**places) as service:
            await keep(service, "search", {"pattern": "needle"})
        rules = [{"tool": "search", "action": "reject"}]
        async with ToolService.open(**places, settings={"permissions": rules}) as service:
            outcome = await service.call("search", {"pattern": "needle"})
            assert (outcome.status, outcome.cached) == ("rejected-by-user", False), outcome

    asyncio.run(main())


def test_a_read_after_an_edit_in_a_batch_sees_the_edit(places):
    reader = Reader(places["workspace"])
    (places["workspace"] / "file").write_text("0")
    times = 1_000 if sampling.IS_WHOLE else 30

    async def main():
        async with ToolService.open(**places, tools=[reader.tool], approver=lambda _request: True) as service:
            hits = 0
            for number in range(times):
                hits += (await ask(service, "look", {"path": "file"})).cached
                write = ("write_file", {"path": "file", "content": str(number + 1)})
                edited, read = await service.batch([write, ("look", {"path": "file"})])
                assert edited.ok and read.output == str(number + 1)
                hits += (await keep(service, "look", {"path": "file"})).cached if number % 10 == 0 else 0
            assert hits

    asyncio.run(main())


def test_a_write_through_a_mapping_is_noticed_by_content(places):
    file = places["workspace"] / "file"
    file.write_text("one")
    reader = Reader(places["workspace"])

    async def main():
        with file.open("r+b") as opened, mmap.mmap(opened.fileno(), 3) as mapped:
            mapped[:] = b"one"  # From now on the kernel need not notice writes to this page.
            settings = {"cache.verify": "content"}
            async with ToolService.open(**places, tools=[reader.tool], settings=settings) as service:
                await keep(service, "look", {"path": "file"})
                mapped[:] = b"two"
                assert (await ask(service, "look", {"path": "file"})).output == "two"

    asyncio.run(main())


def test_a_commit_that_is_only_published_yet_is_seen(places):
    """While a call runs that began before, committed changes lie in a layer over the workspace's own files."""
    (places["workspace"] / "file").write_text("needle\n")

    async def main():
        async with ToolService.open(
            **places, approver=lambda _request: True, settings={"changes.flush_seconds": 0}
        ) as service:
            await keep(service, "search", {"pattern": "needle"})
            slow = service.call("shell", {"command": "read line < pipe; cat file"})
            os.mkfifo(places["workspace"] / "pipe")
            while slow.status != "in-progress":
                await asyncio.sleep(0.001)
            await ask(service, "write_file", {"path": "file", "content": "needle and more\n"})
            outcome = await ask(service, "search", {"pattern": "needle"})
            assert "and more" in outcome.output
            slow.cancel()
            await slow

    asyncio.run(main())


# What is never answered.

LINES = (
    "date", "date +%s", "date -r file", "echo $RANDOM", "echo $SECONDS", "echo $$", "echo $EPOCHREALTIME", "echo ~",
    "printf '%(%s)T'", "printf '%(%Y)T\\n' -1", "ps", "ps aux", "uptime", "free", "df", "df -h .", "du -s .", "id",
    "whoami", "hostname", "uname -a", "env", "printenv", "pwd -P", "ls -l", "ls -lu file", "ls /tmp", "cat /tmp/x",
    "stat file", "find . -mmin -5", "find . -newer file", "test file -nt other", "sort -R file", "shuf file",
    "head -c 4 /dev/urandom", "cat /proc/uptime", "cat /proc/self/stat", "mktemp -u", "cat *", "tail -f file",
    "ls -t", "wc -c < file", "cat <(date)", "echo `date`", "echo $(date)", "cat file & wait", "jobs -p", "times",
    "sort -T /tmp file", "wc --files0-from=list", "git log --since=yesterday", "TZ=UTC cat file", "cat \"$HOME\"/x",
    "cat pipe", "sleep 0; cat file", "cat /dev/stdin", "cat /etc/hostname",
)  # fmt: skip


def test_no_line_that_is_not_repeatable_is_answered(places):
    (places["workspace"] / "file").write_text("text\n")
    (places["workspace"] / "list").write_text("file\0")
    lines = sampling.some([line for line in LINES if line not in ("tail -f file", "cat pipe")], 10, "lines")

    async def main():
        async with ToolService.open(**places, approver=lambda _request: True) as service:
            for line in lines:
                for _ in range(2):
                    outcome = await service.call("shell", {"command": line})
                    assert not outcome.cached, line

    asyncio.run(main())


def test_the_table_knows_no_line_that_is_not_repeatable():
    of_files = {"cat /tmp/x", "cat pipe", "ls /tmp", "cat /etc/hostname", "head -c 4 /dev/urandom"}
    for line in LINES:
        assert repeatable_line(line) is None or line in of_files, line
    for line in ("cat a b | sort -u | head -n 3", "grep -n 'a b' file && wc -l file", 'echo "x y"; true', "tail -5 f"):
        assert repeatable_line(line) is not None, line


def test_a_line_of_literal_files_is_answered_until_a_file_changes(places):
    file = places["workspace"] / "file"
    file.write_text("b\na\n")
    link = places["workspace"] / "link"
    link.symlink_to("file")

    async def main():
        async with ToolService.open(**places) as service:
            for line in ("sort link | head -n 1", "ls"):
                assert (await keep(service, "shell", {"command": line})).exit_code == 0
            (places["workspace"] / "other").write_text("z\n")
            assert not (await ask(service, "shell", {"command": "ls"})).cached
            link.unlink()
            link.symlink_to("other")
            outcome = await ask(service, "shell", {"command": "sort link | head -n 1"})
            assert (outcome.output, outcome.cached) == ("z\n", False)

    asyncio.run(main())


def test_failures_are_never_kept(places):
    reader = Reader(places["workspace"])
    (places["workspace"] / "file").write_text("one")

    async def main():
        async with ToolService.open(**places, tools=[reader.tool]) as service:
            await keep(service, "look", {"path": "file"})  # The file is old enough now.
            before = reader.runs
            for _ in range(3):
                assert (await service.call("look", {"path": "file", "fail": True})).status == "error"
            assert reader.runs == before + 3
            for _ in range(2):
                assert not (await service.call("shell", {"command": "grep nothing file"})).cached

    asyncio.run(main())


def test_a_result_that_json_cannot_express_is_not_kept(places):
    @tool(readonly=True, cacheable=True, reads=[])
    def pair(kind: str) -> object:
        """Give a value."""
        return {"tuple": {"a": (1, 2)}, "numbers": {1: "one"}, "list": {"a": [1, 2]}}[kind]

    async def main():
        async with ToolService.open(**places, tools=[pair]) as service:
            kept = await keep(service, "pair", {"kind": "list"})
            assert kept.result == {"a": [1, 2]}
            for kind in ("tuple", "numbers"):
                first = await ask(service, "pair", {"kind": kind})
                again = await ask(service, "pair", {"kind": kind})
                assert again.result == first.result and type(again.result) is type(first.result)

    asyncio.run(main())


# Where answers are kept.


def test_an_answer_survives_a_restart_and_other_processes_get_it(places):
    (places["workspace"] / "file").write_text("needle\n")

    async def main():
        async with ToolService.open(**places) as service:
            kept = await keep(service, "search", {"pattern": "needle"})
        async with ToolService.open(**places) as first, ToolService.open(**places) as second:
            assert (await ask(first, "search", {"pattern": "needle"})).cached
            outcome = await ask(second, "search", {"pattern": "needle"})
            assert outcome.cached and outcome.output == kept.output and outcome.run_id != kept.run_id
            (places["workspace"] / "file").write_text("no\n")
            assert not (await ask(second, "search", {"pattern": "needle"})).cached

    asyncio.run(main())
    script = (
        "import asyncio, sys\nfrom haft import ToolService\n"
        "async def main():\n"
        "    async with ToolService.open(workspace=sys.argv[1], home=sys.argv[2]) as service:\n"
        "        for _ in range(200):\n"
        "            if (await service.call('search', {'pattern': 'no'})).cached: return\n"
        "asyncio.run(main())\n"
    )
    subprocess.run([sys.executable, "-c", script, places["workspace"], places["home"]], check=True)

    async def after():
        async with ToolService.open(**places) as service:
            assert (await ask(service, "search", {"pattern": "no"})).cached

    asyncio.run(after())


def test_the_store_is_private_and_damage_is_a_miss(places):
    reader = Reader(places["workspace"])
    (places["workspace"] / "file").write_text("one")
    answers = places["home"] / "cache" / "answers"

    async def main():
        async with ToolService.open(**places, tools=[reader.tool]) as service:
            await keep(service, "look", {"path": "file"})
            (kept,) = answers.iterdir()
            assert kept.stat().st_mode & 0o777 == 0o600 and (kept.parent.parent / "key").stat().st_mode & 0o077 == 0
            good = kept.read_bytes()
            form = json.loads(good)
            damaged = [b"", b"{}", b"[]", b"\xff", good[:-9], json.dumps({**form, "key": "0" * 64}).encode()]
            damaged += [
                json.dumps({**form, "answer": {**form["answer"], name: None}}).encode() for name in ("output", "notes")
            ]
            damaged += [json.dumps({**form, "at": at}).encode() for at in (0, time.time() + 60, "x")]
            for data in damaged:
                kept.write_bytes(data)
                outcome = await ask(service, "look", {"path": "file"})
                assert (outcome.output, outcome.cached) == ("one", False), data
            assert (await keep(service, "look", {"path": "file"})).output == "one"

    asyncio.run(main())


def test_the_answers_that_were_not_used_for_longest_go_first(places):
    @tool(readonly=True, cacheable=True, reads=[])
    def number(n: int) -> int:
        """Give a number back."""
        return n

    async def main():
        async with ToolService.open(**places, tools=[number], settings={"cache.entries": 3}) as service:
            for n in range(3):
                await keep(service, "number", {"n": n})
            assert (await ask(service, "number", {"n": 0})).cached
            await keep(service, "number", {"n": 3})
            assert (await ask(service, "number", {"n": 0})).cached
            assert not (await ask(service, "number", {"n": 1})).cached
            assert len([*(places["home"] / "cache" / "answers").iterdir()]) <= 3

    asyncio.run(main())


# Equal calls that come at once.


def gated():
    """A tool that waits until it is let through."""
    gate, runs = asyncio.Event(), []

    @tool(readonly=True, cacheable=True, reads=["path"])
    async def slow(path: str) -> str:
        """Wait."""
        runs.append(path)
        await gate.wait()
        if len(runs) == 1 and path == "fails":
            raise RuntimeError("no")
        return "done"

    return slow, gate, runs


def test_equal_calls_that_come_at_once_run_once(places):
    (places["workspace"] / "file").write_text("one")

    async def main():
        slow, gate, runs = gated()
        gate.set()
        async with ToolService.open(**places, tools=[slow]) as service:
            await keep(service, "slow", {"path": "file"})
            gate.clear()
            runs.clear()
            calls = [service.call("slow", {"path": "sub"}) for _ in range(5)]
            while not runs:
                await asyncio.sleep(0)
            for _ in range(50):
                await asyncio.sleep(0)
            gate.set()
            outcomes = [await call for call in calls]
            assert len(runs) == 1 and [outcome.cached for outcome in outcomes].count(True) == 4
            assert len({outcome.run_id for outcome in outcomes}) == 5

    asyncio.run(main())


@pytest.mark.parametrize("how", ["fails", "cancelled"])
def test_a_call_runs_itself_if_the_one_it_waited_for_did_not_answer(places, how):
    async def main():
        slow, gate, runs = gated()
        async with ToolService.open(**places, tools=[slow]) as service:
            first = service.call("slow", {"path": "fails"})
            while not runs:
                await asyncio.sleep(0)
            others = [service.call("slow", {"path": "fails"}) for _ in range(2)]
            for _ in range(50):
                await asyncio.sleep(0)
            if how == "cancelled":
                first.cancel()
                await first
            gate.set()
            assert not (await first).ok
            assert all([(await other).ok for other in others])
            assert len(runs) > 1

    asyncio.run(main())


# Everything at once.


@pytest.mark.parametrize("how", ["in place", "renamed"])
@pytest.mark.parametrize("engine", ["auto", "snapshot", "off"])
def test_no_answer_is_older_than_its_call(places, how, engine):
    """Another program writes a growing number all the time, now and then with a break. Each call must see a number that
    was there between its start and its end."""
    folder = places["workspace"] / "many"
    folder.mkdir()
    for number in range(600 if how == "renamed" else 3):  # So many that the tree is watched.
        (folder / f"f{number}").touch()
    file = folder / "number"
    file.write_text("00000000")
    begun = done = 0
    is_over, quiet = threading.Event(), threading.Lock()

    def write():
        nonlocal begun, done
        chance = random.Random(how)
        while not is_over.is_set():
            with quiet:
                begun += 1
                if how == "renamed":
                    other = places["workspace"] / "other"
                    other.write_text(f"{begun:08}")
                    other.rename(file)
                else:
                    with file.open("r+") as opened:
                        opened.write(f"{begun:08}")
                done = begun
            is_over.wait(chance.choice([0, 0, 0.0005, 0.02]))

    @tool(readonly=True, cacheable=True, reads=["folder"])
    def look(folder: str) -> str:
        """Read the number."""
        return file.read_text()

    async def main():
        async with ToolService.open(**places, tools=[look], settings={"changes.engine": engine}) as service:
            for number in range(400 if sampling.IS_WHOLE else 24):
                oldest = done
                outcome = await ask(service, "look", {"folder": "many"})
                assert oldest <= int(outcome.output) <= begun
                if number % 8 == 0:
                    with quiet:
                        assert int((await keep(service, "look", {"folder": "many"})).output) == done

    writer = threading.Thread(target=write)
    writer.start()
    try:
        asyncio.run(main())
    finally:
        is_over.set()
        writer.join()


@pytest.mark.parametrize("engine", ["auto", "snapshot"])
def test_no_answer_is_older_than_a_commit_before_it(places, engine):
    """The same, with calls that write: some are published as layers first, because others read meanwhile."""
    file = places["workspace"] / "number"
    file.write_text("0\n")
    done = 0

    async def main():
        nonlocal done
        settings = {"changes.engine": engine}
        async with ToolService.open(**places, approver=lambda _request: True, settings=settings) as service:
            is_over = False

            async def read(name, arguments):
                while not is_over:
                    oldest = done
                    outcome = await ask(service, name, arguments)
                    assert int(outcome.output.rpartition(":")[2]) >= oldest, outcome

            readers = [
                asyncio.create_task(read("search", {"pattern": "^[0-9]"})),
                asyncio.create_task(read("shell", {"command": "cat number"})),
            ]
            for number in range(1, 40 if sampling.IS_WHOLE else 8):
                if number % 2:
                    await ask(service, "write_file", {"path": "number", "content": f"{number}\n"})
                else:
                    await ask(service, "shell", {"command": f"echo {number} > number"})
                done = number
                await asyncio.sleep(0.05)
            is_over = True
            for reader in readers:
                await reader

    asyncio.run(main())
