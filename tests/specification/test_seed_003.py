"""What the page on bash tool plugins says, sentence by sentence: each test quotes the words that it holds haft to.

`haft` stands where the page says "the host", and `examples/` where it says `plugins/`. How plugins are fetched from git
repositories is tested elsewhere.
"""

import json
import logging
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from haft.surfaces.cli.main import run as haft
from haft.testing import haft_tools

__all__ = ["haft_tools"]

EXAMPLES = Path(__file__).parents[2] / "examples"
MINIMAL = """#!/usr/bin/env bash
set -euo pipefail

subcommand="${1:-}"
shift || true

case "$subcommand" in
  schema)
    cat <<'JSON'
{
  "id": "template_bash_echo",
  "version": "0.1.0",
  "args_mode": "positional",
  "positional": [
    {"name": "value", "required": true},
    {"name": "uppercase", "default": false}
  ],
  "tools": [
    {
      "type": "function",
      "function": {
        "name": "template_bash_echo",
        "description": "Echo a value (optionally uppercase it).",
        "parameters": {
          "type": "object",
          "properties": {
            "value": {"type": "string"},
            "uppercase": {"type": "boolean", "default": false}
          },
          "required": ["value", "uppercase"]
        }
      }
    }
  ]
}
JSON
    ;;

  preview)
    value="${1:-}"
    uppercase="${2:-false}"
    echo "template_bash_echo value=$(printf %q "$value") uppercase=$uppercase"
    ;;

  run)
    value="${1:-}"
    uppercase="${2:-false}"
    if [[ "$uppercase" == "true" ]]; then
      printf '%s' "$value" | tr '[:lower:]' '[:upper:]'
    else
      printf '%s' "$value"
    fi
    ;;

  error)
    exit_code="${1:-1}"
    echo "Error: template_bash_echo failed (exit_code=$exit_code)"
    exit 0
    ;;

  *)
    echo "Usage: $0 {schema|preview|run|error}" >&2
    exit 2
    ;;
esac
"""


def schema_of(name="my_tool", **changes):
    """The required fields as the page writes them, with changes; `...` leaves one out."""
    parameters = {"type": "object", "properties": changes.pop("properties", {})}
    fields = {
        "id": name,
        "version": "0.1.0",
        "args_mode": "flags",
        "tools": [{"type": "function", "function": {"name": name, "parameters": parameters}}],
        **changes,
    }
    return {key: value for key, value in fields.items() if value is not ...}


def script(schema, **subcommands):
    """A tool file whose subcommands do as said."""
    said = schema if isinstance(schema, str) else f"cat <<'JSON'\n{json.dumps(schema)}\nJSON"
    cases = "".join(f"{name})\n{text}\n;;\n" for name, text in {"schema": said, **subcommands}.items())
    return f'subcommand="${{1:-}}"\nshift || true\ncase "$subcommand" in\n{cases}*) exit 2 ;;\nesac\n'


def configure(bench, *plugins, **more):
    """Write `haft.json` as the page does."""
    config = {"plugins": list(plugins), "plugin_policy": {"allow_bash_tools": True}, **more}
    (bench.workspace / "haft.json").write_text(json.dumps(config))


def install(bench, text, **more):
    """A single file in the workspace, and the configuration that loads it."""
    file = bench.workspace / "tools/my_tool.bash"
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    configure(bench, {"bash_tool": {"file": "./tools/my_tool.bash"}}, **more)
    return file


# What Bash tools are for.


def test_they_are_out_of_process_and_backed_by_a_single_script(haft_tools):
    """ "Bash tool plugins are out-of-process ToolPlugin implementations backed by a single bash script." "one bash tool
    file maps to one tool"."""
    file = install(haft_tools, script(schema_of(), run="echo $PPID"))
    (listing,) = [one for one in haft_tools.tools().values() if one.spec.kind == "bash-plugin"]
    assert (listing.spec.name, listing.spec.origin, listing.spec.hosting) == ("my_tool", str(file), "per-call")
    assert haft_tools.call("my_tool").output.strip() != str(os.getpid())


def test_the_schema_contract_is_centered_on_classic_function_style_schemas(haft_tools):
    """ "the schema contract is currently centered on classic function-style schemas". "the bash host does not
    expose the newer Python payload-first/custom-freeform contract directly"."""
    freeform = {"type": "custom", "custom": {"name": "my_tool", "format": {"type": "text"}}}
    install(haft_tools, script(schema_of(tools=[freeform])))
    listing = haft_tools.tools()["my_tool"]
    assert listing.state == "broken" and "its tool is not a function" in listing.reason


