"""Makes the data of a scenario from a past run: the call, the files before it, and what it did as what the scenario
expects. Secrets are masked, and files that hold secrets are left out."""

from __future__ import annotations

import datetime
import glob
import os
from collections.abc import Mapping, Sequence
from typing import Any, Final

from haft.contracts import says_secret
from haft.testing.calls import GIT
from haft.testing.recording.input_files import USUAL_MODES, InputFiles, encoded, input_files, written_files
from haft.testing.recording.nested_calls import nested_calls, texts_of
from haft.testing.recording.past_run import ChangedPath, FileState, PastRun, PastRuns
from haft.testing.recording.secret_finder import PLACEHOLDER, SecretFinder, is_secret_file
from haft.testing.recording.streams import output_of
from haft.testing.recording.tool_places import ToolPlace, WorkspaceTools
from haft.testing.scenarios.masks import days_around, masked, masked_value
from haft.values import dataclass, field, replace

_MOST_SECONDS: Final = 600


@dataclass
class Draft:
    """A scenario as data, before it was replayed."""

    data: dict[str, Any]
    notes: list[str] = field(default_factory=list)
    """What the scenario does not know, and what it left out."""


def draft_of(
    runs: PastRuns,
    run: PastRun,
    place: ToolPlace,
    tools: WorkspaceTools,
    folder: str,
    globs: Sequence[str],
    finder: SecretFinder,
) -> Draft:
    """The scenario of a run. Relative paths of tools begin at `folder`."""
    given = input_files(runs, run, globs)
    notes = [*run.notes, *given.notes]
    if place.listing.spec.digest != run.record.record["digest"]:
        notes.append("the tool, or its description, changed after the run")
    _learn(finder, run, given)
    record = run.record.record
    data: dict[str, Any] = {"tool": record["tool"]}
    nested = nested_calls(run, place, tools, finder)
    notes += nested.notes
    load = [os.path.relpath(each, folder) for each in nested.load]
    if load:
        data["load"] = load[0] if len(load) == 1 else load
    data["args"] = _placed(finder.masked(record["arguments"], "the arguments"), run)
    files = written_files(_without_secrets(given, finder, notes))
    if files:
        data["files"] = files
    if record["cwd"] not in (None, "."):
        data["cwd"] = record["cwd"]
        if not any(path.startswith(f"{data['cwd']}/") for path in files):
            data.setdefault("files", {})[f"{data['cwd']}/"] = None
    if run.repositories.get(GIT) is False:
        data["git"] = True
    if nested.servers:
        data["mcp"] = nested.servers
    if env := _environment(run, finder, notes):
        data["env"] = env
    if _used_network(run) and not nested.servers:
        data["network"] = True
        notes.append("the call used the network, and so does the scenario")
    if record["status"] == "rejected-by-user":
        data["approve"] = "none"
    data["expect"] = _expected(run, finder, notes)
    return Draft(data, notes)


def _learn(finder: SecretFinder, run: PastRun, given: InputFiles) -> None:
    """Let the finder see everything before anything is masked, so that a secret is masked wherever it is."""
    finder.learn(run.record.record["arguments"])
    finder.learn(texts_of((run.record, *run.children)))
    outcome = run.outcome
    finder.learn([outcome["output"], outcome["stderr"], outcome["result"], (outcome["error"] or {}).get("message")])
    for stream in {name for name, _data in run.pieces}:
        finder.learn(b"".join(data for name, data in run.pieces if name == stream).decode("utf-8", "replace"))
    after = [each.after for each in run.changed if each.after is not None]
    for state in (*given.files.values(), *after):
        if state.content is not None:
            finder.learn(state.content.decode("utf-8", "surrogateescape"))


def _environment(run: PastRun, finder: SecretFinder, notes: list[str]) -> dict[str, str]:
    """The variables that the tool got, with a mark in place of secret values."""
    names = dict.fromkeys([*run.record.record.get("env", ()), *run.outcome["sandbox"].get("env", ())])
    found = {}
    for name in names:
        if says_secret(name):
            found[name] = PLACEHOLDER
            notes.append(f"the variable {name} is secret: its value is masked")
        elif name in os.environ and name not in run.record.record.get("env", ()):
            finder.learn(os.environ[name])
            found[name] = finder.masked(os.environ[name], f"the variable {name}")
            notes.append(f"the variable {name} has its present value, because haft stores no values of variables")
        else:
            notes.append(f"the value of the variable {name} is not known, because haft stores no values of variables")
    return found


def _used_network(run: PastRun) -> bool:
    return any(each.get("allowed", True) for each in run.outcome["sandbox"].get("connections", ()))


def _without_secrets(given: InputFiles, finder: SecretFinder, notes: list[str]) -> dict[str, FileState]:
    """The files without those that hold secrets by their name, and with secrets in others masked."""
    found = {}
    for path, state in given.files.items():
        clean: FileState | None = state
        if is_secret_file(path) and state.kind == "file":
            masked_file = with_masked_values(state) if path in given.asked else None
            if masked_file is None:
                how = "" if path in given.asked else f"; `--files {path}` adds it with its values masked"
                notes.append(f"the file {path} is left out, because its name says that it holds secrets{how}")
                continue
            finder.masked_in[f"the file {path}"] = None
            clean = masked_file
        elif (clean := clean_file(path, state, finder)) is None:
            notes.append(f"the file {path} is left out, because it holds a secret and is no text")
            continue
        found[path] = clean
    return found


