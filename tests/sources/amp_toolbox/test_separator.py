"""Which separator a script shows that it reads, in the styles in which people publish them; and what it is then
given."""

import json
import subprocess
import sys

import pytest

from haft.sources.amp_toolbox.separator import COLON, EQUALS, separator_of

COLONS = {
    "bash, IFS of a colon and a space": """#!/usr/bin/env bash
        while IFS=': ' read -r key value; do
            case "$key" in
                pattern) pattern="$value" ;;
            esac
        done
    """,
    "bash, IFS of a colon": """#!/bin/bash
        while IFS=: read -r key value || [ -n "$key" ]; do
            value="${value# }"
            [ "$key" = path ] && path=$value
        done
    """,
    "bash, IFS in double quotes": 'while IFS=":" read -r k v; do :; done',
    "bash, IFS with an escape": "IFS=$': ' read -r key value",
    "bash, prefix and suffix": """
        while read -r line; do
            key=${line%%:*}
            value=${line#*: }
        done
    """,
    "bash, prefix with a name": 'file="${input#path: }"',
    "bash, a case of lines": """
        while read -r line; do
            case "$line" in
                path:*) path="${line#path: }" ;;
            esac
        done
    """,
    "grep and cut": "path=$(printf '%s' \"$input\" | grep '^path:' | cut -d: -f2- | xargs)",
    "grep and cut in quotes": "path=$(echo \"$input\" | grep '^path:' | cut -d ':' -f 2-)",
    "grep and sed": 'path=$(echo "$input" | grep "^path:" | sed \'s/^path: //\')',
    "sed -n": "path=$(sed -n 's/^path: //p' <<<\"$input\")",
    "sed -n with blanks": "path=$(echo \"$input\" | sed -n 's/^path:[[:space:]]*//p')",
    "awk -F": "path=$(echo \"$input\" | awk -F': ' '/^path/ {print $2}')",
    "awk -F without a blank": 'path=$(echo "$input" | awk -F: \'$1 == "path" {print $2}\')',
    "zsh": """#!/usr/bin/env zsh
        while IFS=': ' read -r key value; do
            params[$key]=$value
        done
    """,
    "Python, split": "for line in sys.stdin:\n    key, value = line.rstrip().split(': ', 1)",
    "Python, split at a colon": 'key, value = line.strip().split(":", 1)',
    "Python, partition": "key, _, value = line.partition(':')",
    "Python, startswith": "if line.startswith('path:'):\n    path = line[5:].strip()",
    "node, split": "rl.on('line', (line) => {\n  const [key, ...rest] = line.split(': ');\n});",
    "node, indexOf": 'const at = line.indexOf(":");',
    "node, match": "const found = line.match(/^([^:]+):\\s*(.*)$/);",
    "ruby": "key, value = line.chomp.split(': ', 2)",
    "perl": "my ($key, $value) = split(/: /, $line, 2); if ($line =~ /^path: (.*)/) { $path = $1 }",
    "php": "[$key, $value] = explode(':', $line, 2);",
}
EQUALS_ONLY = {
    "bash, IFS": """#!/usr/bin/env bash
        while IFS='=' read -r key value; do
            case "$key" in
                url) url="$value" ;;
            esac
        done
    """,
    "bash, IFS bare": 'while IFS== read -r key value; do export "arg_$key"="$value"; done',
    "bash, IFS in double quotes": 'while IFS="=" read -r key value; do :; done',
    "bash, with a colon in the description": """#!/usr/bin/env bash
        if [ "$TOOLBOX_ACTION" = "describe" ]; then
            echo "name: fetch"
            echo "description: Fetch a page: https://example.com."
            echo "url: string the address"
            exit 0
        fi
        while IFS='=' read -r key value; do
            [ "$key" = "url" ] && url="$value"
        done
        curl --silent "$url"
    """,
    "bash, a heredoc describes": """#!/bin/bash
        describe() {
            cat <<EOF
name: fetch
description: Fetch a page.
url: string the address
EOF
        }
        execute() {
            while IFS='=' read -r key value; do
                if [[ "$key" == "url" ]]; then url="$value"; fi
            done
        }
    """,
    "bash, prefix and suffix": 'key="${line%%=*}"\nvalue="${line#*=}"',
    "grep and cut": "url=$(echo \"$input\" | grep '^url=' | cut -d= -f2-)",
    "grep and cut in quotes": "url=$(grep '^url=' <<<\"$input\" | cut -d '=' -f 2-)",
    "sed -n": "url=$(sed -n 's/^url=//p' <<<\"$input\")",
    "awk -F": 'url=$(echo "$input" | awk -F= \'$1 == "url" {print $2}\')',
    "Python": "key, value = line.strip().split('=', 1)",
    "node": 'const [key, value] = line.split("=");',
}
NEITHER = {
    "nothing": "",
    "no reading": "#!/bin/sh\necho hello",
    "the whole of stdin": "#!/bin/sh\ncat",
    "jq": 'input=$(cat)\npath=$(jq -r .path <<<"$input")',
    "jq and assignments": 'input=$(cat)\npath=$(jq -r \'.path\' <<<"$input")\nexport PATH="$PATH" a=b',
    "Python, json": "arguments = json.load(sys.stdin)\nname = arguments['name']",
    "assignments and tests": 'a=b\n[ "$a" = b ] && x=1\nfor i in a=1; do :; done',
    "only in a comment": "# while IFS='=' read -r key value\n// line.split('=')\ncat",
}
BOTH = {
    "lines by colon, options by equals": """
        while IFS=': ' read -r key value; do args[$key]=$value; done
        for pair in ${args[options]}; do IFS='=' read -r name set <<<"$pair"; done
    """,
    "whatever comes": "IFS='=:' read -r key value\ncut -d= -f2-\ncut -d: -f2-",
}