# Development workflow.


def test_the_recommended_workflow(haft_tools, monkeypatch, capsys):
    """ "implement schema, preview, and run". "test the script directly from the shell". "test it through the Python
    plugin manager". "load it in a real app config with allow_bash_tools: true". The checks: bash ./my_tool.bash schema,
    preview, run, error 1."""
    monkeypatch.chdir(haft_tools.workspace)
    monkeypatch.setenv("HAFT_HOME", str(haft_tools.workspace.parent / "state"))
    log = logging.getLogger("haft")
    monkeypatch.setattr(log, "handlers", log.handlers)
    monkeypatch.setattr(log, "propagate", log.propagate)
    assert haft(("tools", "make", "my_tool", "--bash-plugin", "--to", "tools")) == 0, capsys.readouterr().err
    (file,) = (haft_tools.workspace / "tools").iterdir()
    (haft_tools.workspace / "a.txt").write_text("hello\n")
    for words in (("schema",), ("preview", "a.txt", "1"), ("run", "a.txt", "1"), ("error", "1")):
        done = subprocess.run(["bash", f"./tools/{file.name}", *words], capture_output=True, text=True, check=False)
        assert done.returncode == 0 and done.stdout, words
    haft_tools.load(file)
    assert haft_tools.call("my_tool", path="a.txt").output == "hello\n"
    configure(haft_tools, {"bash_tool": {"file": f"./tools/{file.name}"}})
    assert haft(("tools", "use", "--approve", "my_tool", "--path", "a.txt")) == 0
    assert "hello" in capsys.readouterr().out


def test_minimal_repo_layout(haft_tools):
    """ "Minimal repo layout: my-bash-tool/ agent_plugin.json my_tool.bash pyproject.toml tests/ test_my_tool.py".
    Example agent_plugin.json: {"bash_tools": [{"file": "my_tool.bash"}]}. "Directory form"."""
    folder = haft_tools.workspace / "plugins/my-bash-tool"
    (folder / "tests").mkdir(parents=True)
    (folder / "tests/test_my_tool.py").write_text("raise SystemExit\n")
    (folder / "pyproject.toml").write_text("")
    (folder / "my_tool.bash").write_text(script(schema_of(), run="echo ran"))
    (folder / "agent_plugin.json").write_text('{\n  "bash_tools": [\n    { "file": "my_tool.bash" }\n  ]\n}\n')
    configure(haft_tools, {"bash_tool": {"path": "./plugins/my-bash-tool"}})
    assert haft_tools.call("my_tool").output == "ran\n"


def test_for_single_file_tools_you_can_also_skip_the_repo_descriptor(haft_tools):
    """ "For single-file tools, you can also skip the repo descriptor and load the file directly via a bash_tool.file
    config spec." "Single-file form"."""
    install(haft_tools, script(schema_of(), run="echo ran"))
    assert not list(haft_tools.workspace.rglob("agent_plugin.json"))
    assert haft_tools.call("my_tool").output == "ran\n"


# Step 1.


def test_each_bash_tool_file_is_invoked_as_bash_with_its_absolute_path(haft_tools):
    """ "Each bash tool file is invoked as: bash /abs/path/to/tool.bash <subcommand> [args...]". "Supported subcommands:
    schema, preview, run, error (optional)"."""
    told = """printf '%s|' "$BASH" "$0" "$subcommand" "$@" """
    schema = f"printf '%s' '{json.dumps(schema_of())}' | sed \"s,0.1.0,$0 $subcommand $#,\""
    file = install(haft_tools, script(schema, preview=told, run=f"{told}; exit 1", error=told))
    assert not os.access(file, os.X_OK)
    outcome = haft_tools.call("my_tool", a="b c")
    bash = haft_tools.asked[0].preview.split("|")[0]
    assert bash.endswith("/bash")
    assert haft_tools.tools()["my_tool"].spec.meta["plugin"]["version"] == f"{file} schema 0"
    assert haft_tools.asked[0].preview == f"{bash}|{file}|preview|--a|b c|"
    assert outcome.output == f"{bash}|{file}|error|1|--a|b c|"


