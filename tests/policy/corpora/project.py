"""The workspace that all lines are looked at in and run in: a small project as people have it, with traps in folders of
their own, so that ordinary lines do not step on them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

FILES = {
    "README.md": "# Orchard\n\nCounts apples.\n\n## Usage\n\n    src/main.py data/apples.csv\n\nTODO: write more.\n",
    "Makefile": "test:\n\tpython3 -m pytest -q\n\nrun:\n\tpython3 src/main.py\n",
    "package.json": '{\n  "name": "orchard",\n  "version": "1.2.0",\n  "scripts": {"test": "node test.js"},\n'
    '  "dependencies": {"left": "1.0.0"}\n}\n',
    "package-lock.json": '{\n  "name": "orchard",\n  "version": "1.2.0",\n  "lockfileVersion": 3,\n'
    '  "packages": {"": {"name": "orchard", "version": "1.2.0", "dependencies": {"left": "1.0.0"}},\n'
    '    "node_modules/left": {"version": "1.0.0"}}\n}\n',
    "node_modules/left/package.json": '{"name": "left", "version": "1.0.0"}\n',
    "requirements.txt": "requests==2.31.0\npytest>=8\n",
    "pyproject.toml": '[project]\nname = "orchard"\nversion = "1.2.0"\n',
    ".gitignore": "*.pyc\nnode_modules/\nbuild/\n",
    ".env": "API_KEY=apples-and-pears\n",
    "src/main.py": '"""Counts apples."""\n\nimport sys\n\nfrom count import count\n\n\ndef main():\n'
    "    # TODO: more fruit\n    print(count(sys.argv[1]))\n\n\nif __name__ == '__main__':\n    main()\n",
    "src/count.py": "def count(path):\n    with open(path) as file:\n        return sum(1 for _ in file)\n",
    "src/app.ts": "import { left } from 'left';\n\nexport function start(): void {\n  console.log(left('x', 3));\n}\n",
    "src/util/strings.py": "def shorten(text, most=10):\n    return text[:most]\n",
    "src/util/__init__.py": "",
    "tests/test_count.py": "from count import count\n\n\ndef test_count():\n    assert count('data/apples.csv') == 4\n",
    "docs/guide.md": "# Guide\n\nRun it. Then read `README.md`.\n",
    "docs/old notes.md": "Notes with a space in their name.\n",
    "data/apples.csv": "name,weight,colour\nbraeburn,180,red\nelstar,150,red\nboskoop,210,green\n",
    "data/numbers.txt": "3\n1\n2\n2\n10\n",
    "data/words.txt": "pear\napple\nplum\napple\n",
    "data/events.json": '{"events": [{"id": 1, "kind": "pick"}, {"id": 2, "kind": "pack"}], "total": 2}\n',
    "data/log.txt": "2024-01-01 INFO start\n2024-01-01 ERROR no apples\n"
    "2024-01-02 WARN few apples\n2024-01-02 INFO end\n",
    "notes.txt": "first line\nsecond line\nthird line\n",
    "a.txt": "alpha\nbeta\n",
    "b.txt": "alpha\ngamma\n",
    "build/out.log": "built\n",
    "odd/it's.txt": "an apostrophe\n",
    "odd/two  spaces": "spaces\n",
    "odd/$HOME": "a dollar\n",
    "odd/umlaut-ä": "umlaut\n",
    "traps/sort/-o": "",
    "traps/sort/loot": "1\n",
    "traps/sort/x": "2\n",
    "traps/find/-delete": "",
    "traps/uniq/a": "1\n",
    "traps/uniq/b": "2\n",
    "traps/sed/-i": "",
    "traps/sed/p": "x\n",
    "traps/tar/--checkpoint=1": "",
    "traps/tar/--checkpoint-action=exec=sh payload": "",
    "traps/tar/payload": "touch ran-by-tar\n",
    "traps/rg/--pre=sh": "",
    "traps/git/--output=written": "",
    "traps/script.sed": "w written-by-sed\n",
    "traps/script.awk": 'BEGIN { system("touch ran-by-awk") }\n',
    "traps/commands": "touch ran-from-a-file\n",
    "traps/arguments": "-exec\ntouch\nran-by-xargs\n;\n",
    "traps/hex": "00000000: 6869 0a  hi.\n",
    "traps/option": "-f/etc/hostname\n",
    "traps/through-links": "-Rs\n",
    "traps/names": "/etc/hostname",
    "traps/good.diff": "--- a/notes.txt\n+++ b/notes.txt\n"
    "@@ -1,3 +1,3 @@\n-first line\n+no line\n second line\n third line\n",
    "traps/patch.diff": "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n-alpha\n+omega\n beta\n",
}
PROGRAMS = {
    "traps/bin/ls": "#!/bin/sh\ntouch ran-a-planted-ls\n",
    "traps/bin/git": "#!/bin/sh\ntouch ran-a-planted-git\n",
    "traps/exec/git-planted": "#!/bin/sh\ntouch ran-a-planted-command\n",
    "traps/payload": "#!/bin/sh\ntouch ran-the-payload\n",
    "traps/bin/sort": "#!/bin/sh\ntouch ran-a-planted-sort\n",
}
LINKS = {
    "out-link": "/etc",
    "traps/hostname": "/etc/hostname",
    "traps/up": "../..",
    "docs/latest.md": "guide.md",
    "traps/written": "/tmp/through-a-link",
}
IDENTITY = {"GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@example.org", "GIT_COMMITTER_NAME": "A"} | {
    "GIT_COMMITTER_EMAIL": "a@example.org",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_SYSTEM": "/dev/null",
}


def build(place: Path) -> Path:
    """Make it, and say where it is, links resolved."""
    place.mkdir(parents=True, exist_ok=True)
    place = place.resolve()
    for name, text in FILES.items():
        if text is not None:
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_text(text)
    for name, text in PROGRAMS.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(text)
        (place / name).chmod(0o755)
    for name, target in LINKS.items():
        (place / name).symlink_to(target)
    _history(place)
    return place


def git(place: Path, *words: str, day: int = 1) -> None:
    """Run git there, as nobody in particular, on a day of January 2024."""
    date = f"2024-01-{day:02d}T12:00:00Z"
    env = {"PATH": os.defpath, "HOME": "/nonexistent", **IDENTITY}
    env |= {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
    subprocess.run(["git", *words], cwd=place, env=env, check=True, capture_output=True)


def _history(place: Path) -> None:
    git(place, "init", "-q", "-b", "main")
    git(place, "add", "README.md", "src", "data/apples.csv", ".gitignore")
    git(place, "commit", "-qm", "Count apples")
    git(place, "tag", "v1.0")
    git(place, "add", "tests", "docs", "package.json", "package-lock.json", "requirements.txt", "a.txt", "b.txt")
    git(place, "commit", "-qm", "Test and describe it", day=2)
    git(place, "branch", "feature")
    (place / "src/count.py").write_text(FILES["src/count.py"] + "\n\ndef none():\n    return 0\n")
    git(place, "commit", "-qam", "Count nothing too", day=3)
    (place / "b.txt").write_text("alpha\nchanged\n")
    git(place, "stash", "push", "-q", "b.txt", day=4)
    (place / "a.txt").write_text("alpha\nbeta, changed\n")
    (place / "docs/guide.md").write_text(FILES["docs/guide.md"] + "\nMore.\n")
    git(place, "add", "docs/guide.md", day=5)