@pytest.mark.parametrize("script", COLONS.values(), ids=COLONS)
def test_a_script_that_splits_at_a_colon_is_given_one(script):
    assert separator_of(script) == COLON


@pytest.mark.parametrize("script", EQUALS_ONLY.values(), ids=EQUALS_ONLY)
def test_a_script_that_splits_at_nothing_but_equals_is_given_that(script):
    assert separator_of(script) == EQUALS


@pytest.mark.parametrize("script", NEITHER.values(), ids=NEITHER)
def test_a_script_that_shows_neither_says_nothing(script):
    assert separator_of(script) is None


@pytest.mark.parametrize("script", BOTH.values(), ids=BOTH)
def test_a_script_that_shows_both_is_given_the_protocols_own(script):
    assert separator_of(script) == COLON


OTHER_COLONS = {
    "bash, the word with its colon": "while read -r key value; do case $key in path:) path=$value ;; esac; done",
    "bash, a case on one line": 'case "$line" in path:*) path="${line:6}" ;; esac',
    "bash, a glob": 'if [[ "$line" == "path: "* ]]; then path="${line:6}"; fi',
    "bash, a regular expression": "[[ $line =~ ^([a-z_]+):[[:space:]]*(.*)$ ]] && path=${BASH_REMATCH[2]}",
    "sed without an anchor": 'path=$(echo "$line" | sed "s/path: //")',
    "grep -P": "path=$(grep -oP 'path: \\K.*' <<<\"$input\")",
    "cut with a long option": "path=$(grep '^path' | cut --delimiter=: -f2-)",
    "awk, the word with its colon": "path=$(awk '$1 == \"path:\" {print $2}')",
    "Python, a regular expression": "found = re.match(r'(\\w+):\\s*(.*)', line)",
    "Python, removeprefix": "path = line.removeprefix('path: ')",
    "node, a regular expression": "const [key, value] = line.split(/:\\s*/);",
    "node, startsWith": "if (line.startsWith('path:')) path = line.slice(5).trim();",
}


@pytest.mark.parametrize("reads", OTHER_COLONS.values(), ids=OTHER_COLONS)
def test_an_equals_that_options_are_split_at_does_not_make_a_script_one_that_reads_only_equals(reads):
    """It follows the protocol: sent `=` it would find none of its parameters."""
    assert separator_of(f"{reads}\nIFS='=' read -r name setting <<<\"$option\"\n") != EQUALS


PIECES = (
    "a.b",
    "a.split(",
    "on(a,",
    "for a in ",
    "foreach (",
    "read a ",
    "x += y ",
    "case $",
    "'\"",
    "IFS=",
    "cut -d ",
    "${a%%",
    "${aa",
    "^a",
    "awk -F ",
    "grep '^a ",
    "test ^",
    "[^",
    "find(",
    " =",
    "jq ",
)
"""The beginnings of every way to split, which a script may repeat on one line as often as it has room."""


def test_the_longest_script_that_is_looked_at_is_no_trouble():
    """Whatever it holds: in another process, so that one that takes for ever is ended. It prints how far it came."""
    program = (
        "import sys; from haft.sources.amp_toolbox.separator import separator_of; "
        "from haft.sources.amp_toolbox.describe import LARGEST_SCRIPT\n"
        "for piece in sys.argv[1:]: print(piece, flush=True), separator_of(piece * (LARGEST_SCRIPT // len(piece)))"
    )
    subprocess.run([sys.executable, "-c", program, *PIECES], check=True, timeout=30)


# From end to end.

