"""Codes about files: what can be seen without starting anything."""

from __future__ import annotations

from typing import Final

from haft.sources.checks.codes.model import Code

FILES: Final = (
    Code(
        "not-a-file",
        "error",
        "A toolbox holds something that is not a file.",
        "A fifo, a socket or a device cannot be run, and opening one can block or act. Nothing was opened. Remove it, "
        "or put the program itself there.",
        "mkfifo .agents/tools/run_tests",
        "cp run_tests .agents/tools/run_tests",
    ),
    Code(
        "dangling-link",
        "error",
        "A link leads nowhere.",
        "What the link names does not exist or cannot be reached, so there is no tool. Mend the link or remove it; a "
        "relative link is read from the directory that it lies in.",
        "ln -s /old/place/run_tests .agents/tools/run_tests",
        "ln -s ../../scripts/run_tests .agents/tools/run_tests",
    ),
    Code(
        "leads-out",
        "error",
        "A tool of the workspace is a link out of it.",
        "A workspace brings its own files and does not make tools of others: whoever wrote it could name any program "
        "of yours. The tool is not loaded. Copy the file, or add its directory to AMP_TOOLBOX or to `toolbox.paths` "
        "of your own configuration.",
        "ln -s /usr/local/bin/deploy .agents/tools/deploy",
        "cp /usr/local/bin/deploy .agents/tools/deploy",
    ),
    Code(
        "unreadable",
        "error",
        "A file cannot be read.",
        "Nothing can be said of a file that may not be read, and most interpreters cannot run it either.",
        "chmod 000 run_tests",
        "chmod u+r run_tests",
    ),
    Code(
        "file-name",
        "error",
        "The name of a file is not UTF-8.",
        "Such a name cannot be written in a report, a rule or a record, and it is not started. Rename the file.",
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
        "The kernel starts a script only when its first line is `#!` and an interpreter. haft runs such a file with "
        "`/bin/sh`, as shells do; other hosts cannot start it, and what is written for another shell or language "
        "breaks.",
        "echo 'name: run_tests'",
        "#!/usr/bin/env bash\necho 'name: run_tests'",
    ),
    Code(
        "interpreter-missing",
        "error",
        "The interpreter that the first line names is not on this machine.",
        "The file cannot be started without it. Install it, or name one that is there; `/usr/bin/env NAME` finds it "
        "wherever PATH has it.",
        "#!/usr/local/bin/bun",
        "#!/usr/bin/env bun",
    ),
    Code(
        "crlf-shebang",
        "error",
        "The first line ends with a carriage return.",
        "The kernel takes the carriage return for a part of the interpreter's name, so the script is not found to be "
        "startable, with a message that shows nothing of it. It comes from an editor or a checkout with Windows line "
        "ends. `--fix` makes every CRLF of the script a plain line end and changes no other byte.",
        "#!/usr/bin/env bash\\r\\n",
        "#!/usr/bin/env bash\\n",
        fixable=True,
    ),
    Code(
        "bom-shebang",
        "error",
        "A byte order mark stands before `#!`.",
        "The kernel looks at the first two bytes. An invisible byte order mark before them makes the script one "
        "without an interpreter. `--fix` takes the three bytes away.",
        "EF BB BF 23 21 …",
        "23 21 …",
        fixable=True,
    ),
    Code(
        "world-writable",
        "error",
        "Everybody on this machine can change what runs.",
        "A file that anyone may write, or that lies in a directory where anyone may replace it, is a tool of whoever "
        "came last. `--fix` takes the right to write away from others and leaves owner and group as they are.",
        "-rwxrwxrwx run_tests",
        "-rwxr-xr-x run_tests",
        fixable=True,
    ),
    Code(
        "hidden-characters",
        "error",
        "A text or the source holds characters that nobody sees.",
        "Marks that turn the direction of writing, characters of no width, tag characters and terminal escapes make a "
        "text say something else to a model or an interpreter than to the person who approves it. Write what is meant "
        "with visible characters; in source, as an escape such as `\\u202e`.",
        '"Read a file.<U+200B><U+E0049>…"',
        '"Read a file."',
    ),
)
