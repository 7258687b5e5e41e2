"""A directory of tools, most of them good and each of the others bad in its own way."""

import os

GOOD = """#!/bin/sh
case $TOOLBOX_ACTION in
describe) printf 'name: good_{n}\\ndescription: Tell the number {n}. Use it to test.\\nword: string? any word\\n' ;;
execute) cat; echo {n} ;;
esac
"""

DEEP = (
    '{"name": "deep", "description": "d", "inputSchema": ' + '{"properties": {"a": ' * 3000 + "{}" + "}}" * 3000 + "}"
)
BOMB = (
    '{"name": "bomb", "description": "d", "inputSchema": {"type": "object", "properties": '
    '{"a": {"$ref": "#/$defs/d0"}}, "$defs": {'
    + ", ".join(
        f'"d{i}": {{"allOf": [{{"$ref": "#/$defs/d{i + 1}"}}, {{"$ref": "#/$defs/d{i + 1}"}}]}}' for i in range(60)
    )
    + ', "d60": {"type": "string"}}}}'
)
PATTERN = (
    '{"name": "pattern", "description": "d", "inputSchema": {"type": "object", "properties": '
    '{"a": {"type": "string", "pattern": "^(a+)+$(?!b)"}}}}'
)


def _saying(text):
    return "#!/bin/sh\ncat <<'END OF IT'\n" + text + "\nEND OF IT\n"


SCRIPTS = {
    "hang": "#!/bin/sh\nsleep {forever}\n",
    "hang_on": "#!/bin/sh\ntrap '' TERM INT HUP\nwhile :; do sleep 1; done\n",
    "closes_and_hangs": "#!/bin/sh\necho 'name: x'\nexec >&- 2>&-\nsleep {forever}\n",
    "flood": "#!/bin/sh\nyes 'name: flood'\n",
    "flood_of_errors": "#!/bin/sh\nyes 'oh no' >&2\n",
    "garbage": "#!/bin/sh\nhead -c 200000 /dev/urandom\n",
    "not_utf8": "#!/bin/sh\nprintf 'name: \\377\\376\\ndescription: d\\n'\n",
    "sixty_megabytes": (
        '#!/bin/sh\nprintf \'{"name": "sixty", "description": "\'\n'
        "head -c 60000000 /dev/zero | tr '\\0' a\nprintf '\"}'\n"
    ),
    "deep": _saying(DEEP),
    "bomb": _saying(BOMB),
    "pattern": _saying(PATTERN),
    "daemon": "#!/bin/sh\nsetsid sleep {forever} >/dev/null 2>&1 &\nprintf 'name: daemon\\ndescription: d\\n'\n",
    "traversal": "#!/bin/sh\nprintf 'name: ../../etc/passwd\\ndescription: d\\n'\n",
    "ansi": "#!/bin/sh\nprintf 'name: \\033[31mred\\033]0;title\\007\\ndescription: \\033[2Jgone\\n'\n",
    "clash": GOOD.replace("{n}", "1"),
    "array": _saying("[1, 2]"),
    "fails": "#!/bin/sh\necho 'cannot do it' >&2\nexit 3\n",
    "silent": "#!/bin/sh\n",
    "no_interpreter": "#!/usr/bin/env no-such-interpreter-at-all\n",
    "writes": "#!/bin/sh\necho owned > owned.txt\nprintf 'name: writes\\ndescription: d\\n'\n",
}
READY = ("pattern", "daemon", "traversal", "ansi", "writes")
"""Those that are tools all the same: what is odd about them is kept from doing harm."""
NOT_FILES = ("fifo", "dangling", "loop", "not_executable")


def fill(directory, good, scripts=SCRIPTS, forever="1000"):
    """Write them all; the names of the files. `forever` is how long some of them sleep, and a mark to find them by."""
    os.makedirs(directory, exist_ok=True)
    for number in range(good):
        _write(os.path.join(directory, f"good_{number}"), GOOD.replace("{n}", str(number)))
    for name, text in scripts.items():
        _write(os.path.join(directory, f"bad_{name}"), text.replace("{forever}", forever))
    if scripts is not SCRIPTS:
        return sorted(os.listdir(directory))
    os.mkfifo(os.path.join(directory, "bad_fifo"))
    os.symlink("nowhere", os.path.join(directory, "bad_dangling"))
    os.symlink("bad_loop", os.path.join(directory, "bad_loop"))
    with open(os.path.join(directory, "bad_not_executable"), "w") as file:
        file.write(GOOD)
    return sorted(os.listdir(directory))


def _write(path, text):
    with open(path, "w") as file:
        file.write(text)
    os.chmod(path, 0o755)