def test_the_host_sets_agent_tool_python_in_every_invocation(haft_tools):
    """ "AGENT_TOOL_PYTHON: absolute path to the exact Python interpreter running the bash tool host". "In normal
    schema / preview / run / error invocations, the host also sets: AGENT_TOOL_PYTHON=<sys.executable>". "The host
    exports: AGENT_TOOL_PYTHON with the value of the host process's sys.executable."""
    told = 'echo "$AGENT_TOOL_PYTHON"'
    schema = f"printf '%s' '{json.dumps(schema_of())}' | sed \"s,0.1.0,$AGENT_TOOL_PYTHON,\""
    install(haft_tools, script(schema, preview=told, run=f"{told} >&2; exit 1", error=told))
    outcome = haft_tools.call("my_tool")
    assert haft_tools.tools()["my_tool"].spec.meta["plugin"]["version"] == sys.executable
    assert haft_tools.asked[0].preview == sys.executable
    assert (outcome.stderr.strip(), outcome.output.strip()) == (sys.executable, sys.executable)


def test_this_lets_bash_tools_reuse_the_same_python_environment_as_the_host(haft_tools):
    """ "useful for bash tools that need to invoke helper Python scripts without rediscovering python3 through PATH".
    "This lets bash tools reliably reuse the same Python environment as the host." "the same virtual environment or
    packaged runtime as the host", "the same installed dependencies". Recommended pattern:
    PYTHON_BIN="${AGENT_TOOL_PYTHON:-$(command -v python3)}"."""
    pattern = 'PYTHON_BIN="${AGENT_TOOL_PYTHON:-$(command -v python3)}"\n"${PYTHON_BIN}" "$(dirname "$0")/helper.py"'
    file = install(haft_tools, script(schema_of(), run=pattern))
    (file.parent / "helper.py").write_text("import sys, jsonschema_rs\nprint(sys.prefix)\n")
    assert haft_tools.call("my_tool").output.strip() == sys.prefix


FORMS = {
    "Single-file form": {"bash_tool": {"file": "./tools/template_bash_echo.bash"}},
    "Directory form": {"bash_tool": {"path": "./plugins/template-bash-tool"}},
    "String shortcuts": "bash:./plugins/template-bash-tool",
}


def test_the_template_mirrors_the_minimal_working_example():
    """ "Minimal working example". "This mirrors plugins/template-bash-tool/template_bash_echo.bash." """
    assert (EXAMPLES / "template-bash-tool/template_bash_echo.bash").read_text() == MINIMAL


@pytest.mark.parametrize("form", FORMS)
def test_the_minimal_working_example_loads_in_every_form(haft_tools, form):
    """ "Single-file form", "Directory form", "String shortcuts"."""
    for folder in ("tools", "plugins/template-bash-tool"):
        (haft_tools.workspace / folder).mkdir(parents=True)
        (haft_tools.workspace / folder / "template_bash_echo.bash").write_text(MINIMAL)
    descriptor = EXAMPLES / "template-bash-tool/agent_plugin.json"
    shutil.copy(descriptor, haft_tools.workspace / "plugins/template-bash-tool")
    configure(haft_tools, FORMS[form])
    assert haft_tools.call("template_bash_echo", value="hello").output == "hello"
    assert haft_tools.call("template_bash_echo", value="hello", uppercase=True).output == "HELLO"
    assert haft_tools.asked[1].preview == "template_bash_echo value=hello uppercase=true"


# Bash tool file contract: schema.

WRONG = {
    "schema must print a JSON object to stdout.": ("[]", "`schema` does not print a JSON object"),
    "Printing invalid JSON from schema": ("{", "`schema` does not print JSON"),
    "Required fields: id": (schema_of(id=...), "its schema has no `id`"),
    "Required fields: version": (schema_of(version=...), "its schema has no `version`"),
    "Required fields: args_mode": (schema_of(args_mode=...), "its `args_mode` is null"),
    "Required fields: tools": (schema_of(tools=...), "its schema has 0 tools"),
    "exactly one tool schema per bash file": (schema_of(tools=schema_of()["tools"] * 2), "its schema has 2 tools"),
    "schema.id must match tools[0].function.name": (schema_of(id="other"), "its `id` is `other`"),
}


