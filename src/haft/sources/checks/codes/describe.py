"""Codes about how a tool behaves while it is described."""

from __future__ import annotations

from typing import Final

from haft.sources.checks.codes.model import Code

DESCRIBE: Final = (
    Code(
        "describe-not-started",
        "error",
        "The file could not be started.",
        "The kernel refused to start the file, or this machine cannot run it; the finding gives the reason. One "
        "example is a program that was compiled for another kind of machine.",
        "an x86 program on an arm machine",
        "a program built for this machine",
    ),
    Code(
        "describe-timeout",
        "error",
        "The tool did not describe itself in time.",
        "A tool has 5 seconds to describe itself, because it only prints a few lines. A tool that hangs usually reads "
        "its input before it checks TOOLBOX_ACTION, or loads more than a description needs.",
        'input=$(cat)\nif [ "$TOOLBOX_ACTION" = describe ]; then …',
        'case "$TOOLBOX_ACTION" in\n  describe) … ;;\n  execute) input=$(cat) … ;;\nesac',
    ),
    Code(
        "describe-slow",
        "warning",
        "The tool took more than a second to describe itself.",
        "After each change of the tool, the next person who lists tools waits for its description. Print the "
        "description before heavy imports, and before you start another program. haft measured the time twice, the "
        "second time with nothing else running.",
        "import pandas\nif os.environ['TOOLBOX_ACTION'] == 'describe': …",
        "if os.environ['TOOLBOX_ACTION'] == 'describe': …\nimport pandas",
    ),
    Code(
        "describe-flood",
        "error",
        "The tool printed too much.",
        "A description is a name, some sentences and the parameters. haft stopped this tool after a megabyte of "
        "output: the tool probably does its work instead of describing it.",
        "describe) cat everything.json ;;",
        "describe) cat <<'END'\nname: run_tests\n… \nEND\n;;",
    ),
    Code(
        "describe-failed",
        "error",
        "The tool failed to describe itself.",
        "When a tool describes itself, its exit code must be 0. Run `TOOLBOX_ACTION=describe ./FILE` to see its "
        "output; the finding shows the last line of stderr.",
        "describe) printf 'name: x\\n'; exit 1 ;;",
        "describe) printf 'name: x\\n'; exit 0 ;;",
    ),
    Code(
        "describe-noise",
        "warning",
        "The tool wrote to stderr while it described itself.",
        "A description needs no progress messages and no warnings: a real problem is hard to find among them.",
        "echo 'loading…' >&2; echo 'name: run_tests'",
        "echo 'name: run_tests'",
    ),
    Code(
        "describe-leaves-processes",
        "error",
        "The tool left processes running after it described itself.",
        "A tool that describes itself must not leave processes running. haft ended them. Start servers and watchers "
        "only if TOOLBOX_ACTION is `execute`, and end them before the tool exits.",
        "describe) start_server & echo 'name: x' ;;",
        "describe) echo 'name: x' ;;",
    ),
    Code(
        "writes-on-describe",
        "error",
        "The tool tried to write a file while it described itself.",
        "A tool that describes itself must change nothing: haft describes tools before anyone has approved them. The "
        "sandbox denied the write. Write logs, caches and settings only if TOOLBOX_ACTION is `execute`. haft knows of "
        "an attempt only from the tool's stderr. Writes to the home directory and to /tmp succeed, but haft deletes "
        "these files and reports nothing.",
        'date >> log.txt\n[ "$TOOLBOX_ACTION" = describe ] && …',
        '[ "$TOOLBOX_ACTION" = describe ] && …\ndate >> log.txt',
    ),
    Code(
        "network-on-describe",
        "error",
        "The tool tried to reach the network while it described itself.",
        "A tool must describe itself without network: haft describes tools also offline, and in a sandbox without "
        "network. Fetch what you need only if TOOLBOX_ACTION is `execute`.",
        "curl -s https://example.org/parameters.json",
        'cat "$(dirname "$0")/parameters.json"',
    ),
    Code(
        "describe-form",
        "error",
        "The output of describe is not a description.",
        "If TOOLBOX_ACTION is `describe`, a tool prints one JSON object, or lines of `key: value`, to stdout, and "
        "prints nothing else. Output that begins like JSON must be JSON to its end. If the script itself contains the "
        "faulty line, the finding gives the line's number.",
        '{"name": "run_tests",}',
        '{"name": "run_tests", "description": "…", "args": {}}',
    ),
)
