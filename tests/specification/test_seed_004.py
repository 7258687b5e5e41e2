"""What the chapter on tool templates says, sentence by sentence: each test quotes the words that it holds haft to.

`haft` stands where the chapter says "Agent Studio". One template gets real environments; the others run in that of
these tests, which holds all that they require.
"""

import ast
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
import zipfile
from pathlib import Path

import pytest

from haft.authoring.studio.installer import install
from haft.authoring.studio.packer import pack
from haft.contracts import BadUsage, Environment
from haft.sources.agent_studio.check import check_template
from haft.sources.agent_studio.names import is_template_name, new_folder_name, slug_of
from haft.sources.agent_studio.requirements import parse_requirements
from haft.sources.agent_studio.template_reader import read_template
from haft.surfaces.cli.main import run as haft
from haft.testing import ToolBench, haft_tools
from haft.toolsets import environments

__all__ = ["haft_tools"]

EXAMPLE = Path(__file__).parents[2] / "examples/json-reader"
DOCSTRING = '''"""
Description of what this tool does.
This text is extracted as the tool's description and shown to agents.
"""
'''
USER = '''
from pydantic import BaseModel
from typing import Optional

class UserParameters(BaseModel):
    """Configuration parameters set once when the tool is added to a workflow."""
    api_key: str                        # Required parameter
    endpoint: Optional[str] = None      # Optional parameter with default
'''
NO_USER = """
from pydantic import BaseModel

class UserParameters(BaseModel):
    pass
"""
TOOL = '''
from pydantic import BaseModel, Field

class ToolParameters(BaseModel):
    """Arguments passed by an agent each time it invokes this tool."""
    query: str = Field(description="The search query to execute")
    max_results: int = Field(default=10, description="Maximum number of results")
'''
RUN = '''
from typing import Any

def run_tool(config: UserParameters, args: ToolParameters) -> Any:
    """Main tool logic. Return value is sent back to the calling agent."""
    result = do_work(config, args.query)
    return result

def do_work(config, query):
    return query
'''
KEY = """
OUTPUT_KEY = "tool_output"
"""
MAIN = """
import json
import argparse

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--user-params", required=True, help="JSON string of UserParameters")
    parser.add_argument("--tool-params", required=True, help="JSON string of ToolParameters")
    args = parser.parse_args()

    config = UserParameters(**json.loads(args.user_params))
    params = ToolParameters(**json.loads(args.tool_params))

    output = run_tool(config, params)
    print(OUTPUT_KEY, output)
"""
DIGEST = "9c4e5293027e1c3b528ec42ef373cec3465066fcc48e3fe96c2ecdfeacdfed9f"
"""Of the chapter's complete example."""
PARTS = {"docstring": DOCSTRING, "user": NO_USER, "tool": TOOL, "run": RUN, "key": KEY, "main": MAIN}
WHOLE = "".join(PARTS.values())


def source(**changes):
    """A template made of the chapter's own parts, with changes."""
    return "".join({**PARTS, **changes}.values())


def doing(body, **changes):
    """A template whose `do_work(config, query)` is this."""
    work = "\ndef do_work(config, query):\n" + textwrap.indent(textwrap.dedent(body), "    ") + "\n"
    return source(run=RUN.partition("\ndef do_work")[0] + work, **changes)


def write(folder, text=WHOLE, requirements="pydantic\n", **files):
    """A template on disk."""
    folder.mkdir(parents=True)
    (folder / "tool.py").write_text(text)
    (folder / "requirements.txt").write_text(requirements)
    for name, content in files.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(exist_ok=True)
        path.write_text(content)
    return folder


def codes(folder, **how):
    """What is found wrong with a template, but for how well it is described."""
    found = check_template(str(folder), **how).findings
    return [finding.code for finding in found if finding.code.startswith("studio")]