def test_what_breaks_the_contract_of_schema_is_no_tool(haft_tools):
    """The sentences of `WRONG`; "Current v1 constraints"; "The current bash host assumes one tool per file and enforces
    that the tool name matches the schema/file identity."; of the pitfalls "Mismatching schema.id and
    tools[0].function.name", "Returning multiple tools from one file"."""
    for number, (schema, _problem) in enumerate(WRONG.values()):
        said = f"echo '{schema}'" if isinstance(schema, str) else schema
        (haft_tools.workspace / f"tool_{number}.bash").write_text(script(said))
    configure(haft_tools, *(f"bash:./tool_{number}.bash" for number in range(len(WRONG))))
    found = haft_tools.tools()
    for number, (sentence, (_schema, problem)) in enumerate(WRONG.items()):
        listing = found[f"tool_{number}"]
        assert listing.state == "broken", sentence
        assert problem in listing.reason, sentence
        assert listing.reason.startswith(f"{haft_tools.workspace}/tool_{number}.bash: "), sentence


def test_config_keys_are_passed_as_environment_variables(haft_tools, monkeypatch):
    """ "config_keys: list of config keys that the host should expose to the bash subprocess". "each key is passed
    as an environment variable named: AGENT_TOOL_CONFIG_<UPPER_SNAKE_CASE_KEY>". "only scalar config values are
    passed through; lists/dicts are ignored". "the host reads those keys from the resolved request config and
    exposes them as environment variables". "defaults that may themselves come from ${env:...} placeholders in
    config". Recommended pattern: SMTP_USER="${AGENT_TOOL_CONFIG_SEND_TO_KINDLE_SMTP_USER:-}"."""
    keys = ["send_to_kindle_smtp_user", "send_to_kindle_default_to", "send_to_kindle_list", "send_to_kindle_dict"]
    run = 'echo "${AGENT_TOOL_CONFIG_SEND_TO_KINDLE_SMTP_USER:-}"; env | grep -o "^AGENT_TOOL_CONFIG[^=]*" | sort'
    file = haft_tools.workspace / "kindle.bash"
    file.write_text(script(schema_of("send_to_kindle", args_mode="json", config_keys=keys), run=run))
    monkeypatch.setenv("MY_SMTP_USER", "someone")
    own = Path(os.environ["XDG_CONFIG_HOME"]) / "haft/haft.toml"
    own.parent.mkdir(parents=True)
    own.write_text(
        f'plugins = ["bash:{file}"]\nplugin_policy.allow_bash_tools = true\n'
        '[config]\nsend_to_kindle_smtp_user = "${env:MY_SMTP_USER}"\nsend_to_kindle_default_to = "a"\n'
        "send_to_kindle_list = [1]\nsend_to_kindle_dict = {a = 1}\nundeclared = 1\n"
    )
    assert haft_tools.call("send_to_kindle").output.splitlines() == [
        "someone",
        "AGENT_TOOL_CONFIG_SEND_TO_KINDLE_DEFAULT_TO",
        "AGENT_TOOL_CONFIG_SEND_TO_KINDLE_SMTP_USER",
    ]
    asked_for = {"send_to_kindle_smtp_user": "other"}
    assert haft_tools.service.call("send_to_kindle", config=asked_for).wait().output.splitlines()[0] == "other"


# preview, run.


def test_preview_and_run_as_the_page_writes_them(haft_tools):
    """ "preview should print a short single-line preview to stdout and exit 0." "run is the actual tool execution path.
    Stdout becomes streamed output and contributes to the final tool message." "positional: Arguments are mapped to
    ordered argv values using schema.positional." "This is the mode used by plugins/bash-read-line-range." """
    places = [
        {"name": "path", "required": True},
        {"name": "start_line", "required": True},
        {"name": "end_line", "required": True},
        {"name": "show_line_numbers", "default": False},
    ]
    properties = {place["name"]: {} for place in places}
    schema = schema_of("read_line_range", args_mode="positional", positional=places, properties=properties)
    preview = 'path="${1:-}"\necho "read_line_range path=$(printf %q "$path")"'
    run = 'path="${1:-}"\nstart="${2:-1}"\nend="${3:-1}"\nsed -n "${start},${end}p" "$path"; echo "$#: $4"'
    install(haft_tools, script(schema, preview=preview, run=run))
    (haft_tools.workspace / "a b").write_text("one\ntwo\nthree\n")
    run = haft_tools.service.call("read_line_range", {"end_line": 3, "start_line": 2, "path": "a b"})
    streamed = "".join(event.text for event in run if event.type == "stdout")
    assert run.wait().output == streamed == "two\nthree\n4: false\n"
    assert haft_tools.asked[0].preview == "read_line_range path=a\\ b"
    theirs = json.loads(
        subprocess.run(
            ["bash", EXAMPLES / "bash-read-line-range/read_line_range.bash", "schema"], capture_output=True, check=True
        ).stdout
    )
    assert (theirs["args_mode"], theirs["positional"]) == ("positional", places)


