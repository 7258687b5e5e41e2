"""Codes about files: problems that haft sees without starting a file."""

from __future__ import annotations

from typing import Final

from haft.sources.checks.codes.model import Code

FILES: Final = (
    Code(
        "not-a-file",
        "error",
        "A toolbox holds something that is not a file.",
        "A fifo, a socket or a device cannot be run, and opening one can block or have an effect. haft did not open "
        "it. Remove it, or put the program itself there.",
        "mkfifo .agents/tools/run_tests",
        "cp run_tests .agents/tools/run_tests",
    ),
    Code(
        "dangling-link",
        "error",
        "A link leads nowhere.",
        "The target of the link does not exist or cannot be reached, so there is no tool. Fix the link or remove it; a "
        "relative link starts at the directory that it lies in.",
        "ln -s /old/place/run_tests .agents/tools/run_tests",
        "ln -s ../../scripts/run_tests .agents/tools/run_tests",
    ),
    Code(
        "leads-out",
        "error",
        "A tool of the workspace is a link out of it.",
        "A workspace may make tools only of its own files: otherwise its author could turn any program of yours into a "
        "tool. The tool is not loaded. Copy the file, or add its directory to AMP_TOOLBOX or to `toolbox.paths` "
        "of your own configuration.",
        "ln -s /usr/local/bin/deploy .agents/tools/deploy",
        "cp /usr/local/bin/deploy .agents/tools/deploy",
    ),
    Code(
        "unreadable",
        "error",
        "A file cannot be read.",
        "haft cannot check a file that it may not read, and most interpreters cannot run it either.",
        "chmod 000 run_tests",
        "chmod u+r run_tests",
    ),
    Code(
        "file-name",
        "error",
        "The name of a file is not UTF-8.",
        "Such a name cannot be written in a report, a rule or the audit log, so haft does not start the file. Rename "
        "it.",
        "a name with the byte FF",
        "run_tests",
    ),
    Code(
        "not-executable",
        "error",
        "The file has no run bit.",
        "A toolbox tool is started like any program, so the file must be executable for whoever runs it. `--fix` sets "
        "the run bit where the file begins with `#!` or is a compiled program; any other file in a toolbox is "
        "probably not meant to be a tool and belongs elsewhere.",
        "-rw-r--r-- run_tests",
        "chmod +x run_tests   # -rwxr-xr-x run_tests",
        fixable=True,
    ),
    Code(
        "no-shebang",
        "warning",
        "A script does not say which interpreter runs it.",
        "The kernel starts a script only if its first line is `#!` and an interpreter. haft runs a script without "
        "that line with `/bin/sh`, as shells do. Other hosts cannot start it, and a script in another language fails.",
        "echo 'name: run_tests'",
        "#!/usr/bin/env bash\necho 'name: run_tests'",
    ),
    Code(
        "interpreter-missing",
        "error",
        "The interpreter that the first line names is not on this machine.",
        "The file cannot be started without its interpreter. Install it, or name one that exists; `/usr/bin/env NAME` "
        "finds it anywhere in PATH.",
        "#!/usr/local/bin/bun",
        "#!/usr/bin/env bun",
    ),
    Code(
        "crlf-shebang",
        "error",
        "The first line ends with a carriage return.",
        "The kernel reads the carriage return as part of the interpreter's name, so the script cannot be started, and "
        "the error message does not show the reason. An editor or a checkout with Windows line ends causes this. "
        "`--fix` replaces every CRLF of the script by a plain line end and changes no other byte.",
        "#!/usr/bin/env bash\\r\\n",
        "#!/usr/bin/env bash\\n",
        fixable=True,
    ),
    Code(
        "bom-shebang",
        "error",
        "A byte order mark stands before `#!`.",
        "The kernel checks the first two bytes. With an invisible byte order mark before `#!`, the script has no "
        "interpreter. `--fix` removes the three bytes.",
        "EF BB BF 23 21 …",
        "23 21 …",
        fixable=True,
    ),
    Code(
        "world-writable",
        "error",
        "Everybody on this machine can change the tool.",
        "Anyone may write this file, or replace it in its directory, and so decide what the tool does. `--fix` removes "
        "the write permission of others and leaves owner and group unchanged.",
        "-rwxrwxrwx run_tests",
        "-rwxr-xr-x run_tests",
        fixable=True,
    ),
    Code(
        "hidden-characters",
        "error",
        "A text or the source has characters that people do not see.",
        "Marks that change the direction of writing, characters without width, tag characters and terminal escapes "
        "make a text mean one thing to a model or an interpreter, and another to the person who approves it. Use "
        "visible characters; in source, an escape such as `\\u202e`.",
        '"Read a file.<U+200B><U+E0049>…"',
        '"Read a file."',
    ),
)