class OfTheTests:
    """Environments that are there already: each is that of these tests."""

    def __init__(self, *_given):
        steps = {sys.prefix, sys.base_prefix, os.path.dirname(os.path.realpath(sys.executable))}
        self._environment = Environment(sys.executable, tuple(steps), "test")

    def current(self, _folder):
        return self._environment

    async def prepare(self, _folder, _told=None):
        return self._environment


class Studio:
    """A workspace whose templates are tools, and a service that is open while the tests run."""

    def __init__(self, bench):
        self.bench, self.workspace = bench, bench.workspace
        (self.workspace / "haft.toml").write_text('[templates]\npaths = ["./templates"]\n')

    def write(self, name, text=WHOLE, **files):
        return write(self.workspace / "templates" / name, text, **files)

    def call(self, name, **arguments):
        return self.bench.call(name, **{"query": "words", **arguments})

    def listing(self, name):
        """What is listed under a name; None where nothing is. A call that lacks its arguments has haft look again."""
        assert self.bench.call(name).status == "error"
        return self.bench.tools().get(name)


@pytest.fixture(scope="module")
def studio(tmp_path_factory):
    place = tmp_path_factory.mktemp("studio")
    (place / "workspace").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(place / "config"))
        patch.setattr(environments, "TemplateEnvironments", OfTheTests)
        with ToolBench(place / "workspace", place / "state", environ=os.environ) as bench:
            yield Studio(bench)


# What they are.


def test_tool_templates_are_one_type_of_several(tmp_path):
    """ "Tool templates are the most complex template type." What is packed has room for the others."""
    pack([str(write(tmp_path / "my tool"))], str(tmp_path / "a.zip"))
    with zipfile.ZipFile(tmp_path / "a.zip") as packed:
        said = json.loads(packed.read("workflow_template.json"))
    assert {key: len(value) for key, value in said.items() if key.endswith("_templates")} == {
        "tool_templates": 1,
        "agent_templates": 0,
        "task_templates": 0,
        "mcp_templates": 0,
    }


def test_a_fresh_template_is_conformant(tmp_path, capsys):
    """ "This chapter is the authoritative reference for building conformant tool templates."."""
    (tmp_path / "haft.toml").touch()
    assert haft(["-w", str(tmp_path), "tools", "make", "count_lines", "--studio"]) == 0
    folder = tmp_path / "templates/count_lines"
    report = check_template(str(folder), packing=True)
    assert report.ok
    assert [one.code for one in report.findings] == ["unchanged-template"], "a warning that its text is not its own yet"


# Required files.


def test_each_tool_is_a_self_contained_package_that_agents_invoke_at_runtime(studio):
    """ "Each tool is a self-contained Python package that agents invoke at runtime." "Optional additional files are
    permitted": "README.md", "helper_module.py  # Additional Python modules", "data/  # Data files the tool uses"."""
    body = """
    import helper_module
    from pathlib import Path
    config = json.loads((Path(__file__).parent / "data/config.json").read_text())
    return helper_module.shout(query + config["mark"])
    """
    more = {"README.md": "# Shout\n", "data__config.json": '{"mark": "!"}'}
    folder = studio.write(
        "shout it", doing(body), **{"helper_module.py": "def shout(text): return text.upper()"}, **more
    )
    assert studio.call("shout_it").output == "WORDS!"
    assert codes(folder) == []


@pytest.mark.parametrize("name", ["tool.py", "requirements.txt"])
def test_every_directory_must_contain_both_files(studio, name):
    """ "Every tool template directory must contain": "tool.py  # REQUIRED: Main entrypoint" and "requirements.txt
    # REQUIRED: Python dependencies"."""
    folder = studio.write(f"without {name[:4]}")
    (folder / name).unlink()
    assert codes(folder) == ["studio-structure"]
    listing = studio.listing(f"without_{name[:4]}")
    if name == "tool.py":
        assert listing is None, "a folder without an entrypoint is no template"
    else:
        assert listing.state == "broken" and f"there is no {name}" in listing.reason