def test_if_preview_exits_non_zero_the_host_falls_back_to_an_empty_preview(haft_tools):
    """ "If preview exits non-zero, the host falls back to an empty preview string." """
    install(haft_tools, script(schema_of(), preview="echo would; exit 1", run="echo ran"))
    assert haft_tools.call("my_tool").output == "ran\n"
    assert not haft_tools.asked[0].preview


# error.


def test_the_text_of_error_becomes_the_message_or_the_default_does(haft_tools):
    """ "When run fails or times out, the host may invoke: bash tool.bash error <exit_code> [args...]". "If error
    exits 0 and prints non-empty stdout, that text becomes the final tool message content. Otherwise the host falls
    back to default formatting." "error (optional)"."""
    hook = """case "$3" in good) echo "error $*" ;; bad) echo never; exit 1 ;; esac"""
    fails = "echo why >&2; exit 3"
    schema = schema_of(properties={"how": {"type": "string"}})
    file = install(haft_tools, script(schema, run=fails, error=hook))
    assert haft_tools.call("my_tool", how="good").output == "error 3 --how good\n"
    for how in ("bad", "empty"):
        outcome = haft_tools.call("my_tool", how=how)
        assert (outcome.status, outcome.output) == ("error", "")
        assert outcome.error.message == "`my_tool` exited 3: why"
    file.write_text(script(schema, run=fails))
    assert haft_tools.call("my_tool").error.message == "`my_tool` exited 3: why"


def test_on_a_timeout_error_is_told_of_it(haft_tools):
    """ "On timeout, the host sets: AGENT_TOOL_TIMED_OUT=1, AGENT_TOOL_TIMEOUT_SECONDS=<n>". "The host uses:
    plugin_policy.bash_timeout_seconds when provided at load time". "If the process times out, it is reported as a
    failure and the optional error subcommand may still be used to format the final tool message." """
    hook = 'echo "$1 ${AGENT_TOOL_TIMED_OUT-} ${AGENT_TOOL_TIMEOUT_SECONDS-}"'
    install(haft_tools, script(schema_of(), run='[ "$1" = --now ] && exit 3\nexec sleep 1000', error=hook))
    haft_tools.settings["plugin_policy.bash_timeout_seconds"] = 1
    late, failed = haft_tools.call("my_tool"), haft_tools.call("my_tool", now=True)
    assert (late.status, late.error.code, late.output) == ("error", "timed-out", "124 1 1\n")
    assert failed.output == "3  \n"


def test_otherwise_the_default_timeout_holds(haft_tools):
    """ "otherwise the default timeout in BashToolPlugin"."""
    install(haft_tools, script(schema_of()))
    assert haft_tools.tools()["my_tool"].spec.timeout == 60


# Argument passing.


def test_flags(haft_tools):
    """ "Arguments are converted to CLI flags." "scalar: --name <value>", "boolean true: --name",
    "boolean false: --no-name"."""
    properties = {"text": {}, "number": {}, "on": {}, "off": {}}
    install(haft_tools, script(schema_of(properties=properties), run="""printf '[%s]' "$@" """))
    outcome = haft_tools.call("my_tool", text="a b", number=1.5, on=True, off=False)
    assert outcome.output == "[--text][a b][--number][1.5][--on][--no-off]"


def test_json(haft_tools):
    """ "For json mode, the host calls: run --args-json, preview --args-json, error <code> --args-json". "The JSON
    arguments object is written to stdin." """
    told = """printf '%s ' "$subcommand" "$@"; cat"""
    install(haft_tools, script(schema_of(args_mode="json"), preview=told, run=f"{{ {told}; }} >&2; exit 4", error=told))
    outcome = haft_tools.call("my_tool", value=["a", {"b": None}])
    assert haft_tools.asked[0].preview == 'preview --args-json {"value": ["a", {"b": null}]}'
    assert outcome.stderr == 'run --args-json {"value": ["a", {"b": null}]}'
    assert outcome.output == 'error 4 --args-json {"value": ["a", {"b": null}]}'


