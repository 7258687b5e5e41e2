"""Ten tools, each with one mistake, and the scenario that notices it."""

READS = """#!/usr/bin/env python3
import json, os, pathlib, subprocess, sys, time
if os.environ["TOOLBOX_ACTION"] == "describe":
    print(json.dumps({"name": NAME, "description": "A tool.", "inputSchema": {"type": "object", "properties": {
        "path": {"type": "string"}}, "required": ["path"]}}))
    sys.exit()
path = pathlib.Path(json.load(sys.stdin)["path"])
"""


def toolbox(name, body):
    return READS.replace("NAME", repr(name)) + body


def bash(name, body):
    return f"""#!/usr/bin/env bash
case $1 in
schema) cat <<'END'
{{"id": "{name}", "version": "1", "args_mode": "flags", "tools": [{{"type": "function", "function": {{"name": "{name}",
 "description": "A tool.", "parameters": {{"type": "object", "properties": {{"path": {{"type": "string"}}}},
 "required": ["path"]}}}}}}]}}
END
;;
run) {body} ;;
esac
"""


TOOLS = {
    "wrong-content": (
        "rename_setting.py",
        '''from haft import tool


@tool
def rename_setting(path: str, old: str, new: str) -> str:
    """Rename a setting in a file."""
    with open(path) as file:
        text = file.read()
    with open(path, "w") as file:
        file.write(text.replace(old, new, 1))
    return "renamed"
''',
        """\
tool: rename_setting
args: {path: app.ini, old: colour, new: color}
files:
  app.ini: |
    [window]
    colour = blue
    width = 80

    [menu]
    colour = red
expect:
  files:
    app.ini: |
      [window]
      color = blue
      width = 80

      [menu]
      color = red
""",
    ),
    "extra-file": (
        "sort_lines",
        toolbox(
            "sort_lines",
            """text = path.read_text()
pathlib.Path(f"{path}.bak").write_text(text)
path.write_text("".join(sorted(text.splitlines(True))))
""",
        ),
        """\
tool: tb__sort_lines
args: {path: names.txt}
files: {names.txt: "Noah\\nEmma\\n"}
expect:
  files: {names.txt: "Emma\\nNoah\\n"}
""",
    ),
    "split-argument": (
        "commit_file.bash",
        bash("commit_file", 'git add $3 && git commit -m "Change $3"'),
        """\
tool: commit_file
args: {path: my notes.txt}
files: {my notes.txt: "buy milk\\n"}
programs:
  git: {}
expect:
  programs:
    - {program: git, args: [add, my notes.txt]}
    - {program: git, args: [commit, -m, Change my notes.txt]}
""",
    ),
    "wrong-exit": (
        "find_todos.bash",
        bash("find_todos", 'grep -n TODO "$3" | sort || exit 1'),
        """\
tool: find_todos
args: {path: done.txt}
files: {done.txt: "all is done\\n"}
expect: {status: error, exit: 1}
""",
    ),
    "lie": (
        "count_words.py",
        '''import os

from haft import tool


@tool(readonly=True)
def count_words(path: str) -> str:
    """Count the words of a file."""
    os.mkdir("counted")
    with open(path) as file:
        return str(len(file.read().split()))
''',
        """\
tool: count_words
args: {path: a.txt}
files: {a.txt: "one two three\\n"}
expect: {output: "3"}
""",
    ),
    "hanging": (
        "show_page",
        toolbox(
            "show_page",
            """print("page 1 of", path)
print("press return for page 2", flush=True)
time.sleep(600)
""",
        ),
        """\
tool: tb__show_page
args: {path: a.txt}
files: {a.txt: "one\\n"}
timeout: 2
expect: {status: done}
""",
    ),
    "child-left": (
        "preview_site",
        toolbox(
            "preview_site",
            """subprocess.Popen(["sleep", "1000"], start_new_session=True, stdin=-3, stdout=-3, stderr=-3)
print("see", path)
""",
        ),
        """\
tool: tb__preview_site
args: {path: index.html}
files: {index.html: "<p>Hello</p>\\n"}
expect: {output: "see index.html\\n"}
""",
    ),
    "wrong-type": (
        "size_of.py",
        '''import os
from typing import TypedDict

from haft import tool


class Size(TypedDict):
    path: str
    bytes: int


@tool
def size_of(path: str) -> Size:
    """How large a file is."""
    return {"path": path, "bytes": f"{os.path.getsize(path)} bytes"}
''',
        """\
tool: size_of
args: {path: a.txt}
files: {a.txt: "one\\n"}
expect:
  result: {path: a.txt, bytes: 4}
""",
    ),
    "lost-line": (
        "last_lines",
        toolbox("last_lines", """print(*path.read_text().splitlines()[-4:-1], sep="\\n", end="")\n"""),
        """\
tool: tb__last_lines
args: {path: log.txt}
files: {log.txt: "start\\nload\\nwork\\nsave\\nstop\\n"}
expect:
  output: |
    work
    save
    stop
""",
    ),
    "lost-mode": (
        "strip_comments",
        toolbox(
            "strip_comments",
            """new = pathlib.Path(f"{path}.new")
new.write_text("".join(line for line in path.read_text().splitlines(True) if not line.startswith("# ")))
new.replace(path)
print("stripped")
""",
        ),
        """\
tool: tb__strip_comments
args: {path: run.sh}
files:
  run.sh: {content: "#!/bin/sh\\n# Says hello.\\necho hello\\n", mode: "755"}
expect:
  output: "stripped\\n"
  files:
    run.sh: {content: "#!/bin/sh\\necho hello\\n", mode: "755"}
""",
    ),
}
"""By name: the file of the tool, its text, and the scenario."""