# The entrypoint.


@pytest.mark.parametrize(
    ("part", "code", "packing"),
    [
        ("docstring", "studio-docstring", "studio-pack-docstring"),
        ("user", "studio-user-parameters", None),
        ("tool", "studio-tool-parameters", None),
        ("run", "studio-run-tool", None),
        ("key", "studio-output-key", None),
        ("main", "studio-main", None),
    ],
)
def test_the_entrypoint_must_contain_all_components(tmp_path, part, code, packing):
    """ "The entrypoint file must contain all of the following components." Where the chapter lets one be missing, that
    is a warning."""
    folder = write(tmp_path / "my tool", source(**{part: "\nfrom pydantic import BaseModel\n"}))
    found = codes(folder)
    assert code in found, found
    assert check_template(str(folder)).ok == (part in ("docstring", "key"))
    if packing is not None:
        assert packing in codes(folder, packing=True)
        assert not check_template(str(folder), packing=True).ok


def test_presence_is_validated_via_ast_parsing(tmp_path):
    """ "Agent Studio validates their presence via Python AST parsing": nothing is run, not even what cannot be."""
    folder = write(tmp_path / "my tool", WHOLE + f"\nopen({str(tmp_path / 'ran')!r}, 'w')\nimport no_such_module\n")
    assert codes(folder) == []
    write(tmp_path / "broken", "class (")
    assert not check_template(str(tmp_path / "broken")).ok
    assert not (tmp_path / "ran").exists()


def test_the_docstring_is_the_description(studio, capsys):
    """ "The module-level docstring is extracted via ast.get_docstring() and used as the tool's description in the UI
    and in agent prompts." "This text is extracted as the tool's description and shown to agents."."""
    studio.write("described")
    said = ast.get_docstring(ast.parse(WHOLE))
    assert studio.listing("described").spec.description == said
    assert said.startswith("Description of what this tool does.\nThis text")
    haft(["-w", str(studio.workspace), "tools", "show", "described", "--as", "openai"])
    assert json.loads(capsys.readouterr().out)["function"]["description"] == said


# UserParameters.


def test_user_parameters_are_set_once_per_tool_instance(haft_tools, monkeypatch):
    """ "Configuration parameters set once when the tool is added to a workflow." "Defines configuration that is set
    once per tool instance (API keys, database URLs, etc.)"."""
    monkeypatch.setattr(environments, "TemplateEnvironments", OfTheTests)
    work = """
    import os
    own = f"/proc/{os.getpid()}/cmdline"
    return [config.api_key[::-1], config.endpoint, open(own).read() if os.path.exists(own) else ""]
    """
    write(
        haft_tools.workspace / "templates/api",
        doing(work, user=USER, main=MAIN.replace("output)", "json.dumps(output))")),
    )
    (haft_tools.workspace / "haft.toml").write_text(
        """
        [[templates.instances]]
        name = "Our Search"
        template = "./templates/api"
        user_params = {api_key = "the-key-of-ours", endpoint = "db://ours"}

        [[templates.instances]]
        name = "Their Search"
        template = "./templates/api"
        user_params = {api_key = "the-key-of-theirs"}
        """
    )
    found = {}
    for name in ("our_search", "their_search"):
        outcome = haft_tools.call(name, query="words")
        *found[name], command_line = outcome.result
        assert "the-key" not in command_line
        assert list(haft_tools.tools()[name].spec.input_schema["properties"]) == ["query", "max_results"]
    assert found == {"our_search": ["sruo-fo-yek-eht", "db://ours"], "their_search": ["srieht-fo-yek-eht", None]}
    assert "api" not in haft_tools.tools()


def test_a_tool_that_lacks_a_required_user_parameter_says_which(studio):
    """ "api_key: str  # Required parameter"."""
    studio.write("keyless", source(user=USER))
    listing = studio.listing("keyless")
    assert listing.state == "needs-config" and "`api_key`" in listing.reason and "endpoint" not in listing.reason


