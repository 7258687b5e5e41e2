"""Draw the pictures of the documentation from the code. With `--check`, only check that they are up to date.

The layers come from the import contract in `pyproject.toml`, the stages of a call from `pipeline/order.py`.
"""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from html import escape
from pathlib import Path

TOP = Path(__file__).parent.parent
PICTURES = TOP / "docs" / "pictures"

STYLE = """
  text { font: 14px ui-sans-serif, system-ui, sans-serif; fill: #1f2328; }
  .small { font-size: 12px; fill: #59636e; }
  .name { font-family: ui-monospace, monospace; }
  rect { fill: #f6f8fa; stroke: #59636e; rx: 6; }
  .stops { fill: #fff1e5; }
  .tool { fill: #dafbe1; }
  path { stroke: #59636e; fill: none; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; } .small { fill: #9198a1; } rect { fill: #21262d; stroke: #9198a1; }
    .stops { fill: #3d2a14; } .tool { fill: #12331c; } path { stroke: #9198a1; }
  }
"""

CAPTIONS = {
    "Record": "writes the audit log; turns every failure into one outcome",
    "LimitOpen": "refuses the call, if its user has too many open ones",
    "RetryLookup": "in a batch: looks the tool up again, if an earlier call may make it",
    "Resolve": "finds the tool by its name",
    "Validate": "checks the arguments against the tool's schema",
    "Decide": "rules and command analysis: allow, ask, try or reject",
    "Approve": "waits for a person, if the call needs approval",
    "Review": "shows a person the changes of a trial run",
    "ApproveBuild": "waits for a person, before a package is built",
    "KeepOrder": "in a batch: waits for the earlier calls that it depends on",
    "TakeLocks": "waits for calls that write the same files",
    "Recall": "gives a kept answer again, if nothing has changed",
    "Queue": "waits until another call may start",
    "Prepare": "makes the environment that the tool needs",
    "Transact": "makes the call a transaction: commits, holds or discards its changes",
    "Confine": "starts the processes of the call in the sandbox",
    "ApplyLimits": "sets deadline and limits, and keeps the output",
    "Invoke": "runs the tool",
}
STOPS = {"Decide", "Approve", "Review", "ApproveBuild", "KeepOrder"}
"""Stages in which a person or a rule can reject the call."""


def layers() -> list[list[str]]:
    """The packages of each layer, the top layer first."""
    contracts = tomllib.loads((TOP / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (plan,) = (each for each in contracts if each["id"] == "layers")
    return [[name.strip() for name in layer.split("|")] for layer in plan["layers"] if layer != "__main__"]


def stages() -> list[str]:
    """The classes of the stages, in the order of a call."""
    module = ast.parse((TOP / "src/haft/pipeline/order.py").read_text())
    made = {
        target.id: node.value.func.id
        for node in ast.walk(module)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Name)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    (listed,) = (
        node.value
        for node in ast.walk(module)
        if isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple) and len(node.value.elts) > 5
    )
    found = [made[one.id] if isinstance(one, ast.Name) else one.func.id for one in listed.elts]
    if found != [*CAPTIONS]:
        sys.exit(f"scripts/pictures.py has captions for {[*CAPTIONS]}, and the stages are {found}")
    return found


def box(x: int, y: int, width: int, words: str, kind: str = "") -> str:
    middle = f'x="{x + width // 2}" y="{y + 21}" text-anchor="middle"'
    kind = f' class="{kind}"' if kind else ""
    return (
        f'<rect x="{x}" y="{y}" width="{width}" height="32"{kind}/><text class="name" {middle}>{escape(words)}</text>'
    )


def drawing(width: int, height: int, title: str, parts: Iterator[str]) -> str:
    inner = "\n  ".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
        f' role="img">\n  <title>{escape(title)}</title>\n  <style>{STYLE}  </style>\n  {inner}\n</svg>\n'
    )


def drawn_layers() -> str:
    rows = layers()

    def parts() -> Iterator[str]:
        for number, row in enumerate(rows):
            y = 12 + number * 44
            yield f'<text class="small" x="8" y="{y + 21}">{len(rows) - number}</text>'
            width = (852 - 8 * (len(row) - 1)) // len(row)
            for place, name in enumerate(row):
                yield box(28 + place * (width + 8), y, width, name)

    return drawing(888, len(rows) * 44 + 12, "The packages of haft, layer by layer: imports go down only", parts())


