import sys
import textwrap

import pytest

from haft.sources.python import installed_tools


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Installs a distribution for real: modules and a dist-info directory on the path."""
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)

    def install(name, module, source, entries):
        (tmp_path / f"{module}.py").write_text(textwrap.dedent(source))
        info = tmp_path / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        lines = "".join(f"{entry} = {target}\n" for entry, target in entries.items())
        (info / "entry_points.txt").write_text(f"[haft.tools]\n{lines}")

    yield install
    for name in set(sys.modules) - before:
        if getattr(sys.modules[name], "__file__", None) and str(tmp_path) in (sys.modules[name].__file__ or ""):
            del sys.modules[name]


def test_tools_functions_and_lists_of_installed_packages_are_found(install):
    install(
        "acme-tools",
        "acme_tools",
        """
        from haft.sources.python import tool

        @tool(readonly=True)
        def add(a: int, b: int) -> int:
            "Add."
            return a + b

        def plain(x: str) -> str:
            "Plain."
            return x

        TOOLS = [add, plain]
        """,
        {"add": "acme_tools:add", "plain": "acme_tools:plain", "several": "acme_tools:TOOLS"},
    )
    tools, broken = installed_tools()
    assert broken == []
    assert [tool.spec.name for tool in tools] == ["add", "plain", "add", "plain"]
    assert {tool.spec.provenance for tool in tools} == {"installed"}
    assert tools[0].spec.origin == "acme-tools: add = acme_tools:add"
    assert tools[0].spec.effects.readonly
    assert tools[0](1, 2) == 3


def test_an_entry_that_fails_is_reported_and_disturbs_no_other(install):
    install(
        "bad-tools",
        "bad_tools",
        """
        from haft.sources.python import tool

        @tool
        def good() -> int:
            return 1

        def starred(*args): ...

        NUMBER = 5
        MIXED = [good, starred, 7, int]
        """,
        {
            "a missing": "no_such_module:x",
            "attribute": "bad_tools:nothing",
            "number": "bad_tools:NUMBER",
            "starred": "bad_tools:starred",
            "mixed": "bad_tools:MIXED",
            "good": "bad_tools:good",
        },
    )
    install("exiting", "exiting_tools", "raise SystemExit(3)", {"exits": "exiting_tools:x"})
    tools, broken = installed_tools()
    assert [tool.spec.name for tool in tools] == ["good", "good"]
    reasons = {entry.spec.name: entry.reason for entry in broken}
    assert "no_such_module" in reasons["a_missing"]
    assert "AttributeError" in reasons["attribute"]
    assert "not a tool, a function or a list" in reasons["number"]
    assert "`*args`" in reasons["starred"]
    assert "SystemExit" in reasons["exits"]
    assert "a `int`" in reasons["mixed-3"]
    assert {entry.spec.provenance for entry in broken} == {"installed"}
    assert all(entry.spec.origin for entry in broken)


def test_a_spec_of_an_installed_tool_leaves_the_original_alone(install):
    install("own", "own_tools", "from haft.sources.python import tool\n@tool\ndef t(): ...\n", {"t": "own_tools:t"})
    import own_tools

    [found], _ = installed_tools()
    assert found.spec.provenance == "installed"
    assert own_tools.t.spec.provenance == "embedded"
    assert found.spec.digest == own_tools.t.spec.digest
