"""What calls of each kind of tool read and write, before they run."""

import asyncio

import pytest

from haft import tool
from haft.builtin import builtin_tools
from haft.contracts import UNKNOWN, BadConfig, Footprint
from haft.files import Root
from haft.pipeline import Footprints

ANYTHING = Footprint(None, ())


@tool(reads=["source"], writes=["targets"])
def converts(source: str, targets: list[str], quality: int = 3) -> None:
    """Declares all."""


@tool(reads=[], writes=[], resource="postgres:main")
def queries(sql: str) -> None:
    """Touches no file."""


@tool(readonly=True, reads=["path"])
def looks(path: str = "src") -> None:
    """Reads one path."""


@tool(readonly=True)
def thinks(text: str) -> None:
    """Reads anything."""


@tool(writes=["path"])
def stores(path: str | None = None) -> None:
    """Says what it writes, and not what it reads."""


@tool
def does() -> None:
    """Declares nothing."""


CALLS = [
    ("read_file", {"path": "a"}, Footprint(("a",), ())),
    ("read_file", {"path": "link"}, Footprint(("src/x", "link"), ())),
    ("read_file", {"path": "../outside"}, ANYTHING),
    ("write_file", {"path": "new/deep", "content": ""}, Footprint(("new/deep", "new"), ("new",))),
    ("write_file", {"path": "link", "content": ""}, Footprint(("src/x", "link"), ("src/x",))),
    ("edit_file", {"path": "./src/../a", "old_string": "a", "new_string": "b"}, Footprint(("a",), ("a",))),
    ("list_directory", {}, Footprint((".",), ())),
    ("search", {"pattern": "x"}, Footprint((".",), ())),
    (
        "find_files",
        {"pattern": "*", "path": "src"},
        Footprint(("src", ".gitignore", ".ignore", ".rgignore", ".git/info/exclude"), ()),
    ),
    ("shell", {"command": "mkdir -p new/deep/er"}, Footprint(("new/deep/er", "new"), ("new",))),
    ("shell", {"command": "cp a b"}, Footprint(("a", "b"), ("b",))),
    ("shell", {"command": "cp x ../a", "cwd": "src"}, Footprint(("a", "src/x"), ("a",))),
    ("shell", {"command": "cp a b", "env": {"PATH": "/x"}}, UNKNOWN),
    ("shell", {"command": "make"}, UNKNOWN),
    ("shell", {"command": "git status"}, ANYTHING),
    ("converts", {"source": "a", "targets": ["b", "src/y"]}, Footprint(("a", "b", "src/y"), ("b", "src/y"))),
    ("queries", {"sql": "select 1"}, Footprint((), (), ("postgres:main",))),
    ("looks", {}, Footprint(("src",), ())),
    ("thinks", {"text": "x"}, ANYTHING),
    ("stores", {"path": "a"}, Footprint(None, ("a",))),
    ("stores", {"path": None}, Footprint(None, ())),
    ("does", {}, UNKNOWN),
]


def test_the_footprint_of_a_call_follows_from_its_tool_and_its_arguments(tmp_path):
    workspace = tmp_path / "workspace"
    (workspace / "src").mkdir(parents=True)
    for name in ("a", "src/x"):
        (workspace / name).write_text("a")
    (workspace / "link").symlink_to("src/x")

    async def is_confined():
        return True

    tools = {each.spec.name: each for each in (*builtin_tools(), converts, queries, looks, thinks, stores, does)}
    footprints = Footprints(Root(str(workspace)), is_confined)

    async def main():
        return {(name, str(given)): await footprints.of(tools[name], given) for name, given, _ in CALLS}

    found = asyncio.run(main())
    assert found == {(name, str(arguments)): expected for name, arguments, expected in CALLS}


@pytest.mark.parametrize(
    ("options", "message", "hint"),
    [
        (
            {"reads": ["pathh"]},
            "`reads` names `pathh`, but `one` has no parameter of this name",
            "did you mean `path`?",
        ),
        ({"writes": ["out.txt"]}, "`writes` names `out.txt`", "names the parameters that are paths, not the paths"),
        ({"writes": "path"}, '`writes="path"` must be a list', 'write `writes=["path"]`'),
    ],
)
def test_a_wrong_name_is_an_error_where_the_tool_is_defined(options, message, hint):
    def one(path: str) -> None:
        """One parameter."""

    with pytest.raises(BadConfig) as caught:
        tool(**options)(one)
    assert message in caught.value.message and hint in caught.value.hint


def test_a_tool_that_only_reads_cannot_declare_writes():
    with pytest.raises(BadConfig, match="writes nothing"):
        tool(readonly=True, writes=["path"])