def with_masked_values(state: FileState) -> FileState | None:
    """A file of lines `NAME=VALUE` with every value masked; None for any other file."""
    try:
        lines = (state.content or b"").decode().splitlines()
    except UnicodeDecodeError:
        return None
    written = [each for each in lines if each.strip() and not each.lstrip().startswith("#")]
    if not written or not all("=" in each for each in written):
        return None
    text = "".join(f"{each.partition('=')[0]}={PLACEHOLDER}\n" for each in written)
    return replace(state, content=text.encode())


def clean_file(path: str, state: FileState, finder: SecretFinder) -> FileState | None:
    """A file with its secrets masked; None if that is not possible."""
    if state.content is None or not finder.holds(state.content):
        return state
    try:
        text = state.content.decode()
    except UnicodeDecodeError:
        return None
    return replace(state, content=finder.masked(text, f"the file {path}").encode())


def _placed(value: Any, run: PastRun) -> Any:
    """The arguments, in which paths of the workspace are relative to the working directory of the call."""
    if isinstance(value, Mapping):
        return {key: _placed(each, run) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_placed(each, run) for each in value]
    inside = run.workspace.rstrip("/") + "/"
    if isinstance(value, str) and (value == run.workspace or value.startswith(inside)) and "\n" not in value:
        cwd = os.path.normpath(os.path.join(run.workspace, run.record.record["cwd"] or "."))
        return os.path.relpath(value, cwd)
    return value


# What the scenario expects.


def _expected(run: PastRun, finder: SecretFinder, notes: list[str]) -> dict[str, Any]:
    outcome = run.outcome
    error = outcome["error"]
    found: dict[str, Any] = {"status": outcome["status"]}
    if error is not None:
        found["error"] = error["code"]
    if outcome["exitCode"] is not None:
        found["exit"] = outcome["exitCode"]
    output = output_of(run, finder)
    if output is not None:
        found["output"] = _placeholders(output, run, "the output", notes)
    else:
        notes.append("the output is left out, because a secret in it was split or cut")
    if outcome["stderr"] and outcome["stderr"] != outcome["output"]:
        found["stderr"] = _placeholders(finder.masked(outcome["stderr"], "stderr"), run, "stderr", notes)
    if outcome["result"] is not None:
        placed = "<workspace> <run>"
        result = finder.masked(outcome["result"], "the result")
        found["result"] = masked_value(_like(result, placed), result, run.workspace)
    files = _expected_files(run, finder, notes)
    if files:
        found["files"] = files
    if elsewhere := [each for each, is_made in run.repositories.items() if each != GIT or is_made]:
        found["only_changed"] = [word for each in elsewhere for word in (each, f"{glob.escape(each)}/*")]
        notes.append(f"what the call changed in {', '.join(elsewhere)} is not compared")
    return found


def _placeholders(text: str, run: PastRun, what: str, notes: list[str]) -> str:
    """A text with placeholders for the workspace and for runs, and for times of the day of the run, or of its
    seconds."""
    timeless = masked(text, run.workspace, times=(*days_around(run.record.started_at), *_clocks(run)))
    if timeless != masked(text, run.workspace):
        notes.append(f"times in {what} are not compared")
    return timeless


def _clocks(run: PastRun) -> set[str]:
    """How clocks showed the seconds of the run, here and in UTC."""
    began = int(run.record.started_at)
    ended = min(int(run.record.ended_at or began), began + _MOST_SECONDS)
    moments = [datetime.datetime.fromtimestamp(each, datetime.UTC) for each in range(began - 1, ended + 2)]
    return {f"{each:%H:%M:%S}" for moment in moments for each in (moment, moment.astimezone())}


def _like(value: Any, text: str) -> Any:
    """A value of the same shape whose texts are all `text`."""
    if isinstance(value, dict):
        return {key: _like(each, text) for key, each in value.items()}
    if isinstance(value, list):
        return [_like(each, text) for each in value]
    return text if isinstance(value, str) else value


def _expected_files(run: PastRun, finder: SecretFinder, notes: list[str]) -> dict[str, Any]:
    held = run.outcome["changes"]["state"] == "held" and run.outcome["status"] != "done"
    if held:
        notes.append("the changes of the call were held, so that the scenario expects none")
        return {}
    found: dict[str, Any] = {}
    paths = [each.path for each in run.changed]
    for each in run.changed:
        after = each.after
        if after is None:
            found[each.path] = None
        elif after.kind == "directory":
            if not any(path.startswith(f"{each.path}/") for path in paths):
                found[f"{each.path}/"] = {}
        elif after.kind == "link":
            found[each.path] = {"link": after.target}
        else:
            found[each.path] = _expected_file(each, after, run, finder, notes)
    return found


def _expected_file(changed: ChangedPath, after: FileState, run: PastRun, finder: SecretFinder, notes: list[str]) -> Any:
    path = changed.path
    mode = _expected_mode(changed.before, after)
    clean = None if is_secret_file(path) or after.content is None else clean_file(path, after, finder)
    if clean is None or clean.content is None:
        notes.append(f"the content of the file {path} after the call is left out")
        return {"kind": "file", **mode}
    content = encoded(clean.content)
    if "content" in content:
        content["content"] = _placeholders(content["content"], run, f"the file {path}", notes)
    return {**content, **mode} if mode or "base64" in content else content["content"]


def _expected_mode(before: FileState | None, after: FileState) -> dict[str, str]:
    """The mode, if the call changed it, or made an executable."""
    is_usual = after.mode in USUAL_MODES if before is None else before.mode == after.mode
    return {} if is_usual else {"mode": f"{after.mode:o}"}
