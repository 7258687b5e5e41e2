"""What a rule allows is bound to the tool as it first ran: replaced files ask again."""

import asyncio
import functools
import shutil
import sqlite3

import pytest

from haft import ToolService
from haft.service.answers import Answers
from haft.sources.python import tool

TOOL = """#!/bin/sh
case $TOOLBOX_ACTION in
describe) printf 'name: it\\ndescription: Says_a_word.\\n' ;;
execute) . "$(dirname "$0")/lib/words"; cat "$0" | tail -n 1; say ;;
esac
# one
"""
ALLOW = {"tool": "tb__it", "action": "allow"}


def in_a_loop(test):
    @functools.wraps(test)
    def run(*arguments, **named):
        asyncio.run(test(*arguments, **named))

    return run


class Bench:
    """A workspace, and a tool in the person's own toolbox outside of it."""

    def __init__(self, base, monkeypatch):
        self.workspace, self.home, self.box = base / "workspace", base / "state", base / "box"
        self.workspace.mkdir()
        (self.box / "lib").mkdir(parents=True)
        monkeypatch.setenv("AMP_TOOLBOX", str(self.box))
        self.file, self.loaded = self.box / "it", self.box / "lib" / "words"
        self.loaded.write_text("say() { echo hello; }\n")
        self.file.write_text(TOOL)
        self.file.chmod(0o755)
        self.asked = []

    async def call(self, *rules, approves=False, name="tb__it", tools=(), trial=False):
        async def approver(request):
            self.asked.append(request)
            return approves

        options = {"settings": {"permissions": rules or [ALLOW]}, "installed": False, "tools": tools}
        async with ToolService.open(self.workspace, home=self.home, approver=approver, **options) as service:
            return await service.call(name, trial=trial)

    def pinned(self):
        with sqlite3.connect(self.home / "haft.db") as database:
            return [row[0] for row in database.execute("SELECT tool FROM pins")]


@pytest.fixture
def bench(tmp_path, monkeypatch):
    return Bench(tmp_path, monkeypatch)


@in_a_loop
async def test_a_tool_that_a_rule_allowed_asks_again_when_its_file_was_replaced(bench):
    first = await bench.call()
    assert (first.output, first.decision.by, bench.asked) == ("# one\nhello\n", "rule", [])
    assert (await bench.call()).status == "done" and bench.asked == []
    bench.file.write_text(TOOL.replace("# one", "# two"))
    refused = await bench.call()
    assert refused.status == "rejected-by-user" and refused.output == ""
    (request,) = bench.asked
    assert "have changed since you approved it" in request.reason
    assert "-# one" in request.definition_diff and "+# two" in request.definition_diff
    assert (await bench.call(approves=True)).output == "# two\nhello\n"
    bench.asked.clear()
    assert (await bench.call()).output == "# two\nhello\n" and bench.asked == []


@in_a_loop
async def test_a_file_that_it_loads_counts_as_its_own(bench):
    assert (await bench.call()).status == "done"
    bench.loaded.write_text("say() { echo evil; }\n")
    refused = await bench.call()
    assert refused.status == "rejected-by-user" and refused.output == ""
    assert "+say() { echo evil; }" in bench.asked[0].definition_diff
    bench.loaded.write_text("say() { echo hello; }\n")
    assert (await bench.call()).status == "done", "it is what it was"


@in_a_loop
async def test_what_a_delegate_allows_is_bound_likewise(bench):
    rule = {"tool": "tb__it", "action": "delegate", "to": "/bin/true"}
    assert (await bench.call(rule)).decision.by == "delegate"
    bench.file.write_text(TOOL.replace("# one", "# two"))
    assert (await bench.call(rule)).status == "rejected-by-user" and len(bench.asked) == 1


@pytest.mark.parametrize("changed", ["file", "loaded"])
def test_a_tool_that_changes_between_decision_and_run_is_not_run_and_not_pinned(bench, monkeypatch, changed):
    pin_first_use = Answers.pin_first_use

    async def change_before(self, call):
        path = getattr(bench, changed)
        path.write_text(path.read_text() + "# later\n")
        await pin_first_use(self, call)

    monkeypatch.setattr(Answers, "pin_first_use", change_before)
    outcome = asyncio.run(bench.call())
    assert outcome.error.code == "conflict" and "it changed while it was being decided about" in outcome.error.message
    assert outcome.output == "" and bench.pinned() == []


@in_a_loop
async def test_of_two_hosts_the_first_to_run_a_tool_decides_what_it_is(bench, monkeypatch):
    seen = Answers.pinned
    assert (await bench.call()).status == "done"
    bench.file.write_text(TOOL.replace("# one", "# two"))
    monkeypatch.setattr(Answers, "pinned", lambda self, name: None)  # It looked before the other wrote.
    late = await bench.call()
    assert late.error.code == "conflict" and late.output == ""
    monkeypatch.setattr(Answers, "pinned", seen)
    assert (await bench.call()).status == "rejected-by-user", "the pin is still the first one"


@in_a_loop
async def test_an_open_service_sees_at_once_what_another_process_did_to_the_pins(bench):
    async def approver(_request):
        return False

    options = {"settings": {"permissions": [ALLOW]}, "installed": False, "approver": approver}
    async with ToolService.open(bench.workspace, home=bench.home, **options) as service:
        for _ in range(2):
            assert (await service.call("tb__it")).status == "done"
        with sqlite3.connect(bench.home / "haft.db") as database:
            database.execute("UPDATE pins SET pin = 'another'")
        outcome = await service.call("tb__it")
        assert outcome.status == "rejected-by-user" and outcome.decision.definition_diff is not None
        with sqlite3.connect(bench.home / "haft.db") as database:
            database.execute("DELETE FROM pins")
        assert (await service.call("tb__it")).status == "done" and bench.pinned() == ["tb__it"]


@in_a_loop
async def test_tools_that_are_vouched_for_are_not_pinned(bench):
    @tool
    async def embedded() -> str:
        """Of the program."""
        return "x"

    rule = {"tool": "*", "action": "allow"}
    assert (await bench.call(rule, name="embedded", tools=[embedded])).status == "done"
    assert (await bench.call(rule, name="list_directory")).status == "done"
    assert bench.pinned() == []
    assert (await bench.call(rule)).status == "done"
    assert bench.pinned() == ["tb__it"]


@in_a_loop
async def test_a_trial_run_is_no_approval_and_pins_nothing(bench):
    own = bench.workspace / ".agents" / "tools"
    shutil.copytree(bench.box, own)
    for path in (bench.file, bench.loaded):
        path.unlink()
    await bench.call({"tool": "*", "action": "ask"}, trial=True)
    assert bench.pinned() == []
    refused = await bench.call()
    assert refused.status == "rejected-by-user" and "this is its first use" in bench.asked[-1].reason
    lines = len((own / "it").read_text().splitlines())
    assert bench.asked[-1].reason.endswith(f": .agents/tools/it, {lines} lines")
