"""Bash tool plugins: what `schema` prints, held against the contract."""

import copy
import json

import pytest

from haft.sources.bash_plugin.check import check_contract

from .conftest import codes

GOOD = {
    "id": "echo_text",
    "version": "0.1.0",
    "args_mode": "positional",
    "positional": [{"name": "value", "required": True}, {"name": "uppercase", "default": False}],
    "config_keys": ["smtp_user"],
    "tools": [
        {
            "type": "function",
            "function": {
                "name": "echo_text",
                "description": "Print a text as it is. Use it to try out plugins.",
                "parameters": {
                    "type": "object",
                    "properties": {
                        "value": {"type": "string", "description": "what to print"},
                        "uppercase": {"type": "boolean", "description": "in capitals"},
                    },
                },
            },
        }
    ],
}


def changed(change):
    schema = copy.deepcopy(GOOD)
    change(schema)
    return schema


def function(change):
    return changed(lambda schema: change(schema["tools"][0]["function"]))


def found(schema, stem="echo_text"):
    return {finding.code for finding in check_contract(schema, stem, {"json"})}


def test_the_good_one_has_nothing_against_it():
    assert found(GOOD) == set()
    assert found({key: value for key, value in GOOD.items() if key != "config_keys"}) == set()


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ([], "describe-form"),
        (changed(lambda s: s.pop("version")), "plugin-schema"),
        (changed(lambda s: s.update(id=3)), "plugin-schema"),
        (changed(lambda s: s.pop("tools")), "plugin-schema"),
        (changed(lambda s: s["tools"][0].pop("type")), "plugin-schema"),
        (changed(lambda s: s["tools"].__setitem__(0, "x")), "plugin-schema"),
        (function(lambda f: f.pop("parameters")), "plugin-schema"),
        (changed(lambda s: s.update(tools=[])), "plugin-one-tool"),
        (changed(lambda s: s["tools"].append(s["tools"][0])), "plugin-one-tool"),
        (changed(lambda s: s.update(id="other")), "plugin-id"),
        (changed(lambda s: s.update(args_mode="stdin")), "plugin-args-mode"),
        (changed(lambda s: s.update(args_mode=["json"])), "plugin-args-mode"),
        (changed(lambda s: s.pop("args_mode")), "plugin-args-mode"),
        (changed(lambda s: s.pop("positional")), "plugin-positional"),
        (changed(lambda s: s["positional"].append({"name": "more"})), "plugin-positional"),
        (changed(lambda s: s["positional"].pop()), "plugin-positional"),
        (changed(lambda s: s["positional"].append({"name": "value"})), "duplicate-parameter-names"),
        (changed(lambda s: s.update(config_keys={"a": 1})), "plugin-config-keys"),
        (changed(lambda s: s.update(config_keys=[1])), "plugin-config-keys"),
        (function(lambda f: f.pop("name")), "no-name"),
        (function(lambda f: f.pop("description")), "no-description"),
        (function(lambda f: f.update(description="Echo")), "vague-description"),
        (function(lambda f: f["parameters"].update(type="array")), "schema-error"),
        (function(lambda f: f["parameters"]["properties"]["value"].pop("description")), "parameter-undescribed"),
    ],
)
def test_a_breach_of_the_contract_has_a_code(schema, expected):
    assert expected in found(schema)


def test_a_name_that_is_not_the_files_gets_a_note():
    assert found(GOOD, "other") == {"name-differs"}


def plugin(printed, extra=""):
    return f"case \"$1\" in\n  schema)\n    {extra}\n    cat <<'END'\n{printed}\nEND\n    ;;\n  run) echo ;;\nesac\n"


def test_a_file_is_asked_for_its_schema_and_needs_no_run_bit(check, tmp_path):
    path = tmp_path / "echo_text.bash"
    path.write_text(plugin(json.dumps(GOOD)))
    report = check(path)
    assert (report.kind, report.name, codes(report)) == ("bash-plugin", "echo_text", set())
    path.write_text(plugin(json.dumps(GOOD), "echo hello; touch made"))
    assert codes(check(path)) == {"describe-form", "writes-on-describe"}
    path.write_text("#!/usr/bin/env bash\r\n" + plugin(json.dumps(GOOD)), newline="")
    assert codes(check(path)) == {"crlf-shebang"}
    path.write_text(plugin("", "exit 4"))
    assert codes(check(path)) == {"describe-failed"}
    path.write_text(plugin(json.dumps(GOOD)) + "# \u202e\n")
    path.chmod(0o646)
    assert codes(check(path)) == {"hidden-characters", "world-writable"}
