"""Codes about how a tool behaves while it is described."""

from __future__ import annotations

from typing import Final

from haft.sources.checks.codes.model import Code

DESCRIBE: Final = (
    Code(
        "describe-not-started",
        "error",
        "The file could not be started.",
        "This machine cannot start the file. The report gives the reason. For example, the program was compiled for "
        "another kind of machine.",
        "an x86 program on an arm machine",
        "a program built for this machine",
    ),
    Code(
        "describe-timeout",
        "error",
        "The tool did not describe itself in time.",
        "A tool has 5 seconds to describe itself. A tool that takes longer usually reads its input before it checks "
        "TOOLBOX_ACTION, or loads libraries that the description does not need.",
        'input=$(cat)\nif [ "$TOOLBOX_ACTION" = describe ]; then …',
        'case "$TOOLBOX_ACTION" in\n  describe) … ;;\n  execute) input=$(cat) … ;;\nesac',
    ),
    Code(
        "describe-slow",
        "warning",
        "The tool took more than a second to describe itself.",
        "After each change of the tool, haft describes the tool again. The next person who lists tools must wait for "
        "the new description. Print the description before you import large libraries, and before you start another "
        "program.",
        "import pandas\nif os.environ['TOOLBOX_ACTION'] == 'describe': …",
        "if os.environ['TOOLBOX_ACTION'] == 'describe': …\nimport pandas",
    ),
    Code(
        "describe-flood",
        "error",
        "The tool printed too much while it described itself.",
        "haft stopped the tool after one megabyte of output. The tool probably does its work instead of describing "
        "itself.",
        "describe) cat everything.json ;;",
        "describe) cat <<'END'\nname: run_tests\n… \nEND\n;;",
    ),
    Code(
        "describe-failed",
        "error",
        "The tool failed to describe itself.",
        "When a tool describes itself, its exit code must be 0. Run `TOOLBOX_ACTION=describe ./FILE` to see the "
        "tool's output. The report shows the last line of stderr.",
        "describe) printf 'name: x\\n'; exit 1 ;;",
        "describe) printf 'name: x\\n'; exit 0 ;;",
    ),
    Code(
        "describe-noise",
        "warning",
        "The tool wrote to stderr while it described itself.",
        "While a tool describes itself, it should print no progress messages and no warnings. Such messages make it "
        "hard to find a real problem.",
        "echo 'loading…' >&2; echo 'name: run_tests'",
        "echo 'name: run_tests'",
    ),
    Code(
        "describe-leaves-processes",
        "error",
        "The tool left processes running after it described itself.",
        "haft ended these processes. Start servers and watchers only if TOOLBOX_ACTION is `execute`, and end them "
        "before the tool exits.",
        "describe) start_server & echo 'name: x' ;;",
        "describe) echo 'name: x' ;;",
    ),
    Code(
        "writes-on-describe",
        "error",
        "The tool tried to write a file while it described itself.",
        "While a tool describes itself, it must change nothing, because nobody has approved the tool yet. The "
        "sandbox denied the write. Write logs, caches and settings only if TOOLBOX_ACTION is `execute`. haft notices "
        "a denied write only by the tool's stderr. Writes to the home directory and to /tmp succeed, but haft "
        "deletes these files and reports nothing.",
        'date >> log.txt\n[ "$TOOLBOX_ACTION" = describe ] && …',
        '[ "$TOOLBOX_ACTION" = describe ] && …\ndate >> log.txt',
    ),
    Code(
        "network-on-describe",
        "error",
        "The tool tried to reach the network while it described itself.",
        "While a tool describes itself, its sandbox has no network, unless you grant it. Fetch data only if "
        "TOOLBOX_ACTION is `execute`.",
        "curl -s https://example.org/parameters.json",
        'cat "$(dirname "$0")/parameters.json"',
    ),
    Code(
        "describe-form",
        "error",
        "The output of the tool is not a valid description.",
        "If TOOLBOX_ACTION is `describe`, the tool must print one JSON object, or lines of the form `key: value`. It "
        "must print nothing else to stdout. If the output begins like JSON, all of it must be JSON. If the script "
        "itself contains the wrong line, the report gives the number of this line.",
        '{"name": "run_tests",}',
        '{"name": "run_tests", "description": "…", "args": {}}',
    ),
)
