"""Codes about what a tool does when it is asked what it is."""

from __future__ import annotations

from typing import Final

from haft.sources.checks.codes.model import Code

ASKING: Final = (
    Code(
        "describe-not-started",
        "error",
        "The file could not be started.",
        "The kernel or this machine refused to start it, for the reason that is given. A program compiled for another "
        "kind of machine is one such case.",
        "an x86 program on an arm machine",
        "a program built for this machine",
    ),
    Code(
        "describe-timeout",
        "error",
        "It did not answer in time when it was asked to describe itself.",
        "Describing is printing a few lines: it gets 5 seconds. A tool that hangs mostly reads its input before it "
        "looks at TOOLBOX_ACTION, or loads more than a description needs.",
        'input=$(cat)\nif [ "$TOOLBOX_ACTION" = describe ]; then …',
        'case "$TOOLBOX_ACTION" in\n  describe) … ;;\n  execute) input=$(cat) … ;;\nesac',
    ),
    Code(
        "describe-slow",
        "warning",
        "It took more than a second to describe itself.",
        "Everyone who lists tools waits for it once after each change. Describe before heavy imports and before any "
        "other program is started. It was measured a second time, alone.",
        "import pandas\nif os.environ['TOOLBOX_ACTION'] == 'describe': …",
        "if os.environ['TOOLBOX_ACTION'] == 'describe': …\nimport pandas",
    ),
    Code(
        "describe-flood",
        "error",
        "It printed more than anyone reads.",
        "A description is a name, some sentences and the parameters. What prints a megabyte is doing its work instead "
        "of describing it, and was stopped.",
        "describe) cat everything.json ;;",
        "describe) cat <<'END'\nname: run_tests\n… \nEND\n;;",
    ),
    Code(
        "describe-failed",
        "error",
        "It ended with an error when it was asked to describe itself.",
        "The exit code of describe must be 0. Run `TOOLBOX_ACTION=describe ./FILE` to see what it says; the last line "
        "of its stderr is given.",
        "describe) printf 'name: x\\n'; exit 1 ;;",
        "describe) printf 'name: x\\n'; exit 0 ;;",
    ),
    Code(
        "describe-noise",
        "warning",
        "It wrote to stderr while it described itself.",
        "Progress and warnings have no place in a description: whoever lists tools sees them for every listing, and a "
        "real problem drowns in them.",
        "echo 'loading…' >&2; echo 'name: run_tests'",
        "echo 'name: run_tests'",
    ),
    Code(
        "describe-leaves-processes",
        "error",
        "It left processes behind when it had described itself.",
        "Describing must start nothing that stays. What was left was ended. Start servers and watchers on execute, "
        "and end them there.",
        "describe) start_server & echo 'name: x' ;;",
        "describe) echo 'name: x' ;;",
    ),
    Code(
        "writes-on-describe",
        "error",
        "It tried to write a file while it described itself.",
        "Describing must change nothing: it happens whenever tools are listed, before anyone approved anything. It "
        "runs where nothing can be written, and the attempt failed. Write logs, caches and settings on execute. An "
        "attempt is seen by what the tool says on stderr; what goes to its home or to /tmp is thrown away and not "
        "seen.",
        'date >> log.txt\n[ "$TOOLBOX_ACTION" = describe ] && …',
        '[ "$TOOLBOX_ACTION" = describe ] && …\ndate >> log.txt',
    ),
    Code(
        "network-on-describe",
        "error",
        "It tried to reach the network while it described itself.",
        "Describing must ask nobody: it happens whenever tools are listed, also offline, and it runs where there is "
        "no network. Ask for what is needed on execute.",
        "curl -s https://example.org/parameters.json",
        'cat "$(dirname "$0")/parameters.json"',
    ),
    Code(
        "describe-form",
        "error",
        "What it printed is no description.",
        "On TOOLBOX_ACTION=describe a tool prints one JSON object, or lines of `key: value`, to stdout and nothing "
        "else. Output that begins like JSON must be JSON to its end. Where the line at fault stands in the script "
        "itself, that line is given.",
        '{"name": "run_tests",}',
        '{"name": "run_tests", "description": "…", "args": {}}',
    ),
)
