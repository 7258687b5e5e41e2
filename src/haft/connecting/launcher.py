"""The program with which rewritten lines begin, and the rules with which agents allow it.

`connecting` writes the rules, and the hook surface writes the program. It is safe to allow: without a ticket, which is
good for one command and once, it runs nothing. An agent checks its other rules against the commands that stand before
it in the line.
"""

from __future__ import annotations

import os
import shlex
from typing import Final

LAUNCHER: Final = "haft-shell"
POLICY: Final = "haft-shell.toml"
"""The file for Gemini CLI, among the person's policies."""
_POLICY: Final = """\
# Written by `haft connect gemini --hooks`, and removed by `haft connect gemini --remove`.
# haft's hook replaces `npm test` by `false && {{ npm test; }}; {program} t_… 'npm test'`. Without this rule,
# Gemini CLI would ask about `false` and about haft's program, whatever your rules say about `npm test`.
[[rule]]
toolName = "run_shell_command"
commandPrefix = ["false", "{program}"]
decision = "allow"
priority = 999
"""


def launcher_path(home: str) -> str:
    """The path of the program in a state home."""
    return os.path.join(home, "hook", LAUNCHER)


def is_plain_path(program: str) -> bool:
    """Whether a path is written without quotes in a line, and has no characters with a meaning in rules."""
    return shlex.quote(program) == program and "*" not in program


def policy_text(program: str) -> str:
    """Gemini CLI's policy that allows the program."""
    return _POLICY.format(program=program)
