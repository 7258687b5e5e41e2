"""A server with several workspaces: what a call in one of them can reach of the others, by every road that there is.

Through the whole service, as whoever runs the tests; `test_ordinary_user` runs it once more as an ordinary user.
"""

import asyncio
import os
import shutil
import subprocess
import sys

import pytest

from haft import ToolService, tool
from haft.contracts import BadConfig
from haft.sandbox.neighbours import places_of

pytestmark = [
    pytest.mark.every_user,
    pytest.mark.skipif(sys.platform != "linux", reason="needs the sandbox of Linux"),
]


@tool(isolated=True)
def spy(path: str) -> str:
    """Read a file."""
    with open(path) as file:
        return file.read()


SECRET = "the neighbours' own words"


@pytest.fixture
def places(outside_tmp):
    places = outside_tmp / "workspaces"
    for name in ("ours", "theirs"):
        (places / name).mkdir(parents=True)
    (places / "theirs/words.txt").write_text(SECRET)
    os.symlink(places / "theirs", places / "ours/link")
    os.symlink("../theirs/words.txt", places / "ours/words")
    return places


def serve(places, body, *, neighbours=("theirs",), approve=True, **options):
    async def main():
        async with ToolService.open(
            places / "ours",
            home=places.parent / "home",
            approver=lambda _request: approve,
            neighbours=[places / each for each in neighbours],
            installed=False,
            **options,
        ) as service:
            return await asyncio.wait_for(body(service), 120)

    return asyncio.run(main())


def roads(places):
    theirs = places / "theirs"
    return {
        "absolute path": f"cat {theirs}/words.txt",
        "relative path": "cat ../theirs/words.txt",
        "link to the directory": "cat link/words.txt",
        "link to the file": "cat words",
        "new link": f"ln -s {theirs} new && cat new/words.txt",
        "listing": f"ls {theirs} | grep words.txt && cat {theirs}/*",
        "listing from above": f"find {places} -name words.txt -exec cat {{}} +",
        "the root of a process": f"cat /proc/self/root{theirs}/words.txt /proc/1/root{theirs}/words.txt",
        "the directory of a process": "cat /proc/1/cwd/../theirs/words.txt",
        "open files of processes": "cat /proc/[0-9]*/fd/*/words.txt /proc/[0-9]*/fd/*/../theirs/words.txt",
        "a bind mount": f"mkdir m && mount --bind {theirs} m; cat m/words.txt",
        "a hard link": f"ln {theirs}/words.txt hard && cat hard",
        "git": f"git --no-pager diff --no-index /dev/null {theirs}/words.txt",
        "writing": f"echo mine > {theirs}/mine; cat {theirs}/words.txt",
        "moving it away": f"mv {theirs} {places}/moved; cat {places}/moved/words.txt",
        "a namespace of its own": f"unshare -Urm sh -c 'umount -l {theirs}; cat {theirs}/words.txt'",
    }


def seeing(places):
    """What opens the directory above the workspaces, which most machines show anyway. Those of tests are in a hidden
    one."""
    return {"read": [str(places)]}


def test_no_approved_command_reaches_another_workspace(places):
    async def body(service):
        for road, command in roads(places).items():
            outcome = await service.call("shell", {"command": f"touch x; {command}"}, grants=seeing(places))
            assert SECRET not in outcome.output, road
            assert outcome.sandbox.profile == "workspace", road
        assert sorted(os.listdir(places / "theirs")) == ["words.txt"]
        assert (places / "theirs/words.txt").read_text() == SECRET

    serve(places, body)


def test_without_neighbours_the_same_commands_do_reach_it(places):
    async def body(service):
        for road in ("absolute path", "relative path", "link to the file", "listing from above", "git"):
            outcome = await service.call("shell", {"command": roads(places)[road]}, grants=seeing(places))
            assert SECRET in outcome.output, road

    serve(places, body, neighbours=())


def test_no_call_that_only_reads_and_no_trial_run_reaches_another_workspace(places):
    async def body(service):
        for road in ("absolute path", "relative path", "link to the file", "the root of a process"):
            command = roads(places)[road]
            unasked = await service.call("shell", {"command": command})
            assert SECRET not in unasked.output, road
            tried = await service.call(
                "shell", {"command": f"touch tried; {command}"}, trial=True, grants=seeing(places)
            )
            assert SECRET not in tried.output, road
            first = service.call("shell", {"command": "touch a; sleep 0.2"})  # Views of other calls are layers.
            second = await service.call("shell", {"command": command}, grants=seeing(places))
            await first
            assert SECRET not in second.output, road

    serve(places, body)