def test_the_classes_must_inherit_from_base_model(tmp_path):
    """ "Must inherit from pydantic.BaseModel", which the chapter says of both."""
    for name in ("UserParameters", "ToolParameters"):
        folder = write(tmp_path / name, WHOLE.replace(f"class {name}(BaseModel)", f"class {name}"))
        assert codes(folder) == ["studio-base"]
        other = write(
            tmp_path / f"{name} of pydantic", WHOLE.replace(f"{name}(BaseModel)", f"{name}(pydantic.BaseModel)")
        )
        (other / "tool.py").write_text("import pydantic\n" + (other / "tool.py").read_text())
        assert "studio-base" not in codes(other)


@pytest.mark.parametrize(
    ("name", "other", "code"),
    [
        ("UserParameters", "UserParams", "studio-user-parameters"),
        ("ToolParameters", "Toolparameters", "studio-tool-parameters"),
        ("run_tool", "run", "studio-run-tool"),
    ],
)
def test_names_are_exact(tmp_path, name, other, code):
    """ "Must be named exactly UserParameters", "Must be named exactly ToolParameters", "Must be named exactly
    run_tool"."""
    assert code in codes(write(tmp_path / "my tool", re.sub(rf"\b{name}\b", other, WHOLE)))


def test_user_parameters_can_be_empty(studio):
    """ "Can be empty (pass) if no configuration is needed"."""
    assert "class UserParameters(BaseModel):\n    pass\n" in WHOLE
    studio.write("empty handed")
    assert studio.call("empty_handed").output == "words"


def test_parameter_metadata_is_extracted_via_ast():
    """ "Optional[T] → marked as not required", "Fields with default values → marked as not required", "All other fields
    → marked as required"."""
    fields = """
    maybe: Optional[int]
    either: Optional[int] = 3
    number: int = 3
    described: int = Field(description="x")
"""
    found = read_template(source(user=USER + fields).encode())
    assert {one.name: one.required for one in found.user.fields} == {
        "api_key": True,
        "endpoint": False,
        "maybe": False,
        "either": False,
        "number": False,
        "described": True,
    }


# ToolParameters.


def test_arguments_are_passed_with_each_call(studio):
    """ "Arguments passed by an agent each time it invokes this tool."."""
    studio.write("each time")
    assert [studio.call("each_time", query=word).output for word in ("one", "two")] == ["one", "two"]


def test_descriptions_are_passed_to_the_agent(studio):
    """ "Field(description=...) annotations are passed to the LLM agent as parameter descriptions — these help the agent
    decide what values to pass"."""
    studio.write("told")
    assert studio.listing("told").spec.input_schema["properties"] == {
        "query": {"type": "string", "description": "The search query to execute"},
        "max_results": {"type": "integer", "description": "Maximum number of results", "default": 10},
    }
    assert studio.listing("told").spec.input_schema["required"] == ["query"]


TYPES = """
from typing import List, Literal, Optional
from pydantic import BaseModel

class ToolParameters(BaseModel):
    query: str
    text: str
    whole: int
    part: float
    truth: bool
    several: List[str]
    maybe: Optional[int]
    choice: Literal["val1", "val2"]
"""


def test_supported_types(studio):
    """'Supported types: str, int, float, bool, List[T], Optional[T], Literal["val1", "val2"]'."""
    studio.write("typed", source(tool=TYPES, main=MAIN.replace("run_tool(config, params)", "params.model_dump_json()")))
    assert studio.listing("typed").spec.input_schema["properties"] == {
        "query": {"type": "string"},
        "text": {"type": "string"},
        "whole": {"type": "integer"},
        "part": {"type": "number"},
        "truth": {"type": "boolean"},
        "several": {"type": "array", "items": {"type": "string"}},
        "maybe": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "choice": {"type": "string", "enum": ["val1", "val2"]},
    }
    given = {"text": "t", "whole": 1, "part": 0.5, "truth": True, "several": ["a", "b"], "choice": "val2"}
    assert studio.call("typed", **given).result == {"query": "words", **given, "maybe": None}
    assert studio.call("typed", **{**given, "choice": "val3"}).error.code == "invalid-arguments"


