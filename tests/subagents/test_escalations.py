"""A model that tries to get more than its sub-agent was given gets nothing, and the same works where it is granted."""

import asyncio
import os
import re
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))
from escalations import ESCALATIONS, NO, TOKEN, TRUSTED, TYPES, UNTRUSTED, Place, definition, rules

from haft import Context, ToolService, tool
from haft.contracts import ApprovalAnswer, Principal
from haft.service import TrustFacade
from haft.storage import StateHome
from haft.testing.scripted_model import ScriptedModel, say

WAITS = "no answer"


@tool
async def relay(name: str, arguments: dict, context: Context) -> str:
    """Call another tool."""
    outcome = await context.call(name, arguments)
    return f"{outcome.status} {outcome.output}"


class World:
    """A workspace with a service, a person and a model, for all cases."""

    def __init__(self, base, model, environment):
        self.model = model
        self.workspace, self.outside, self.home = base / "workspace", base / "outside", base / "home"
        self.answers = []
        self._number = 0
        for folder in (self.workspace / ".agents/agents", self.workspace / ".claude/agents", self.outside):
            folder.mkdir(parents=True)
        (self.workspace / "haft.toml").write_text("# nothing\n")
        (self.workspace / f".agents/agents/{TRUSTED}.md").write_text(definition(TRUSTED))
        settings = {
            "subagents.enabled": True,
            "subagents.model": "openai-chat:scripted",
            "subagents.base_url": model.openai_url,
            "subagents.types": TYPES,
            "permissions": rules(self.outside),
            "approval.expires_seconds": 600,
        }
        with environment.context() as enabled:
            enabled.setenv("HAFT_SUBAGENTS_ENABLED", "true")
            trust = TrustFacade(str(self.workspace), StateHome(str(self.home)))
            trust.trust(trust.look(), Principal("the person"))
        (self.workspace / f".agents/agents/{UNTRUSTED}.md").write_text(definition(UNTRUSTED))

        @tool
        def publish(path: str) -> str:
            """Write a file."""
            (self.workspace / path).write_text("made\n")
            return "published"

        self.service = ToolService.open_sync(
            self.workspace,
            home=self.home,
            approver=self._approve,
            settings=settings,
            environ={**os.environ, TOKEN: "granted"},
            tools=[relay, publish],
            installed=False,
        )

    def __enter__(self):
        self.service.__enter__()
        return self

    def __exit__(self, *error):
        self.service.__exit__(*error)

    async def _approve(self, request):
        answer = self.answers.pop(0) if isinstance(self.answers, list) else self.answers
        if answer is WAITS:
            await asyncio.Event().wait()
        return ApprovalAnswer(False, message=NO) if answer is False else answer

    def place(self, case, *, is_granted):
        self._number += 1
        place = Place(
            self.workspace, self.outside, self.home, f"case-{self._number}", self.model, is_granted=is_granted
        )
        place.of(".").mkdir()
        for name, text in case.files.items():
            place.of(name).parent.mkdir(exist_ok=True)
            place.of(name).write_text(text.replace("AT", place.at).replace("HOME", str(self.home)))
        self.waiting = None
        if case.before is not None:
            self._before(place, *case.before)
        return place

    def _before(self, place, command, answer):
        self.answers = WAITS if answer is None else answer
        run = self.service.call("shell", {"command": command.format(place.at)})
        place.run = run.id
        self.waiting = run if answer is None else None
        if answer is None:
            next(event for event in run if event.status == "blocked-on-user")
        else:
            assert run.wait().ok
            place.of("made").unlink(missing_ok=True)

    def tree(self):
        """All files in and beside the workspace."""
        found = {}
        for top in (self.workspace, self.outside):
            for path in top.rglob("*"):
                mode = path.lstat().st_mode
                found[str(path)] = (mode, path.read_bytes() if stat.S_ISREG(mode) else None)
        return found

    def run(self, place, case, agent, answers):
        """Let a sub-agent of this type do it. Returns the run of the task."""
        self.answers = [*answers] if isinstance(answers, list) else answers
        before = len(self.model.requests)
        prompt = self.model.task(*case.steps(place), say("done"))
        outcome = self.service.call("task", {"prompt": prompt, "agent": agent}).wait(60)
        assert outcome.status == "done", outcome
        for request in self.model.requests[before:]:
            assert all(map(is_framed, request.results)), request.results
            assert not any("<system>" in text or text.count("</task_context>") > 1 for text in request.said)
        return outcome.run_id

    def refusals(self, task):
        """What the audit log says about each refused or failed call below a task: its code, and the reason."""
        family, found = {task}, []
        for entry in reversed(self.service.record.last(100)):
            if entry.get("parent") in family:
                family.add(entry["run"])
                if entry["type"] == "end" and entry["error"] is not None:
                    decided = entry["decision"] or {"reason": "not decided"}
                    found.append((entry["error"]["code"], f"{decided['reason']}; {entry['error']['message']}"))
        return found

    def is_refused(self, task, case, seconds=10):
        """Whether the audit log has the refusal. It gets the ends of calls that changed nothing a moment later."""
        ends = time.monotonic() + seconds
        while not any(code == case.code and re.search(case.reason, reason) for code, reason in self.refusals(task)):
            if time.monotonic() > ends:
                return False
            time.sleep(0.01)
        return True


def is_framed(result):
    """Whether nothing in a result of a tool can end its frame, or speak as the system."""
    return result.endswith("</tool_result>") and result.count("</tool_result>") == 1 and "<system>" not in result


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    base = tmp_path_factory.mktemp("escalations")
    with ScriptedModel() as model, pytest.MonkeyPatch.context() as environment:
        # The client of each task loads all certificates of the machine, which takes half of its time, and uses none.
        environment.setenv("SSL_CERT_DIR", str(base))
        with World(base, model, environment) as made:
            yield made


CASES = [
    pytest.param(case, id=f"{kind}: {case.what}".replace(" ", "-"))
    for kind in ESCALATIONS
    for case in ESCALATIONS[kind]
]


@pytest.mark.parametrize("case", CASES)
def test_an_attempt_changes_nothing_and_the_audit_log_says_why(world, case):
    place = world.place(case, is_granted=False)
    before = world.tree()
    task = world.run(place, case, case.refused, case.person)
    assert world.tree() == before
    assert not case.passed(place)
    assert world.is_refused(task, case), world.refusals(task)
    if world.waiting is not None:
        assert world.waiting.status == "blocked-on-user"
        world.waiting.cancel()


@pytest.mark.parametrize("case", CASES)
def test_the_same_works_where_the_right_is_granted(world, case):
    place = world.place(case, is_granted=True)
    assert not case.passed(place)
    if case.by_person is None:
        task = world.run(place, case, case.granted, case.grants)
        assert case.passed(place), world.refusals(task)
    else:
        done = subprocess.run(
            case.by_person(place), shell=True, cwd=world.workspace, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stdout + done.stderr
        if world.waiting is not None:
            world.waiting.wait(60)
        assert case.passed(place), done
