import re
import subprocess
import sys

from haft.builtin import builtin_tools
from haft.contracts import Tool, is_tool_name

NAMES = ["read_file", "write_file", "edit_file", "list_directory", "find_files", "search", "shell"]


def test_the_tools_that_ship_are_these():
    tools = builtin_tools()
    assert [tool.spec.name for tool in tools] == NAMES
    for tool in tools:
        assert isinstance(tool, Tool)
        assert is_tool_name(tool.spec.name)
        assert (tool.spec.kind, tool.spec.provenance) == ("builtin", "builtin")


def test_every_parameter_is_described_and_no_other_is_accepted():
    for tool in builtin_tools():
        schema = tool.spec.input_schema
        assert schema["additionalProperties"] is False
        assert set(schema["required"]) <= set(schema["properties"])
        assert all(parameter["description"] for parameter in schema["properties"].values())
        assert tool.spec.summary.endswith(".")


def test_only_what_changes_nothing_says_so():
    readonly = {tool.spec.name for tool in builtin_tools() if tool.spec.effects.readonly}
    assert readonly == {"read_file", "list_directory", "find_files", "search"}


def test_the_digest_is_of_the_definition_and_nothing_else():
    first, second = builtin_tools(), builtin_tools()
    digests = [tool.spec.digest for tool in first]
    assert digests == [tool.spec.digest for tool in second]
    assert len(set(digests)) == len(digests)
    assert all(re.fullmatch(r"[0-9a-f]{64}", digest) for digest in digests)


def test_the_pipeline_learns_where_the_shell_keeps_its_timeout():
    shell = builtin_tools()[-1]
    assert shell.spec.meta == {"timeoutArgument": "timeout"}
    assert "timeout" in shell.spec.input_schema["properties"]


def test_importing_the_tools_loads_nothing_heavy():
    heavy = "{'pydantic', 'jsonschema_rs', 'sqlite3', 'subprocess', 'asyncio', 'hashlib', 'json'}"
    program = f"import sys, haft.builtin; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
