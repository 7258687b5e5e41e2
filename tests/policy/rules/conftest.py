"""Parts of commands without analysis: words by the shell's quoting, split at `&&`, `|` and `;`, redirections apart."""

import shlex

import pytest

from haft.policy.analysis.verdict import Analysis, Part

READS = {"ls", "cat", "grep", "git"}
DANGERS = {"rm": ("recursive-delete",), "sudo": ("privilege",)}


def command(text, **more):
    words = tuple(shlex.split(text))
    program = next((word for word in words if "=" not in word), None)
    options = {"program": program, "safe": program in READS, "reason": "", "dangers": DANGERS.get(program, ())}
    return Part("command", text, words, **{**options, **more})


def redirection(sign, target, **more):
    options = {"safe": False, "reason": "it writes", "dangers": ("home-dotfile",) if target.startswith("~") else ()}
    return Part("redirection", f"{sign} {target}", (sign, target), **{**options, **more})


def unread(text):
    return Part(
        "syntax", text, (), safe=False, reason="it is not understood", dangers=("not-understood",), literal=False
    )


def analyse(line):
    if "$(" in line:
        return Analysis((unread(line),), understood=False)
    parts = []
    for piece in line.replace("&&", "|").replace(";", "|").split("|"):
        before, sign, target = piece.partition(">")
        parts.append(command(before.strip()))
        if sign:
            parts.append(redirection(">", target.strip()))
    return Analysis(tuple(parts), understood=True)


@pytest.fixture
def of():
    """The makers of parts, by name."""
    return {"command": command, "redirection": redirection, "unread": unread, "analyse": analyse}