# run_tool.


def test_run_tool_receives_validated_instances_and_its_value_is_sent_back(studio):
    """ "Receives validated UserParameters and ToolParameters instances". "Main tool logic. Return value is sent back to
    the calling agent."."""
    run = """
def run_tool(config, args):
    return [type(config).__name__, type(args).__name__, args.query, args.max_results]
"""
    studio.write("validated", source(run=run))
    assert studio.call("validated", query="a").output == "['UserParameters', 'ToolParameters', 'a', 10]"
    refused = studio.call("validated", max_results="many")
    assert (refused.status, refused.error.code) == ("error", "invalid-arguments")


def test_a_json_value_can_be_parsed(studio):
    """ "Return value should be JSON-serializable for the agent to parse"."""
    studio.write("as json", doing('return json.dumps({"found": [query]})'))
    studio.write("as text", doing("return query"))
    assert studio.call("as_json").result == {"found": ["words"]}
    assert (studio.call("as_text").result, studio.call("as_text").output) == (None, "words")


# OUTPUT_KEY.


def test_only_what_is_printed_after_the_key_is_returned(studio):
    """ "When present, only stdout content printed after this key is returned to the agent". "Allows debug/log output
    before the key without polluting the agent's response"."""
    studio.write("noisy", doing('print("debug: working")\nreturn query'))
    outcome = studio.call("noisy")
    assert (outcome.output, outcome.stderr) == ("words", "debug: working\n")


def test_the_key_is_a_module_level_string_constant(tmp_path):
    """ "Module-level string constant"."""
    assert read_template(source(key='OUTPUT_KEY = "answer:"\n').encode()).output_key == "answer:"
    for other in ("OUTPUT_KEY = 3\n", "def inner():\n    OUTPUT_KEY = 'x'\n", "OUTPUT_KEY = input()\n"):
        assert read_template(source(key=other).encode()).output_key is None


def test_without_the_key_all_of_stdout_is_returned(studio):
    """ "Recommended but not strictly required for import — however, without it, all stdout is returned to the
    agent"."""
    main = MAIN.replace("print(OUTPUT_KEY, output)", "print(output)")
    folder = studio.write("keyless talk", doing('print("first")\nreturn query', key="", main=main))
    assert studio.call("keyless_talk").output == "first\nwords"
    report = check_template(str(folder))
    assert report.ok and "studio-output-key" in [finding.code for finding in report.findings]


# The command line.


def test_tools_are_invoked_as_subprocesses(studio):
    """ "Agent Studio invokes tools as subprocesses: python tool.py --user-params '{"api_key": "..."}' --tool-params
    '{"query": "..."}'"."""
    folder = studio.write("seen inside", doing("import os, sys\nreturn json.dumps([os.getpid(), __name__, *sys.argv])"))
    pid, name, *words = studio.call("seen_inside", query='it\'s "q"').result
    assert pid != os.getpid() and name == "__main__"
    assert words[:2] == [str(folder / "tool.py"), "--user-params"] and words[3] == "--tool-params"
    assert (json.loads(words[2]), json.loads(words[4])["query"]) == ({}, 'it\'s "q"')


def test_a_tool_without_a_main_block_cannot_be_called(studio):
    """ "6. CLI Entrypoint"."""
    studio.write("no main", source(main=""))
    listing = studio.listing("no_main")
    assert listing.state == "broken" and "there is no main block" in listing.reason


# The complete example, and its environments.


