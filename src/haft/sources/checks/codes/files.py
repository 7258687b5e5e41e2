"""Codes about files: problems that haft sees without starting a file."""

from __future__ import annotations

from typing import Final

from haft.sources.checks.codes.model import Code

FILES: Final = (
    Code(
        "not-a-file",
        "error",
        "A toolbox holds something that is not a file.",
        "haft did not open it: a fifo, a socket or a device cannot be run, and opening one can block or have an "
        "effect. Remove it, or put the program itself in its place.",
        "mkfifo .agents/tools/run_tests",
        "cp run_tests .agents/tools/run_tests",
    ),
    Code(
        "dangling-link",
        "error",
        "A link leads nowhere.",
        "The target of the link does not exist or cannot be reached, so there is no tool. Fix the link or remove it. A "
        "relative link starts at the directory that contains the link.",
        "ln -s /old/place/run_tests .agents/tools/run_tests",
        "ln -s ../../scripts/run_tests .agents/tools/run_tests",
    ),
    Code(
        "leads-out",
        "error",
        "A tool of the workspace is a link to a file outside the workspace.",
        "A workspace may make tools only of its own files; if it could link to other files, its author could turn any "
        "program of yours into a tool. haft does not load the tool. Copy the file, or add its directory to AMP_TOOLBOX "
        "or to `toolbox.paths` of your own configuration.",
        "ln -s /usr/local/bin/deploy .agents/tools/deploy",
        "cp /usr/local/bin/deploy .agents/tools/deploy",
    ),
    Code(
        "unreadable",
        "error",
        "A file cannot be read.",
        "haft cannot check a file without permission to read it, and most interpreters cannot run such a file either.",
        "chmod 000 run_tests",
        "chmod u+r run_tests",
    ),
    Code(
        "file-name",
        "error",
        "The name of a file is not UTF-8.",
        "A report, a rule or the audit log cannot contain a name that is not UTF-8, so haft does not start the file. "
        "Rename the file.",
        "a name with the byte FF",
        "run_tests",
    ),
    Code(
        "not-executable",
        "error",
        "The file is not executable (`chmod +x`).",
        "haft starts a toolbox tool like any program, so the file must be executable for the user who runs it. `--fix` "
        "makes the file executable if it begins with `#!` or is a compiled program. Any other file in a toolbox is "
        "probably not meant to be a tool: move it to another directory.",
        "-rw-r--r-- run_tests",
        "chmod +x run_tests   # -rwxr-xr-x run_tests",
        fixable=True,
    ),
    Code(
        "no-shebang",
        "warning",
        "A script does not say which interpreter runs it.",
        "The kernel starts a script only if its first line is `#!` and an interpreter. If that line is missing, haft "
        "runs the script with `/bin/sh`, as shells do; so a script in another language fails. Other agents cannot "
        "start the script at all.",
        "echo 'name: run_tests'",
        "#!/usr/bin/env bash\necho 'name: run_tests'",
    ),
    Code(
        "interpreter-missing",
        "error",
        "The interpreter that the first line names is not on this machine.",
        "The file cannot be started without its interpreter. Install the interpreter, or name another one that exists. "
        "`#!/usr/bin/env NAME` finds an interpreter anywhere on PATH.",
        "#!/usr/local/bin/bun",
        "#!/usr/bin/env bun",
    ),
    Code(
        "crlf-shebang",
        "error",
        "The first line ends with a carriage return.",
        "The kernel reads the carriage return as part of the interpreter's name. So it cannot start the script, and "
        "the error message does not show the reason. The cause is an editor or a checkout with Windows line ends. "
        "`--fix` replaces every CRLF of the script by a plain line end and changes no other byte.",
        "#!/usr/bin/env bash\\r\\n",
        "#!/usr/bin/env bash\\n",
        fixable=True,
    ),
    Code(
        "bom-shebang",
        "error",
        "A byte order mark stands before `#!`.",
        "The kernel looks for `#!` in the first two bytes of the file. An invisible byte order mark before `#!` takes "
        "their place, so the kernel finds no interpreter. `--fix` removes the three bytes of the mark.",
        "EF BB BF 23 21 …",
        "23 21 …",
        fixable=True,
    ),
    Code(
        "world-writable",
        "error",
        "Everybody on this machine can change the tool.",
        "Any user may change this file, or replace it in its directory, and so decide what the tool does. `--fix` "
        "removes the write permission of other users and leaves the permissions of owner and group unchanged.",
        "-rwxrwxrwx run_tests",
        "-rwxr-xr-x run_tests",
        fixable=True,
    ),
    Code(
        "hidden-characters",
        "error",
        "A text or the source has characters that people do not see.",
        "Some characters make a text mean one thing to a model or an interpreter, and another to the person who "
        "approves it: marks that change the direction of writing, characters without width, tag characters and "
        "terminal escapes. Use visible characters. In source code, write such a character as an escape, as in "
        "`\\u202e`.",
        '"Read a file.<U+200B><U+E0049>…"',
        '"Read a file."',
    ),
)
