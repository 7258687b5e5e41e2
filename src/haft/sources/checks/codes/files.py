"""Codes about files: problems that haft sees without starting a file."""

from __future__ import annotations

from typing import Final

from haft.sources.checks.codes.model import Code

FILES: Final = (
    Code(
        "not-a-file",
        "error",
        "A toolbox contains something that is not a file.",
        "A fifo, a socket or a device is not a program, and opening it can have an effect. So haft does not open it. "
        "Remove it, or replace it by the program itself.",
        "mkfifo .agents/tools/run_tests",
        "cp run_tests .agents/tools/run_tests",
    ),
    Code(
        "dangling-link",
        "error",
        "The target of a link does not exist or cannot be reached.",
        "Fix the link or remove it. A relative link starts at the directory that contains the link.",
        "ln -s /old/place/run_tests .agents/tools/run_tests",
        "ln -s ../../scripts/run_tests .agents/tools/run_tests",
    ),
    Code(
        "leads-out",
        "error",
        "A tool of the workspace is a link to a file outside the workspace.",
        "haft does not load this tool: if it did, the author of a workspace could turn any of your programs into a "
        "tool. Copy the file into the workspace. Or add the directory of the file to AMP_TOOLBOX, or to "
        "`toolbox.paths` in your own haft.toml.",
        "ln -s /usr/local/bin/deploy .agents/tools/deploy",
        "cp /usr/local/bin/deploy .agents/tools/deploy",
    ),
    Code(
        "unreadable",
        "error",
        "A file cannot be read.",
        "haft cannot check a file that it has no permission to read. Most interpreters cannot run such a file either.",
        "chmod 000 run_tests",
        "chmod u+r run_tests",
    ),
    Code(
        "file-name",
        "error",
        "The name of a file is not UTF-8.",
        "Reports, rules and the audit log cannot contain a name that is not UTF-8. So haft does not start the file. "
        "Rename the file.",
        "a name with the byte FF",
        "run_tests",
    ),
    Code(
        "not-executable",
        "error",
        "The file is not executable (`chmod +x`).",
        "haft starts a toolbox tool as a program. So the file must be executable for the user who runs haft. `--fix` "
        "makes the file executable if it begins with `#!` or is a compiled program. Any other file is probably not a "
        "tool: move it to a directory that is not a toolbox.",
        "-rw-r--r-- run_tests",
        "chmod +x run_tests   # -rwxr-xr-x run_tests",
        fixable=True,
    ),
    Code(
        "no-shebang",
        "warning",
        "A script does not say which interpreter runs it.",
        "A script needs a first line such as `#!/usr/bin/env bash`, which names its interpreter. Without this line, "
        "haft runs the script with `/bin/sh`, as shells do. So a script in another language fails. Other agents "
        "cannot start the script at all.",
        "echo 'name: run_tests'",
        "#!/usr/bin/env bash\necho 'name: run_tests'",
    ),
    Code(
        "interpreter-missing",
        "error",
        "The interpreter that the first line names is not on this machine.",
        "A script cannot run without its interpreter. Install the interpreter, or name another interpreter in the "
        "first line. `#!/usr/bin/env NAME` finds the interpreter NAME anywhere on PATH.",
        "#!/usr/local/bin/bun",
        "#!/usr/bin/env bun",
    ),
    Code(
        "crlf-shebang",
        "error",
        "The first line ends with a carriage return.",
        "The kernel reads the carriage return as part of the interpreter's name. So the kernel does not find the "
        "interpreter, and cannot start the script. The cause is an editor or a git checkout with Windows line ends. "
        "`--fix` replaces every CRLF in the script by LF, and changes nothing else.",
        "#!/usr/bin/env bash\\r\\n",
        "#!/usr/bin/env bash\\n",
        fixable=True,
    ),
    Code(
        "bom-shebang",
        "error",
        "A byte order mark stands before `#!`.",
        "The kernel looks for `#!` in the first two bytes of the file. A byte order mark consists of three invisible "
        "bytes. If it stands before `#!`, the kernel finds no interpreter. `--fix` removes the byte order mark.",
        "EF BB BF 23 21 …",
        "23 21 …",
        fixable=True,
    ),
    Code(
        "world-writable",
        "error",
        "Everybody on this machine can change the tool.",
        "Any user of this machine can change or replace this file, and so decide what the tool does. `--fix` removes "
        "the write permission of other users. The permissions of the owner and of the group stay the same.",
        "-rwxrwxrwx run_tests",
        "-rwxr-xr-x run_tests",
        fixable=True,
    ),
    Code(
        "hidden-characters",
        "error",
        "A text or the source code of the tool has invisible characters.",
        "With invisible characters, a tool can show one text to a person and another text to a model or an "
        "interpreter. Such characters are marks that change the direction of writing, characters without width, tag "
        "characters and terminal escapes. Remove them. If source code needs such a character, write it as an escape, "
        "such as `\\u202e`.",
        '"Read a file.<U+200B><U+E0049>…"',
        '"Read a file."',
    ),
)