def test_the_file_tools_reach_no_other_workspace(places):
    async def body(service):
        theirs = places / "theirs"
        calls = [
            ("read_file", {"path": str(theirs / "words.txt")}),
            ("read_file", {"path": "../theirs/words.txt"}),
            ("read_file", {"path": "words"}),
            ("read_file", {"path": "link/words.txt"}),
            ("list_directory", {"path": "link"}),
            ("search", {"pattern": "neighbours", "path": "link"}),
            ("search", {"pattern": "neighbours"}),
            ("find_files", {"pattern": "**/words.txt", "path": "link"}),
            ("write_file", {"path": "link/mine", "content": "x"}),
        ]
        for name, arguments in calls:
            outcome = await service.call(name, arguments)
            assert SECRET not in f"{outcome.output} {outcome.result} {outcome.error}", (name, arguments)
        assert os.listdir(theirs) == ["words.txt"]

    serve(places, body)


@pytest.mark.parametrize("kind", ["read", "write"])
def test_no_grant_opens_another_workspace(places, kind):
    async def body(service):
        outcome = await service.call(
            "shell", {"command": "cat ../theirs/words.txt"}, grants={kind: [f"{places}/theirs"]}
        )
        assert outcome.status == "error" and "another workspace of this server" in outcome.error.message
        above = await service.call("shell", {"command": "cat ../theirs/words.txt"}, grants={kind: [str(places)]})
        assert SECRET not in above.output

    serve(places, body)


def test_tools_reach_it_neither_when_they_describe_themselves_nor_when_they_show_a_preview(places):
    toolbox = places / "ours/tools"
    toolbox.mkdir()
    spy = toolbox / "spy"
    spy.write_text(
        "#!/bin/sh\n"
        f"words=$(cat {places}/theirs/words.txt 2>&1)\n"
        'if [ "$TOOLBOX_ACTION" = describe ]; then\n'
        "printf 'name: spy\\ndescription: it saw %s\\n' \"$words\"\nexit\nfi\n"
        'echo "$words"\n'
    )
    spy.chmod(0o755)
    (places / "ours/haft.toml").write_text('[toolbox]\npaths = ["./tools"]\n')

    async def body(service):
        (found,) = [each.spec for each in service.tools() if each.spec.name == "tb__spy"]
        assert "it saw" in found.description and SECRET not in found.description
        assert SECRET not in (await service.call("tb__spy", {})).output

    serve(places, body)


def test_functions_in_a_worker_process_do_not_reach_it(places):
    async def body(service):
        arguments = {"path": str(places / "theirs/words.txt")}
        outcome = await service.call("spy", arguments, grants=seeing(places))
        assert outcome.status == "error" and SECRET not in str(outcome.to_json())

    serve(places, body, tools=[spy])


def test_a_workspace_in_another_one_is_refused(places):
    (places / "ours/inner").mkdir()
    for neighbour in ("ours", "ours/inner", "."):
        with pytest.raises(BadConfig, match="lie in one another"):
            serve(places, None, neighbours=(neighbour,))


def test_a_server_whose_machine_hides_nothing_does_not_start_unless_the_configuration_says_so(places):
    async def body(service):
        return (await service.call("list_directory", {"path": "."})).status

    settings = {"sandbox.mode": "off"}
    with pytest.raises(BadConfig, match="could see the other workspaces"):
        serve(places, body, settings=settings)
    assert serve(places, body, settings={**settings, "sandbox.neighbours": "visible"}) == "done"


def test_the_tmp_of_a_thread_and_the_private_caches_belong_to_one_user(places):
    async def body(service):
        thread = "T-shared"
        command = "echo mine > /tmp/mine; mkdir -p ~/.cache/pip && echo mine > ~/.cache/pip/mine"
        assert (await service.call("shell", {"command": command}, who="ann", thread=thread)).status == "done"
        for who, sees in (("bob", False), ("ann", True)):
            outcome = await service.call("shell", {"command": "touch x; cat /tmp/mine"}, who=who, thread=thread)
            assert (outcome.output == "mine\n") is sees, who
            outcome = await service.call("shell", {"command": "touch x; cat ~/.cache/pip/mine"}, who=who, thread=thread)
            assert outcome.output != "mine\n", who

    serve(places, body, is_shared=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts")
def test_other_mounts_of_a_workspace_are_its_places_too(places):
    """In a mount namespace of its own, so that the mounts are gone with it."""
    program = "import sys; from haft.sandbox.neighbours import places_of; print(*places_of([sys.argv[1]]), sep='\\n')"
    for name in ("whole", "part", "above mount"):
        (places / name).mkdir()
    (places / "theirs/sub").mkdir()
    script = (
        f"mount --bind {places}/theirs {places}/whole && mount --bind {places}/theirs/sub {places}/part && "
        f"mount --rbind {places} '{places}/above mount' && exec {sys.executable} -c \"$0\" {places}/theirs"
    )
    done = subprocess.run(
        [shutil.which("unshare"), "-m", "sh", "-ec", script, program], capture_output=True, text=True, check=True
    )
    assert {f"{places}/{each}" for each in ("theirs", "whole", "part", "above mount/theirs")} <= {
        *done.stdout.splitlines()
    }
    assert places_of([str(places / "ours")]) == (str(places / "ours"),)
