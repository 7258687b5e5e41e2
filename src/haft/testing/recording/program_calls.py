"""Records what programs answer to a tool: repeats the call with stubs that call the real programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from haft.contracts import BadUsage
from haft.testing.recording.drafting import Draft
from haft.testing.recording.replay import scenario_of
from haft.testing.recording.secret_finder import SecretFinder
from haft.testing.running import run_scenario
from haft.testing.scenarios.masks import masked
from haft.testing.scenarios.scenario import Programs, ProgramStub
from haft.values import replace

_LONGEST_STDIN: Final = 10_000


async def record_programs(
    draft: Draft, programs: Sequence[str], run: str, folder: str, finder: SecretFinder, *, git: bool
) -> Sequence[str]:
    """Add the answers of the programs, and the calls that the scenario expects, to a draft. With `git`, the programs
    run in a git repository. Returns the programs that the tool did not call."""
    stubs = Programs(tuple(ProgramStub(each, records=True) for each in dict.fromkeys(programs)))
    scenario = replace(scenario_of(draft, folder, "recording"), programs=stubs, git=git)
    result = await run_scenario(scenario)
    if result.skipped is not None:
        raise BadUsage(f"the programs of {run} cannot be recorded on this machine: {result.skipped}")
    if wrong := [each.message for each in result.mismatches if each.path in ("programs", "tool")]:
        raise BadUsage(f"the programs of {run} cannot be recorded. {' '.join(wrong)}")
    for call in result.program_calls:
        finder.learn([call["args"], " ".join(call["args"]), call["stdin"], call.get("answer")])
    answers: dict[str, list[dict[str, Any]]] = {each: [] for each in dict.fromkeys(programs)}
    expected: list[dict[str, Any]] = []
    for call in result.program_calls:
        if "answer" not in call:
            raise BadUsage(
                f"the programs of {run} cannot be recorded, because the tool ended a call of {call['program']} early"
            )
        told = _call(call, result.workspace, finder)
        answers[call["program"]].append(told["answer"])
        expected.append(told["expected"])
    missing = [name for name, found in answers.items() if not found]
    answers = {name: found for name, found in answers.items() if found}
    if answers:
        draft.data["programs"] = answers
        draft.data["expect"]["programs"] = expected
        draft.notes.append(
            f"the answers of {', '.join(answers)} are recorded, so that the scenario does not start them"
        )
    if "git" in answers and git:
        draft.data.pop("git", None)
        draft.notes.append("git was recorded in a repository with one commit of the scenario's files")
    if answers and draft.data.pop("network", False):
        draft.notes.append("the scenario has no network, because its programs are recorded")
    return missing


def _call(call: Mapping[str, Any], workspace: str, finder: SecretFinder) -> dict[str, Any]:
    """The answer to a call, and the call as the scenario expects it. Arguments from the first one on that differs from
    run to run, because it names the workspace, or that holds a secret of the tool's own, are not compared."""
    part = f"a call of {call['program']}"
    given = call["args"]
    kept: list[str] = []
    for word, clean in zip(given, finder.masked(given, part), strict=True):
        if word != clean or workspace in word:
            break
        kept.append(word)
    answer = finder.masked({key: value for key, value in call["answer"].items() if value}, part)
    expected: dict[str, Any] = {"program": call["program"]}
    if len(kept) == len(given):
        expected["args"] = kept
    if 0 < len(call["stdin"]) <= _LONGEST_STDIN:
        expected["stdin"] = masked(finder.masked(call["stdin"], part), workspace)
    return {"answer": {"args": kept, **answer}, "expected": expected}