def drawn_call() -> str:
    found = stages()

    def parts() -> Iterator[str]:
        yield '<text class="small" x="12" y="22">service.call(name, arguments)</text>'
        for number, stage in enumerate(found):
            y = 36 + number * 44
            yield f'<path d="M 82 {y - 12} V {y} m -4 -5 l 4 5 l 4 -5"/>'
            yield box(12, y, 140, stage, "stops" if stage in STOPS else "tool" if stage == found[-1] else "")
            yield f'<text x="168" y="{y + 21}">{escape(CAPTIONS[stage])}</text>'
        end = 36 + len(found) * 44
        yield f'<text class="small" x="12" y="{end + 8}">and back again: one outcome, with a terminal status</text>'

    return drawing(680, len(found) * 44 + 56, "One call, stage by stage", parts())


STEPS = (
    ("your agent", "calls a tool", ""),
    ("rules", "allow, reject,", "or need approval"),
    ("a person", "approves,", "if needed"),
    ("sandbox", "the tool runs,", "confined"),
    ("transaction", "its file changes", "are known exactly"),
    ("outcome", "diff, apply,", "undo"),
)
"""One call as the front page shows it; `call.svg` has every stage."""


def drawn_overview() -> str:
    """One call, left to right, for somebody who has never seen haft."""
    wide, gap = 128, 20

    def parts() -> Iterator[str]:
        for number, (name, *captions) in enumerate(STEPS):
            x = 8 + number * (wide + gap)
            yield box(x, 12, wide, name, "stops" if name in ("rules", "a person") else "tool" if number == 3 else "")
            if number:
                yield f'<path d="M {x - gap} 28 H {x} m -5 -4 l 5 4 l -5 4"/>'
            for line, words in enumerate(captions):
                middle = f'x="{x + wide // 2}" y="{62 + 16 * line}" text-anchor="middle"'
                yield f'<text class="small" {middle}>{escape(words)}</text>'
            yield f'<path d="M {x + wide // 2} 84 V 98 m -4 -5 l 4 5 l 4 -5"/>'
        yield box(8, 98, len(STEPS) * (wide + gap) - gap, "audit log: every call, hash-chained")

    return drawing(len(STEPS) * (wide + gap) - gap + 16, 142, "One call of a tool, from left to right", parts())


LINE, LETTER = 19, 8.05
"""Height of a line and width of a letter in the recording."""
TERMINAL = """
  text { font: 13.4px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; fill: #d1d7e0; white-space: pre; }
  rect { fill: #0d1117; } .typed { fill: #ffffff; font-weight: 600; } .bad { fill: #ff7b72; } .good { fill: #7ee787; }
  .line { animation: appear 0.1s backwards; }
  @keyframes appear { from { opacity: 0; } }
  @media (prefers-reduced-motion: reduce) { .line { animation: none; } }
"""


def drawn_recording() -> str:
    """The console of `docs/pictures/recording.md`, line after line as a person would see it."""
    page = (PICTURES / "recording.md").read_text()
    lines = [line for block in re.findall(r"^```console\n(.*?)^```$", page, re.M | re.S) for line in block.splitlines()]
    width, height = round(max(map(len, lines)) * LETTER) + 32, len(lines) * LINE + 28
    shown, moment = [], 0.3
    for number, line in enumerate(lines):
        is_typed = line.startswith("$ ")
        moment += 1.5 if is_typed else 0.12
        kind = "typed" if is_typed else "bad" if line.startswith("error") else ""
        kind = kind or ("good" if re.match(r"r_\S+ undone|changed ", line) else "")
        place = f'x="16" y="{26 + number * LINE}" style="animation-delay: {moment:.2f}s"'
        shown.append(f'<text xml:space="preserve" class="{f"line {kind}".strip()}" {place}>{escape(line)}</text>')
        moment += 1.2 if "[y/N" in line else 0
    inner = "\n  ".join(shown)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
        f' role="img">\n  <title>A terminal recording; docs/pictures/recording.md has it as text</title>\n'
        f'  <style>{TERMINAL}  </style>\n  <rect width="{width}" height="{height}" rx="8"/>\n  {inner}\n</svg>\n'
    )


def main() -> int:
    pictures = {
        "layers.svg": drawn_layers(),
        "call.svg": drawn_call(),
        "overview.svg": drawn_overview(),
        "recording.svg": drawn_recording(),
    }
    if sys.argv[1:] == ["--check"]:
        old = [n for n, text in pictures.items() if not (p := PICTURES / n).exists() or p.read_text() != text]
        print(
            "\n".join(f"docs/pictures/{name} is old: run `make docs`" for name in old) or "the pictures show the code"
        )
        return bool(old)
    PICTURES.mkdir(exist_ok=True)
    for name, text in pictures.items():
        (PICTURES / name).write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
