"""Codes about how a tool behaves while it is described."""

from __future__ import annotations

from typing import Final

from haft.sources.checks.codes.model import Code

DESCRIBE: Final = (
    Code(
        "describe-not-started",
        "error",
        "The file could not be started.",
        "The kernel or this machine refused to start it; the finding gives the reason. One example is a program that "
        "was compiled for another kind of machine.",
        "an x86 program on an arm machine",
        "a program built for this machine",
    ),
    Code(
        "describe-timeout",
        "error",
        "The tool did not describe itself in time.",
        "To describe itself, a tool only prints a few lines: it gets 5 seconds. A tool that hangs usually reads its "
        "input before it checks TOOLBOX_ACTION, or loads more than a description needs.",
        'input=$(cat)\nif [ "$TOOLBOX_ACTION" = describe ]; then …',
        'case "$TOOLBOX_ACTION" in\n  describe) … ;;\n  execute) input=$(cat) … ;;\nesac',
    ),
    Code(
        "describe-slow",
        "warning",
        "The tool took more than a second to describe itself.",
        "Everyone who lists tools waits for it once after each change. Describe before heavy imports and before you "
        "start another program. haft measured the time twice, the second time with nothing else running.",
        "import pandas\nif os.environ['TOOLBOX_ACTION'] == 'describe': …",
        "if os.environ['TOOLBOX_ACTION'] == 'describe': …\nimport pandas",
    ),
    Code(
        "describe-flood",
        "error",
        "The tool printed too much.",
        "A description is a name, some sentences and the parameters. A tool that prints a megabyte does its work "
        "instead of describing it. haft stopped it.",
        "describe) cat everything.json ;;",
        "describe) cat <<'END'\nname: run_tests\n… \nEND\n;;",
    ),
    Code(
        "describe-failed",
        "error",
        "The tool failed to describe itself.",
        "The exit code of describe must be 0. Run `TOOLBOX_ACTION=describe ./FILE` to see its output; the finding "
        "shows the last line of stderr.",
        "describe) printf 'name: x\\n'; exit 1 ;;",
        "describe) printf 'name: x\\n'; exit 0 ;;",
    ),
    Code(
        "describe-noise",
        "warning",
        "The tool wrote to stderr while it described itself.",
        "A description needs no progress and no warnings: people see them at every listing, and miss a real problem "
        "among them.",
        "echo 'loading…' >&2; echo 'name: run_tests'",
        "echo 'name: run_tests'",
    ),
    Code(
        "describe-leaves-processes",
        "error",
        "The tool left processes running after it described itself.",
        "A tool must not leave processes running on describe. haft ended them. Start servers and watchers on execute, "
        "and end them there.",
        "describe) start_server & echo 'name: x' ;;",
        "describe) echo 'name: x' ;;",
    ),
    Code(
        "writes-on-describe",
        "error",
        "The tool tried to write a file while it described itself.",
        "Describe must change nothing: it runs whenever tools are listed, before anyone has approved the tool. It "
        "runs in a sandbox without write access, so the attempt failed. Write logs, caches and settings on execute. "
        "haft sees an attempt only if the tool mentions it on stderr; files in its home directory and in /tmp are "
        "discarded unseen.",
        'date >> log.txt\n[ "$TOOLBOX_ACTION" = describe ] && …',
        '[ "$TOOLBOX_ACTION" = describe ] && …\ndate >> log.txt',
    ),
    Code(
        "network-on-describe",
        "error",
        "The tool tried to reach the network while it described itself.",
        "Describe must not need the network: it runs whenever tools are listed, also offline, in a sandbox without "
        "network. Fetch what you need on execute.",
        "curl -s https://example.org/parameters.json",
        'cat "$(dirname "$0")/parameters.json"',
    ),
    Code(
        "describe-form",
        "error",
        "The output of describe is not a description.",
        "On TOOLBOX_ACTION=describe a tool prints one JSON object, or lines of `key: value`, to stdout and nothing "
        "else. Output that begins like JSON must be JSON to its end. If the faulty line is in the script "
        "itself, the finding gives its number.",
        '{"name": "run_tests",}',
        '{"name": "run_tests", "description": "…", "args": {}}',
    ),
)