def test_the_example_is_the_chapters_to_the_letter():
    """ "Complete Example": its digest is that of the text on the page."""
    assert hashlib.sha256((EXAMPLE / "tool.py").read_bytes()).hexdigest() == DIGEST
    assert (EXAMPLE / "requirements.txt").read_text() == "pydantic\n"


@pytest.mark.first
def test_the_complete_example_validates_runs_packs_installs_and_runs_again(haft_tools, tmp_path, capsys, monkeypatch):
    """ "At runtime, Agent Studio creates a .venv/ inside each tool instance directory and installs dependencies from
    requirements.txt." "The following paths are excluded from template exports: .venv/ __pycache__/
    .requirements_hash.txt"."""
    sample = json.loads((EXAMPLE / "data/sample.json").read_text())
    workspace = haft_tools.workspace
    (workspace / "haft.toml").write_text('[templates]\npaths = ["./templates"]\n')
    monkeypatch.setenv("HAFT_HOME", str(tmp_path / "state"))
    at = ["-w", str(workspace), "templates"]
    folder = workspace / "templates/json_reader"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("tests", "*.scenario.*", ".*"))
    assert haft([*at, "check", "--packing"]) == 0
    first = haft_tools.call("json_reader", filepath="data/sample.json")
    assert (first.status, first.result) == ("done", sample), first.error
    assert first.changes.files == (), "its environment is no part of what the call changed"
    assert (folder / ".venv/bin/python").exists() and (folder / ".requirements_hash.txt").exists()
    words = [folder / ".venv/bin/python", "-c", "import pydantic; print(pydantic.__file__)"]
    assert str(folder / ".venv") in subprocess.run(words, capture_output=True, text=True, check=True).stdout

    (folder / "__pycache__").mkdir()
    (folder / "__pycache__/tool.pyc").touch()
    packed = tmp_path / "reader.zip"
    assert haft([*at, "pack", str(folder), "--to", str(packed)]) == 0
    names = [name for name in zipfile.ZipFile(packed).namelist() if not name.endswith("/")]
    inside = {name.split("/", 3)[-1] for name in names if name.startswith("studio-data/tool_templates/")}
    assert inside == {"README.md", "data/sample.json", "requirements.txt", "tool.py"}

    assert haft([*at, "remove", "json reader", "--yes"]) == 0
    assert haft([*at, "install", str(packed)]) == 0
    (installed,) = (workspace / "templates").iterdir()
    assert re.fullmatch("json_reader_[a-z0-9]{6}", installed.name) and installed.name != folder.name
    assert not (installed / ".venv").exists()
    again = haft_tools.call("json_reader", filepath="data/sample.json")
    assert (again.status, again.output) == ("done", first.output)
    assert (installed / ".venv").is_dir()
    failed = haft_tools.call("json_reader", filepath="data/none.json")
    assert failed.error.message.startswith("`json_reader` failed: FileNotFoundError: ")
    assert "Traceback" not in failed.error.message.splitlines()[0]


def test_tools_can_be_tested_outside():
    """ "Tools can be tested outside Agent Studio: cd my_tool/; pip install -r requirements.txt; python tool.py
    --user-params '{}' --tool-params '{"filepath": "data/sample.json"}'". 'Expected output: tool_output {"key": "value",
    ...}'."""
    words = [sys.executable, "-m", "pip", "install", "--no-index", "-r", "requirements.txt"]
    pip = subprocess.run(words, cwd=EXAMPLE, capture_output=True, text=True, check=False)
    assert pip.returncode == 0 and "Requirement already satisfied: pydantic" in pip.stdout
    words = [sys.executable, "tool.py", "--user-params", "{}", "--tool-params", '{"filepath": "data/sample.json"}']
    done = subprocess.run(words, cwd=EXAMPLE, capture_output=True, text=True, check=False)
    key, _, answer = done.stdout.partition(" ")
    assert (done.returncode, key, json.loads(answer)["key"]) == (0, "tool_output", "value")


