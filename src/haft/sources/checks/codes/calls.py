"""Codes about what a tool does when it is called, which only `haft tools check --conformance` reports."""

from __future__ import annotations

from typing import Final

from haft.sources.checks.codes.model import Code

CALLS: Final = (
    Code(
        "tool-not-called",
        "note",
        "The tool was not called, so nothing is known about its calls.",
        "haft does not call a tool that works on another machine, or whose process has the network or other grants. It "
        "cannot call a tool that is broken, disabled, or waits for its configuration.",
        "[providers.shop]\nurl = …",
        "[providers.notes]\ncommand = …",
    ),
    Code(
        "description-unstable",
        "error",
        "Two descriptions of the unchanged tool differ.",
        "An approval is bound to the description. If the description changes by itself, people must approve the tool "
        "again and again. Put no times, counters, random orders or variables into it.",
        'echo "description: Sends mail. It is $(date)."',
        'echo "description: Sends mail."',
    ),
    Code(
        "call-hangs",
        "error",
        "A call with valid arguments does not end.",
        "The tool probably waits for more input, or for something that is not there. haft ends it at the deadline.",
        "read -r answer < /dev/tty",
        "read -r answer || answer=",
    ),
    Code(
        "call-crashes",
        "error",
        "A call with valid arguments ends by a signal.",
        "The program has a fault, such as an access to memory that is not its own.",
        "char name[8]; strcpy(name, given);",
        'if (strlen(given) > 7) fail("the name is too long");',
    ),
    Code(
        "call-traceback",
        "warning",
        "A call with valid arguments fails with an error of the tool's own code.",
        "An agent reads the message, and corrects its call. A traceback tells it little. Check the arguments, and say "
        "which one is wrong and what it must be.",
        "open(path).read()",
        'if not os.path.isfile(path):\n    sys.exit(f"there is no file {path}")',
    ),
    Code(
        "call-leaves-processes",
        "error",
        "A process of the tool still runs after the call.",
        "haft ends it with the call. What it was still to do is then not done.",
        "upload report.txt &",
        "upload report.txt",
    ),
    Code(
        "readonly-writes",
        "error",
        "The tool claims that it only reads, and writes files.",
        "haft approves calls more easily, and answers from its cache, if a tool only reads. The sandbox lets such a "
        "tool write nothing, so its calls fail.",
        "@tool(readonly=True)\ndef count(path: str) -> int:\n    Path('cache').write_text(…)",
        "@tool\ndef count(path: str) -> int:\n    Path('cache').write_text(…)",
    ),
)