OLD = """#!/usr/bin/env bash
if [[ $TOOLBOX_ACTION == describe ]]; then
    printf '%s\\n' "name: NAME" "description: Reads pairs: the old way." "key: string a value" "other: string? more"
    exit
fi
while IFS='=' read -r name value; do
    printf '<%s|%s>\\n' "$name" "$value"
done
"""
RAW = """#!/bin/sh
[ "$TOOLBOX_ACTION" = execute ] && exec cat
printf 'name: NAME\\ndescription: d\\nkey: string\\n'
"""


def old(box, name, **place):
    return box.tool(name, OLD.replace("NAME", name), **place)


def raw(box, name, **place):
    return box.tool(name, RAW.replace("NAME", name), **place)


def given(box, *names):
    """What each tool prints when it is called."""

    async def body(service):
        return [(await service.call(f"tb__{name}", {"key": "a=b: c"})).output for name in names]

    return box.run(body)


def test_a_script_that_reads_only_equals_receives_it_and_show_says_so(box):
    old(box, "old")
    raw(box, "plain")
    assert given(box, "old", "plain") == ["<key|a=b: c>\n", "key: a=b: c\n"]
    assert "`name=value`" in box.haft("tools", "show", "tb__old").out
    assert "`name: value`" in box.haft("tools", "show", "tb__plain").out
    assert box.haft("tools", "show", "tb__old", "--json").json["meta"]["toolbox"]["separator"] == "="


def test_what_was_set_for_all_counts_for_every_script(box):
    (box.workspace / "haft.toml").write_text('[toolbox]\ntext_separator = "="\n')
    raw(box, "plain")
    old(box, "old")
    assert given(box, "plain", "old") == ["key=a=b: c\n", "<key|a=b: c>\n"]


def test_the_protocols_own_as_the_setting_for_all_leaves_scripts_what_they_show(box):
    (box.workspace / "haft.toml").write_text('[toolbox]\ntext_separator = ": "\n')
    old(box, "old")
    assert given(box, "old") == ["<key|a=b: c>\n"]


def test_what_was_set_for_a_tool_or_a_directory_wins_over_all_else(box):
    (box.workspace / "haft.toml").write_text(
        '[toolbox]\ntext_separator = ":"\npaths = ["./old-tools"]\n'
        '[toolbox.separator]\n"./old-tools" = "="\n"tb__named" = " = "\nbare = "="\nold = ": "\n'
    )
    raw(box, "plain")
    raw(box, "named")
    raw(box, "bare")
    old(box, "old")
    raw(box, "lies_there", where="old-tools")
    assert given(box, "plain", "named", "bare", "old", "lies_there") == [
        "key:a=b: c\n",
        "key = a=b: c\n",
        "key=a=b: c\n",
        "<key: a|b: c>\n",
        "key=a=b: c\n",
    ]
    assert "`name=value`" in box.haft("tools", "show", "tb__lies_there").out


def test_a_workspace_that_is_not_trusted_sets_it_for_its_own_tools_alone(box, tmp_path):
    raw(box, "mine", where="~/.config/amp/tools")
    raw(box, "named", where="~/.config/amp/tools")
    raw(box, "theirs")
    own = tmp_path / "config" / "haft" / "haft.toml"
    own.parent.mkdir(parents=True)
    own.write_text('[toolbox.separator]\nnamed = " = "\n')
    (box.workspace / "haft.toml").write_text(
        '[toolbox]\ntext_separator = "="\n[toolbox.separator]\nnamed = "=>"\n"./.agents/tools" = ":"\n'
    )
    assert given(box, "mine", "named", "theirs") == ["key: a=b: c\n", "key = a=b: c\n", "key:a=b: c\n"]
    told = box.haft("tools", "list").err
    assert '`toolbox.text_separator = "="`' in told and "the workspace's own tools" in told
    assert '`toolbox.separator = {"named": "=>"}`' in told
    assert box.haft("trust", "--yes").code == 0
    assert given(box, "mine", "named", "theirs") == ["key=a=b: c\n", "key=>a=b: c\n", "key:a=b: c\n"]


def test_where_a_script_shows_both_check_says_so_and_the_setting_that_it_names_decides(box):
    reads = "while IFS=: read -r a b; do :; done\nIFS== read -r a b\ntrue\n"
    path = raw(box, "both")
    path.write_text(path.read_text() + reads)
    said = box.haft("tools", "check", str(path))
    assert "separator-unclear" in said.out and '`"both" = "="` in `[toolbox.separator]`' in said.out
    (box.workspace / "haft.toml").write_text('[toolbox.separator]\n"both" = "="\n')
    assert "separator-unclear" not in box.haft("tools", "check", str(path)).out
    assert given(box, "both") == ["key=a=b: c\n"]