# requirements.txt.


def test_requirements_are_in_standard_pip_format(tmp_path):
    """ "Standard pip format. pydantic is always required (it's the validation framework)": "pydantic requests>=2.28.0
    numpy==1.24.0"."""
    text = "pydantic\nrequests>=2.28.0\nnumpy==1.24.0\n"
    parse_requirements(text.encode(), allow_builds=False)
    assert codes(write(tmp_path / "good", requirements=text)) == []
    assert codes(write(tmp_path / "bad", requirements="requests>=2.28.0\npydantic-core\n")) == ["studio-pydantic"]


# Names.


@pytest.mark.parametrize("name", ["JSON Reader", "calculator", "My API Tool 2", "7"])
def test_names_of_letters_digits_and_spaces_are_allowed(name):
    """ "Tool template names must match the regex: ^[a-zA-Z0-9 ]+$". "Only alphanumeric characters and spaces are
    allowed."."""
    assert re.fullmatch("[a-zA-Z0-9 ]+", name) and is_template_name(name)


@pytest.mark.parametrize("name", ["json_reader", "json-reader", "tool!", "Werkzeug für alle", "", "a\n", "a/b"])
def test_no_other_character_is_allowed_in_a_name(tmp_path, name, capsys):
    """ "No special characters, underscores, or hyphens."."""
    assert not is_template_name(name)
    folder = write(tmp_path / "mine")
    assert haft(["templates", "pack", str(folder), "--to", str(tmp_path / "a.zip"), "--name", name]) == 2
    assert not (tmp_path / "a.zip").exists()


def test_names_are_unique_within_their_scope(tmp_path):
    """ "Names must be unique within their scope (global or within a specific workflow template)."."""
    packed, place = str(tmp_path / "a.zip"), str(tmp_path / "place")
    pack([str(write(tmp_path / "my tool"))], packed)
    install(packed, place)
    install(packed, place, workflow="A Workflow")
    for workflow in (None, "A Workflow"):
        with pytest.raises(BadUsage, match="is called `my tool` already"):
            install(packed, place, workflow=workflow)
    install(packed, place, workflow="Another")
    assert len(os.listdir(place)) == 3


def test_of_two_folders_with_one_name_the_first_is_the_tool(studio):
    """The same of folders that nobody installed: "Names must be unique within their scope"."""
    for folder in ("Twin", "twin"):
        studio.write(folder, doing(f'return "{folder}"'))
    assert studio.call("twin").output == "Twin"
    found = [one for one in studio.bench.service.tools(all=True) if one.spec.name == "twin"]
    assert sorted(one.state for one in found) == ["duplicate", "ready"]


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("JSON Reader", "json_reader_abc123"),
        ("My API Tool", "my_api_tool_xk9f2m"),
        ("Calculator", "calculator_def456"),
    ],
)
def test_directories_in_a_zip_follow_the_pattern(tmp_path, name, folder):
    """ "When packaged in a ZIP, tool template directories follow this naming pattern:
    {slugified_name}_{random_6_chars}". "Where slugified_name is the tool name lowercased with spaces replaced by
    underscores, and the random suffix is a 6-character alphanumeric string." "Examples: json_reader_abc123/
    my_api_tool_xk9f2m/ calculator_def456/"."""
    pattern = f"{name.lower().replace(' ', '_')}_[a-z0-9]{{6}}"
    assert re.fullmatch(pattern, folder) and re.fullmatch(pattern, new_folder_name(name))
    assert new_folder_name(name) != new_folder_name(name), "it is random"
    assert folder.startswith(f"{slug_of(name)}_")
    done = pack([str(write(tmp_path / "mine"))], str(tmp_path / "a.zip"), name=name)
    assert re.fullmatch(f"studio-data/tool_templates/{pattern}", done.templates[0].folder)
