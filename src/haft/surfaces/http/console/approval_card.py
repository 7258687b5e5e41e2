"""The card on which a person answers a call: the question, who asks, the command with its parts, the decision part by
part, the sandbox, the changes of a trial run, and how far an approval can reach."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from haft.surfaces.http.console.diffs import ShownDiff, shown_diff
from haft.surfaces.http.console.waits import Wait
from haft.surfaces.text.json_text import to_json_text
from haft.values import dataclass, field

_DANGER: Final = re.compile(r"\(([a-z]+(?:-[a-z]+)+)\)")
_ONLY_READS: Final = re.compile(r"^`[^`]+` only reads")
"""The part itself stands beside the reason, so its program is not named again."""
_BY_RULE: Final = {"allow": "allowed by a rule", "ask": "a rule asks", "try": "a rule wants a trial run"}
_STRICTNESS: Final = {"reject": 0, "ask": 1, "delegate": 2, "try": 3, "allow": 4}
_SHOWN_AS_DIFF: Final = ("old_string", "new_string", "content", "edits")
_EDITS: Final = frozenset({"edit_file", "write_file"})


@dataclass(slots=True)
class Part:
    """A part of a command, with the decision about it."""

    number: int
    command: str
    action: str
    reason: str
    source: str | None
    danger: str | None

    @property
    def needs(self) -> bool:
        """Whether it needs approval."""
        return self.action != "allow"


@dataclass(slots=True)
class Segment:
    """A piece of the command as it was typed: a part, or what stands between parts."""

    text: str
    part: Part | None = None


@dataclass(slots=True)
class Scope:
    """One way to approve."""

    value: str
    words: str
    detail: str
    why_not: str | None = None


@dataclass(slots=True)
class Card:
    """One call that waits, as it is shown."""

    wait: Wait
    question: str
    command: list[Segment]
    needing: list[Part]
    passing: list[Part]
    arguments: list[tuple[str, str]]
    """Further arguments, in full: a person approves exactly what the page shows."""
    facts: list[tuple[str, str]]
    """The sandbox: pairs of a name and words."""
    is_sandboxed: bool
    diff: ShownDiff | None
    is_edit: bool
    """Whether the diff is only what the agent wants to write, without a trial run."""
    output: str | None
    scopes: list[Scope]
    note: str | None
    """Why no rule can allow such calls in advance."""
    offers: list[str]
    """The rules that an approval can add, in words."""
    claim: str | None
    purposes: list[str]
    notices: list[tuple[str, str, str]] = field(default_factory=list)
    """What the right half says without a trial run: a picture, a title and a text each."""

    @property
    def is_trial(self) -> bool:
        return self.wait.counts is not None and not self.is_edit

    @property
    def short_digest(self) -> str:
        """The digest as the bar prints it."""
        return f"{self.wait.digest[:6]}…{self.wait.digest[-4:]}"


def card_of(wait: Wait, workspace: str, workspace_path: str) -> Card:
    """The card of a request."""
    form = wait.form
    arguments: Mapping[str, Any] = form["args"]
    parts = _parts(form["parts"])
    command = arguments.get("command")
    segments = _segments(command, parts) if isinstance(command, str) else []
    diff, is_edit = _diff(wait)
    is_trial = wait.counts is not None
    further = {name: value for name, value in arguments.items() if not (name == "command" and segments)}
    if is_edit:
        further = {
            name: value for name, value in further.items() if name not in ("old_string", "new_string", "content")
        }
    if form["cwd"] != ".":
        further["in"] = form["cwd"]
    if form["env"]:
        further["variables"] = form["env"]
    needing = sorted(
        (each for each in parts if each.needs), key=lambda each: (not each.danger, _STRICTNESS[each.action])
    )
    sandbox = form["sandbox"]
    return Card(
        wait,
        _question(wait, workspace),
        segments,
        needing,
        [each for each in parts if not each.needs],
        [(name, value if isinstance(value, str) else to_json_text(value)) for name, value in further.items()],
        _sandbox(sandbox, workspace, workspace_path),
        sandbox["profile"] != "none",
        diff,
        is_edit,
        form["output"],
        _scopes(wait, is_trial=is_trial),
        _note(form),
        [each["label"] for each in form["toAllow"]],
        form.get("claim"),
        [each for each in form.get("purposes", ()) if each],
        [] if diff is not None else _notices(form),
    )


def _question(wait: Wait, workspace: str) -> str:
    form = wait.form
    connection = form.get("connection")
    if connection is not None:
        return f"May {wait.who} reach {connection['host']}:{connection['port']}?"
    if form.get("question") is not None:
        return f"{wait.tool} asks"
    if form.get("build") is not None:
        return f"May haft build the packages of {wait.tool}?"
    if form["definitionDiff"] is not None:
        return f"{wait.tool} has changed. May {wait.who} still call it?"
    if wait.counts is not None:
        return f"Commit this trial run to {workspace}?"
    if wait.tool in _EDITS and isinstance(path := form["args"].get("path"), str):
        return f"May {wait.who} change {path}?"
    return f"May {wait.who} run this in {workspace}?" if wait.tool == "shell" else f"May {wait.who} call {wait.tool}?"


def _parts(parts: Sequence[Mapping[str, Any]]) -> list[Part]:
    return [Part(number, each["command"], each["action"], *_explained(each)) for number, each in enumerate(parts, 1)]


def _explained(part: Mapping[str, Any]) -> tuple[str, str | None, str | None]:
    """The reason, where the rule is written, and the class of danger that the reason names."""
    reason, source = part["reason"], part.get("source")
    if part.get("rule") is not None and reason.startswith("the rule says"):
        reason = _BY_RULE.get(part["action"], reason)
    reason = _ONLY_READS.sub("only reads", reason)
    found = _DANGER.search(reason)
    if found is None:
        return reason, source, None
    return reason.replace(f" ({found[1]})", ""), source, found[1]


def _segments(command: str, parts: Sequence[Part]) -> list[Segment]:
    """The command in pieces. A part that does not stand in the command as it was decided, such as one behind a
    variable, has no piece of its own."""
    places = []
    taken: list[tuple[int, int]] = []
    for part in parts:
        at = command.find(part.command)
        while at >= 0 and any(at < end and start < at + len(part.command) for start, end in taken):
            at = command.find(part.command, at + 1)
        if at >= 0 and part.command:
            taken.append((at, at + len(part.command)))
            places.append((at, part))
    places.sort(key=lambda place: place[0])
    for number, (_, part) in enumerate(places, 1):
        part.number = number
    for number, part in enumerate((each for each in parts if each not in [one for _, one in places]), len(places) + 1):
        part.number = number
    pieces, end = [], 0
    for at, part in places:
        if at > end:
            pieces.append(Segment(command[end:at]))
        pieces.append(Segment(part.command, part))
        end = at + len(part.command)
    if end < len(command):
        pieces.append(Segment(command[end:]))
    return pieces


def _diff(wait: Wait) -> tuple[ShownDiff | None, bool]:
    """What changes: of a trial run what it did, of an edit what the agent wrote; and whether it is such an edit."""
    form = wait.form
    if form["diff"] is not None:
        return shown_diff(form["diff"]), False
    if form["definitionDiff"] is not None:
        return shown_diff(form["definitionDiff"]), True
    arguments = form["args"]
    path = arguments.get("path")
    if wait.tool not in _EDITS or not isinstance(path, str) or "\n" in path:
        return None, False
    if isinstance(content := arguments.get("content"), str):
        pairs = [("", content)]
    else:
        edits = arguments.get("edits")
        edits = edits if isinstance(edits, list) else [arguments]
        pairs = [
            (str(each.get("old_string", "")), str(each.get("new_string", "")))
            for each in edits
            if isinstance(each, dict)
        ]
    hunks = "".join(_hunks(old, new) for old, new in pairs)
    head = "new file mode 100644\n" if "content" in arguments else ""
    return (shown_diff(f"diff --git a/{path} b/{path}\n{head}{hunks}"), True) if hunks else (None, False)


def _hunks(old: str, new: str) -> str:
    before, after = old.splitlines(), new.splitlines()
    return "".join(f"{line}\n" for line in list(difflib.unified_diff(before, after, n=3, lineterm=""))[2:])


def _sandbox(sandbox: Mapping[str, Any], workspace: str, path: str) -> list[tuple[str, str]]:
    """The sandbox in pairs, for people: what it may write, reach and read."""
    if sandbox["profile"] == "none":
        return []
    scratch = {"thread": "this thread's /tmp", "call": "an empty /tmp"}.get(sandbox.get("scratch") or "", "")
    written = [workspace if each == path else each for each in sandbox["writable"]]
    writes = [*written, *([scratch] if scratch else [])]
    network = sandbox["network"]
    reach = "none" if not network else "all of it" if network is True else ", ".join(network)
    found = [("Writes", ", ".join(writes) or "nothing"), ("Network", reach)]
    if sandbox["readable"]:
        found.append(("Reads too", ", ".join(sandbox["readable"])))
    found.append(("Secrets", ", ".join(sandbox["env"]) or "none"))
    if sandbox["path"]:
        found.append(("PATH", ", ".join(sandbox["path"])))
    return found


def _scopes(wait: Wait, *, is_trial: bool) -> list[Scope]:
    form = wait.form
    can_last = bool(form["toAllow"]) and not is_trial
    rule = form["toAllow"][0]["label"] if form["toAllow"] else ""
    is_plain = form.get("question") is None and form.get("build") is None and form.get("connection") is None
    over = "The trial run is over: its changes are committed or not."
    no_rule = over if is_trial else "No rule can allow such calls in advance."
    is_confined = form["sandbox"]["profile"] != "none"
    return [
        Scope("once", "once", _once(wait)),
        Scope("thread", "for this thread", f"Also later in {wait.thread_name}: {rule}.", None if can_last else no_rule),
        Scope("always", "always", f"From now on, for you: {rule}.", None if can_last else no_rule),
        Scope(
            "grant",
            "with a grant",
            "Opens the sandbox for this call only.",
            None if is_plain and is_confined and not is_trial else over if is_trial else "There is no sandbox to open.",
        ),
        Scope(
            "edited",
            "edited",
            "You change the arguments. The new call is decided again.",
            None if is_plain and not is_trial else over,
        ),
    ]


def _once(wait: Wait) -> str:
    """What an approval does, in a sentence."""
    form = wait.form
    if wait.counts is not None:
        count = wait.counts[2]
        dangers = dict.fromkeys(each.danger for each in _parts(form["parts"]) if each.danger)
        with_danger = f", with {', '.join(filter(None, dangers))}" if dangers else ""
        return f"Commits {count} {'change' if count == 1 else 'changes'}{with_danger}."
    if form.get("connection") is not None:
        return "Lets this connection through, for the rest of this call."
    if wait.tool in _EDITS:
        return f"Writes {wait.subject}."
    return "Runs exactly this call, once."


def _note(form: Mapping[str, Any]) -> str | None:
    if form["toAllow"] or form["diff"] is not None or form.get("question") is not None:
        return None
    return "No “always”: it runs any code that it gets, or is dangerous."


def _notices(form: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """What is known about a call without a trial run."""
    if form.get("connection") is not None:
        return [("nonet", *_CONNECTION)]
    if form["sandbox"]["profile"] == "none":
        return [("edit", *_IN_PROCESS)]
    found = [("edit", *_NOT_TRIED)]
    return [*found, ("warn", *_NETWORK)] if form["sandbox"]["network"] else found


_CONNECTION: Final = (
    "One connection, not the whole network.",
    "The call waits at this connection. Undo does not reach the network: it cannot take back what was sent.",
)
_IN_PROCESS: Final = (
    "There was no trial run.",
    "This tool runs in haft's own process. haft records the files it changes.",
)
_NOT_TRIED: Final = (
    "The changes are not known yet.",
    "haft records every file that the call changes. If you do not like the result, undo takes back exactly this call.",
)
_NETWORK: Final = (
    "Undo does not reach the network.",
    "haft lists every connection, and cannot take back what was sent. Name the hosts to keep that narrow.",
)