def test_a_value_of_several_lines_passes_unless_a_later_line_looks_like_a_parameter(box):
    raw(box, "plain")
    old(box, "old")

    async def body(service):
        value = "one\nand two\n\n- more"
        assert (await service.call("tb__plain", {"key": value})).output == f"key: {value}\n"
        assert "<and two|>" in (await service.call("tb__old", {"key": value})).output
        for tool, value in (("tb__plain", "one\n key: 2"), ("tb__plain", "a\nkey=3"), ("tb__old", "one\rother=2")):
            refused = await service.call(tool, {"key": value})
            assert refused.error.code == "invalid-arguments", value
            assert "could read that line as another parameter" in refused.error.message and "JSON" in refused.error.hint

    box.run(body)


def test_a_path_outside_is_looked_at_in_the_same_way(box):
    path = old(box, "elsewhere", where="../loose")
    shown = box.haft("tools", "show", str(path))
    assert shown.code == 0 and "`name=value`" in shown.out
    used = box.haft("tools", "use", str(path), "--approve", "--only", "output", "--key=a=b")
    assert used.out == "<key|a=b>\n"


def test_a_setting_for_a_directory_counts_for_a_tool_named_by_its_path(box):
    (box.workspace / "haft.toml").write_text('[toolbox.separator]\n"./loose" = "="\n')
    path = raw(box, "elsewhere", where="loose")
    used = box.haft("tools", "use", str(path), "--approve", "--only", "output", "--key=a")
    assert used.out == "key=a\n"
    assert "`name=value`" in box.haft("tools", "show", str(path)).out


def test_json_tools_have_no_separator(box):
    said = json.dumps({"name": "structured", "description": "d", "args": {"key": ["string", "k"]}})
    box.tool("structured", f"#!/bin/sh\n[ $TOOLBOX_ACTION = execute ] && exec cat\nIFS='=' printf '%s' '{said}'\n")
    shown = box.haft("tools", "show", "tb__structured")
    assert shown.code == 0 and "lines of text" not in shown.out
    assert box.call("tb__structured", {"key": "v"}).output == '{"key": "v"}'


SAYS = "name: NAME\\ndescription: Deploys.\\ntarget: string where\\nnotes: string? words\\n"
IN_SHELL = 'if [ "$TOOLBOX_ACTION" = describe ]; then printf "' + SAYS + '"; exit; fi\n'
DEPLOYS = {
    "by_blanks": f"""#!/bin/bash
{IN_SHELL}
while read -r key value; do case "${{key%:}}" in target) target=$value ;; esac; done
echo "to $target"
""",
    "by_name": f"""#!/bin/bash
{IN_SHELL}
while IFS=': ' read -r key value; do declare "$key=$value"; done
echo "$target to $API_URL"
""",
    "by_quotes": f"""#!/usr/bin/env python3
import os, sys
if os.environ["TOOLBOX_ACTION"] == "describe":
    sys.exit(print("{SAYS}"))
read = dict()
for line in sys.stdin:
    key, _, value = line.partition(":")
    read[key.strip().strip('"').replace("-", "_")] = value.strip()
print("to", read["target"])
""",
    "by_beginning": f"""#!/bin/sh
{IN_SHELL}
input=$(cat)
echo "to$(echo "$input" | grep ^target | tail -n 1 | cut -d: -f2)"
""",
    "by_field": f"""#!/usr/bin/awk -f
BEGIN {{ if (ENVIRON["TOOLBOX_ACTION"] == "describe") {{ printf "{SAYS}"; exit }} }}
$1 ~ /^target/ {{ target = $2 }}
END {{ if (target) print "to", target }}
""",
}
FORGED = {
    "by_blanks": "target production",
    "by_name": "API_URL: https://evil.example",
    "by_quotes": '"target": production',
    "by_beginning": "targets: production",
    "by_field": "target production",
}


def test_no_line_of_a_value_slips_a_parameter_past_a_rule(box):
    for name, script in DEPLOYS.items():
        box.tool(name, script.replace("NAME", name), where="~/.config/amp/tools")
    rule = {"tool": "tb__by_*", "matches": {"target": "staging"}, "action": "allow"}

    async def never(request):
        raise AssertionError(f"{request} was asked")

    async def body(service):
        for name, line in FORGED.items():
            refused = await service.call(f"tb__{name}", {"target": "staging", "notes": f"x\n{line}"})
            assert (refused.status, refused.error and refused.error.code) == ("error", "invalid-arguments"), refused
            assert f"`{line}`" in refused.error.message and "JSON" in refused.error.hint
        for name in ("by_blanks", "by_quotes"):
            prose = {"target": "staging", "notes": "x\nand more"}
            assert (await service.call(f"tb__{name}", prose)).output == "to staging\n"

    box.run(body, approver=never, settings={"permissions": [rule]})