def test_arguments_can_be_parsed_with_jq(haft_tools):
    """ "you want to parse them with jq". The example pattern."""
    if shutil.which("jq") is None:
        pytest.skip("jq is not installed")
    pattern = """if [[ "${1:-}" == "--args-json" ]]; then
    args_json="$(cat)"
    value="$(printf '%s' "$args_json" | jq -r '.value')"
    printf '%s' "$value"
    exit 0
  fi"""
    install(haft_tools, script(schema_of(args_mode="json"), run=pattern))
    assert haft_tools.call("my_tool", value="$(date) 'é").output == "$(date) 'é"


# Runtime behavior.


def test_working_directory(haft_tools):
    """ "The host uses config["working_directory"] when present to set the subprocess cwd. If it is absent, the default
    shell/process cwd is used." """
    (haft_tools.workspace / "inner").mkdir()
    install(haft_tools, script(schema_of(), run="pwd"))
    assert haft_tools.call("my_tool").output.strip() == str(haft_tools.workspace)
    haft_tools.close()
    install(haft_tools, script(schema_of(), run="pwd"), working_directory="./inner")
    assert haft_tools.call("my_tool").output.strip() == str(haft_tools.workspace / "inner")


def test_streaming(haft_tools):
    """ "Tool stdout is streamed as partial output." "When enabled by policy, stderr may also be streamed." "The final
    tool message is emitted after the process exits and formatting is applied." """
    install(haft_tools, script(schema_of(), run="echo out; echo err >&2; exit 1", error="echo formatted"))
    for streams in (False, True):
        haft_tools.close()
        haft_tools.settings["plugin_policy.stream_stderr"] = streams
        events = list(haft_tools.service.call("my_tool"))
        streamed = {event.type: event.text for event in events if event.type in ("stdout", "stderr")}
        assert streamed == {"stdout": "out\n", **({"stderr": "err\n"} if streams else {})}
        assert events[-1].type == "outcome"
        assert events[-1].to_json()["outcome"]["output"] == "formatted\n"


# Common pitfalls.


def test_forgetting_to_enable_allow_bash_tools(haft_tools):
    """ "Forgetting to enable plugin_policy.allow_bash_tools"."""
    install(haft_tools, script(schema_of(), run="echo ran"), plugin_policy={})
    listing = haft_tools.tools()["my_tool"]
    assert listing.state == "disabled"
    assert "set `plugin_policy.allow_bash_tools = true`" in listing.reason
    assert haft_tools.call("my_tool").status != "done"


def test_relying_on_external_commands_that_are_not_there(haft_tools):
    """ "Relying on shell features or external commands not present in target environments"."""
    install(haft_tools, script(schema_of(), run="no-such-command-anywhere"))
    outcome = haft_tools.call("my_tool")
    assert outcome.exit_code == 127
    assert "no-such-command-anywhere: command not found" in outcome.error.message


def test_forgetting_to_quote_shell_arguments_is_the_scripts_to_avoid_and_never_the_hosts(haft_tools):
    """ "Forgetting to quote shell arguments safely"."""
    install(haft_tools, script(schema_of(properties={"a": {}}), run="""printf '[%s]' "$@" """))
    assert haft_tools.call("my_tool", a="$(touch x); --b").output == "[--a][$(touch x); --b]"
    assert not (haft_tools.workspace / "x").exists()


def test_the_minimal_example_is_loaded_from_git_in_both_forms(haft_tools, tmp_path):
    """Git form: `{"bash_tool": {"git": …, "ref": "v0.1.0"}}`. String shortcut: `bash+git:URL#v0.1.0`."""
    repository = tmp_path / "my-bash-tool"
    shutil.copytree(Path(__file__).parents[2] / "examples/template-bash-tool", repository)
    git = ["git", "-C", str(repository), "-c", "user.name=x", "-c", "user.email=x@example.com"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "x"], ["tag", "v0.1.0"]):
        subprocess.run([*git, *words], check=True)
    url = f"file://{repository}"
    for form in (f"bash+git:{url}#v0.1.0", {"bash_tool": {"git": url, "ref": "v0.1.0"}}):
        haft_tools.close()
        haft_tools.settings.update(
            {
                "plugins": [form],
                "plugin_policy.allow_bash_tools": True,
                "plugin_cache_dir": str(tmp_path / "cache"),
            }
        )
        assert haft_tools.call("template_bash_echo", value="hi", uppercase=True).output == "HI"
