"""Three layers, from the fastest: the script by hand, the tool as an agent calls it, a configuration that loads it."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[1]
SCRIPT = FOLDER / "template_bash_echo.bash"


def by_hand(*words):
    done = subprocess.run(["bash", SCRIPT, *words], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


# By hand.


def test_the_schema_is_json_and_its_id_is_the_function_s_name():
    code, said = by_hand("schema")
    schema = json.loads(said)
    assert (code, schema["id"]) == (0, schema["tools"][0]["function"]["name"])


def test_the_subcommands_take_arguments_in_order():
    assert by_hand("preview", "a b", "true") == (0, "template_bash_echo value=a\\ b uppercase=true\n")
    assert by_hand("run", "hello", "true") == (0, "HELLO")
    assert by_hand("run", "hello") == (0, "hello")
    assert by_hand("error", "7") == (0, "Error: template_bash_echo failed (exit_code=7)\n")
    assert by_hand("dance")[0] == 2


# As a tool.


@pytest.mark.parametrize("path", [FOLDER, SCRIPT], ids=["folder", "file"])
def test_it_is_called_and_a_person_sees_what_it_would_do(haft_tools, path):
    (listing,) = haft_tools.load(path)
    assert (listing.spec.name, listing.state) == ("template_bash_echo", "ready")
    outcome = haft_tools.call("template_bash_echo", value="two words; $(date)", uppercase=True)
    assert (outcome.status, outcome.output) == ("done", "TWO WORDS; $(DATE)")
    assert haft_tools.call("template_bash_echo", value="hello").output == "hello"
    assert haft_tools.call("template_bash_echo").error.code == "invalid-arguments"
    asked = haft_tools.asked[0]
    assert asked.arguments == {"value": "two words; $(date)", "uppercase": True}
    assert asked.preview.startswith("template_bash_echo value=two\\ words")


# As it is configured.


def test_a_configuration_loads_it_when_bash_tools_are_allowed(haft_tools):
    shutil.copytree(FOLDER, haft_tools.workspace / "plugins/echo", ignore=shutil.ignore_patterns("tests"))
    config = {
        "plugins": [{"bash_tool": {"path": "./plugins/echo"}}],
        "plugin_policy": {"allow_bash_tools": True},
    }
    (haft_tools.workspace / "haft.json").write_text(json.dumps(config))
    assert haft_tools.call("template_bash_echo", value="hello").output == "hello"
    haft_tools.close()
    config["plugin_policy"]["allow_bash_tools"] = False
    (haft_tools.workspace / "haft.json").write_text(json.dumps(config))
    listing = haft_tools.tools()["template_bash_echo"]
    assert listing.state == "disabled"
    assert "allow_bash_tools" in listing.reason
