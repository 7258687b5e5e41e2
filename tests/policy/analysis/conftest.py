"""A small workspace, and a small table of programs, for tests of the analysis itself."""

import pytest

from haft.policy.analysis import AnalysisContext, analyse
from haft.policy.analysis.program import Program


def _not_twice(invocation):
    return "its second operand is written" if len(invocation.operands) > 1 else None


TABLE = {
    "ls": Program("-l -a -d -R --color[=word]", all_options_harmless=True),
    "cat": Program("-n", all_options_harmless=True),
    "grep": Program(
        "-r -n -i -l -E -e=word -A=number -f=path --include=word --file=path",
        operands="pattern-paths",
        patterns=("-e", "-f", "--file"),
    ),
    "echo": Program(operands="words", all_options_harmless=True),
    "printf": Program(operands="words", options_first=True),
    "head": Program("-n=number -c=number", number_option=True, all_options_harmless=True),
    "wc": Program("-l -c -w", all_options_harmless=True),
    "sort": Program("-r -n -u -k=word", harmful={"-o": "it writes a file"}),
    "uniq": Program("-c -w=number", check=_not_twice),
    "pwd": Program(operands="none"),
    "seq": Program(operands="words", all_options_harmless=True),
    "diff": Program("-u -U[=number]", all_options_harmless=True),
    "find": Program("-name=word -type=word -newer=path -print0 -print", single_dash=True, clusters=False),
    "git": Program(
        "--no-pager",
        starts_others=True,
        subcommands={"log": Program("--oneline -n=number", number_option=True), "status": Program("-s --short")},
    ),
}


@pytest.fixture
def context(tmp_path):
    workspace = tmp_path / "workspace"
    (workspace / "src" / "deep").mkdir(parents=True)
    for name in ("a.py", "b.py", "src/c.py", "src/deep/d.py", ".hidden", "with space.txt"):
        (workspace / name).write_text("text\n")
    (tmp_path / "secret").write_text("secret\n")
    (workspace / "inward").symlink_to("src/deep")
    (workspace / "outward").symlink_to(tmp_path)
    return AnalysisContext(str(workspace.resolve()), home=str(tmp_path / "home"))


@pytest.fixture
def analysed(context):
    return lambda line: analyse(line, context, TABLE)
