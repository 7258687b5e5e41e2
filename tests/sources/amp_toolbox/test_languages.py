"""Tools in several languages and both forms, run for real: each receives exactly what was passed, in the
environment that the protocol promises, and its output, its exit code and its end come back."""

import asyncio
import json
import re
import subprocess
import sys

import pytest

from haft.contracts import InvalidArguments

LINE_ENDS = {"CR": "\r", "LF": "\n", "NUL": "\0", "U+0085": "\x85", "U+2028": "\u2028", "U+2029": "\u2029"}
TEXT = {
    "plain": "hello",
    "colons": "a:b::c:",
    "pair": "name: other: value",
    "equals": "a=b==c",
    "quotes": "it's \"quoted\" `so` ''",
    "backslashes": "C:\\new\\table \\0 \\\\",
    "shell": "$HOME $(id) ${x} * ? ; | & < > ! # %s ~",
    "emoji": "👩‍👩‍👧 naïve 🇪🇺",
    "combining": "e\u0301 n\u0303 \u0301",
    "right_to_left": "\u202eשלום עולם\u202c مرحبا",
    "wide": "日本語 𝕊 \u00a0 \ufeff",
    "dash": "-n",
    "dashes": "--args={}",
    "leading": "   three before",
    "trailing": "three after   ",
    "blank": "   ",
    "tab": "\ttab\t",
    "empty": "",
    "json": '{"a": [1, "b"]}',
    "number_word": "007",
    "escape": "\x1b[31mred\x07\x7f",
    "megabyte": "0123456789abcde " * 65536,
}
OTHERS = {
    "whole": ("integer", 42),
    "negative": ("integer", -7),
    "zero": ("number", 0),
    "fraction": ("number", -0.1),
    "huge": ("number", 1e300),
    "tiny": ("number", 5e-324),
    "yes": ("boolean", True),
    "no": ("boolean", False),
    "list": ("array", ["a: b", 1, None, True, [], "line\nbreak\u2028\x85", "ü"]),
    "empty_list": ("array", []),
    "map": ("object", {"k: e=y": {"deep": [1.5, None]}, "": "\r\n"}),
    "empty_map": ("object", {}),
}
KINDS = {**dict.fromkeys(TEXT, "string"), **{name: kind for name, (kind, _value) in OTHERS.items()}}
PASSED = {**TEXT, **{name: value for name, (_kind, value) in OTHERS.items()}}

DESCRIBED_AS_TEXT = "".join(
    [
        "name: echo\n",
        "description: Keeps what it receives.\n",
        *(f"{name}: {kind} A value.\n" for name, kind in KINDS.items()),
        "absent: string? Never passed.\n",
    ]
)
DESCRIBED_AS_JSON = json.dumps(
    {
        "name": "echo",
        "description": "Keeps what it receives.",
        "inputSchema": {
            "type": "object",
            "properties": {
                **{name: {"type": kind} for name, kind in KINDS.items()},
                **{name: {"type": "string"} for name in LINE_ENDS},
                "nothing": {"type": ["string", "null"]},
                "absent": {"type": "string"},
            },
            "required": list(KINDS),
        },
    }
)

BASH = r"""#!/usr/bin/env bash
case $TOOLBOX_ACTION in
describe) printf '%s' 'DESCRIBED' ;;
execute)
    EXECUTED
    ;;
esac
"""
BASH_TEXT = r"""
    : >received
    while IFS= read -r line || [[ -n $line ]]; do
        printf '%s\0%s\0' "${line%%: *}" "${line#*: }" >>received
    done
"""
PYTHON = f"""#!{sys.executable}
import json, os, sys
if os.environ["TOOLBOX_ACTION"] == "describe":
    sys.stdout.write('''DESCRIBED''')
else:
    with open("received", "w", encoding="utf-8", newline="") as received:
        EXECUTED
"""
PYTHON_TEXT = r"""
        for line in sys.stdin.buffer.read().decode().splitlines():
            name, _separator, value = line.partition(": ")
            received.write(f"{name}\0{value}\0")
"""
NODE = r"""#!/usr/bin/env node
const fs = require("fs");
const readline = require("readline");
async function main() {
  if (process.env.TOOLBOX_ACTION === "describe") {
    process.stdout.write(`DESCRIBED`);
    return;
  }
  EXECUTED
}
main();
"""
NODE_TEXT = r"""
  let kept = "";
  for await (const line of readline.createInterface({ input: process.stdin, crlfDelay: Infinity })) {
    const at = line.indexOf(": ");
    kept += line.slice(0, at) + "\0" + line.slice(at + 2) + "\0";
  }
  fs.writeFileSync("received", kept);
"""
C = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(void) {
    if (strcmp(getenv("TOOLBOX_ACTION"), "describe") == 0) { fputs(DESCRIBED, stdout); return 0; }
    FILE *received = fopen("received", "wb");
    EXECUTED
    return fclose(received);
}
"""
C_TEXT = r"""
    char *line = NULL; size_t room = 0; ssize_t length;
    while ((length = getline(&line, &room, stdin)) > 0) {
        if (line[length - 1] == '\n') line[--length] = 0;
        char *at = strstr(line, ": ");
        if (at == NULL) return 3;
        fwrite(line, 1, at - line, received); fputc(0, received);
        fwrite(at + 2, 1, line + length - at - 2, received); fputc(0, received);
    }
"""
C_JSON = "char part[65536]; size_t n; while ((n = fread(part, 1, sizeof part, stdin))) fwrite(part, 1, n, received);"

SOURCES = {
    ("bash", "text"): (BASH, BASH_TEXT),
    ("bash", "json"): (BASH, "cat >received"),
    ("python", "text"): (PYTHON, PYTHON_TEXT),
    ("python", "json"): (PYTHON, "json.dump(json.load(sys.stdin), received)"),
    ("node", "text"): (NODE, NODE_TEXT),
    ("node", "json"): (NODE, 'fs.writeFileSync("received", JSON.stringify(JSON.parse(fs.readFileSync(0, "utf8"))));'),
    ("c", "text"): (C, C_TEXT),
    ("c", "json"): (C, C_JSON),
}
PROGRAMS = {"bash": "bash", "node": "node", "c": "gcc"}


def put(box, needs, language, form):
    """The tool of a language and a form, in the project's toolbox."""
    if language in PROGRAMS:
        needs(PROGRAMS[language])
    outside, inside = SOURCES[language, form]
    described = DESCRIBED_AS_TEXT if form == "text" else DESCRIBED_AS_JSON
    if language == "c":
        described = json.dumps(described)
    source = outside.replace("DESCRIBED", described).replace("EXECUTED", inside.strip())
    if language != "c":
        box.tool("echo", source)
        return
    program = box.tool("echo", b"")
    subprocess.run(["gcc", "-x", "c", "-o", program, "-"], input=source.encode(), check=True, capture_output=True)


def received(box, form):
    kept = (box.workspace / "received").read_bytes().decode()
    if form == "json":
        return json.loads(kept)
    words = kept.split("\0")
    assert words.pop() == "" and len(words) % 2 == 0
    pairs = list(zip(words[::2], words[1::2], strict=True))
    assert len(dict(pairs)) == len(pairs)
    return {name: text if KINDS[name] == "string" else json.loads(text) for name, text in pairs}


@pytest.mark.parametrize(("language", "form"), SOURCES, ids=[" ".join(key) for key in SOURCES])
def test_a_tool_of_any_language_receives_exactly_what_was_passed(box, needs, language, form):
    put(box, needs, language, form)
    passed = dict(PASSED)
    if form == "json":
        passed |= {"nothing": None} | {name: f"a{end}b: c{end}" for name, end in LINE_ENDS.items()}
    outcome = box.call("tb__echo", passed)
    assert (outcome.status, outcome.exit_code, outcome.output) == ("done", 0, "")
    got = received(box, form)
    assert {name for name in got if got[name] != passed[name]} == set()
    assert set(got) == set(passed)
    assert all(type(got[name]) is type(passed[name]) for name in got if KINDS.get(name) in ("boolean", "string"))


def test_arguments_are_lines_in_the_order_of_the_description(box):
    box.tool(
        "raw",
        "#!/bin/sh\n[ $TOOLBOX_ACTION = execute ] && exec cat\n"
        "printf 'name: raw\\ndescription: It.\\nb: string\\na: string\\n'\n",
    )
    assert box.call("tb__raw", {"a": "1", "b": "2"}).output == "b: 2\na: 1\n"


def test_an_optional_parameter_that_is_null_is_left_out(box):
    box.tool(
        "raw",
        "#!/bin/sh\n[ $TOOLBOX_ACTION = execute ] && exec cat\n"
        "printf 'name: raw\\ndescription: It.\\na: string\\nb: string?\\n'\n",
    )
    outcome = box.call("tb__raw", {"a": "1", "b": None})
    assert (outcome.status, outcome.output) == ("done", "a: 1\n")


RAW = """#!/bin/sh
if [ "$TOOLBOX_ACTION" = describe ]; then
    printf '%s\\n' 'name: raw' 'description: d' 'path: string' 'more: string?' 'count: int?' 'list: array?' 'on: bool?'
else
    touch was-run
    cat
fi
"""
RAW_JSON = """#!/bin/sh
[ "$TOOLBOX_ACTION" = execute ] && exec cat
printf '{"name": "raw_json", "description": "d", "args": {"path": ["string", "p"], "count": ["int"], "on": ["bool"]}}'
"""


def test_a_line_break_is_refused_before_anyone_is_asked_and_arrives_whole_in_json(box):
    box.tool("raw", RAW)
    box.tool("raw_json", RAW_JSON)

    async def body(service):
        asked = {name: {"path": f"a{end}more: forged"} for name, end in LINE_ENDS.items()}
        refused = {name: await service.call("tb__raw", arguments) for name, arguments in asked.items()}
        assert box.asked == []
        passed = {name: await service.call("tb__raw_json", arguments) for name, arguments in asked.items()}
        return refused, {name: (json.loads(one.output), asked[name]) for name, one in passed.items()}

    refused, passed = box.run(body)
    for name, outcome in refused.items():
        assert (name, outcome.status, outcome.error.code) == (name, "error", "invalid-arguments")
        assert "`path`" in outcome.error.message and "JSON" in outcome.error.hint
        assert outcome.process_exit_code == 2
    assert not (box.workspace / "was-run").exists()
    assert all(got == given for got, given in passed.values())


def test_through_the_command_line_a_tool_receives_the_same(box):
    box.tool("raw", RAW)
    box.tool("raw_json", RAW_JSON)
    only = ("tools", "use", "--approve", "--only", "output")
    words = ("--path=--a: b=c ", "--more", "-x", "--count=-3", "--list", "a: b", "--list", "c", "--on")
    assert box.haft(*only, "tb__raw", *words).out == (
        'path: --a: b=c \nmore: -x\ncount: -3\nlist: ["a: b", "c"]\non: true\n'
    )
    given = json.dumps({"path": "é\n\u2028\0", "count": 1})
    assert json.loads(box.haft(*only, "tb__raw_json", "--args", given, "--count", "2", "--no-on").out) == {
        "path": "é\n\u2028\0",
        "count": 2,
        "on": False,
    }
    refused = box.haft(*only, "tb__raw", "--path=a\nmore: b")
    assert (refused.code, refused.out) == (2, "")
    assert "`path`" in refused.err and "JSON" in refused.err


def test_what_does_not_fit_the_description_is_refused_before_anyone_is_asked(box):
    box.tool("raw", RAW)

    async def body(service):
        wrong = [{}, {"path": 3}, {"path": "a", "count": "many"}, {"path": "a", "list": "b"}, {"path": "a", "x": "y"}]
        return [await service.call("tb__raw", arguments) for arguments in wrong]

    assert [outcome.error.code for outcome in box.run(body)] == ["invalid-arguments"] * 5
    assert box.asked == []
    assert not (box.workspace / "was-run").exists()


NO_JSON = {
    "infinity": float("inf"),
    "infinity in an array": [float("-inf")],
    "no number in an object": {"deep": [float("nan")]},
    "half a character": ["\ud800"],
    "bytes": b"x",
    "an object of Python": [object()],
}


def test_what_is_no_json_is_refused_before_anyone_is_asked(box):
    said = json.dumps({"name": "open", "inputSchema": {"type": "object", "properties": {"any": {}}}})
    box.tool("open", f"#!/bin/sh\n[ $TOOLBOX_ACTION = execute ] && exec cat\nprintf '%s' '{said}'\n")

    async def body(service):
        return {name: await _code(service, value) for name, value in NO_JSON.items()}

    async def _code(service, value):
        try:
            outcome = await service.call("tb__open", {"any": value})
        except InvalidArguments as error:
            return error.code
        return outcome.error.code if outcome.error else f"it was given {outcome.output}"

    assert box.run(body) == dict.fromkeys(NO_JSON, "invalid-arguments")
    assert box.asked == []
    refused = box.haft("tools", "use", "--approve", "--only", "output", "tb__open", "--args", '{"any": [1e999]}')
    assert (refused.code, refused.out) == (2, "")


ENDING = """#!/bin/bash
if [[ $TOOLBOX_ACTION == describe ]]; then
    printf 'name: ending\\ndescription: d\\nhow: string\\n'
    exit
fi
IFS=' ' read -r _ how
echo before
echo complaint >&2
$how
"""


def test_exit_codes_come_back_with_what_was_said(box):
    box.tool("ending", ENDING)

    async def body(service):
        return [await service.call("tb__ending", {"how": f"exit {code}"}) for code in (0, 1, 3, 255)]

    done, failed, third, last = box.run(body)
    assert (done.status, done.exit_code, done.error, done.process_exit_code) == ("done", 0, None, 0)
    for outcome, code in ((failed, 1), (third, 3), (last, 255)):
        assert (outcome.status, outcome.exit_code) == ("error", code)
        assert (outcome.error.code, outcome.process_exit_code) == ("tool-failed", 1)
        assert str(code) in outcome.error.message
        assert {*outcome.output.splitlines()} == {"before", "complaint"}
        assert outcome.stderr == "complaint\n"


@pytest.mark.parametrize(("word", "number"), [("TERM", 15), ("KILL", 9)])
def test_a_tool_that_a_signal_ends_has_failed(box, word, number):
    describe = "[ $TOOLBOX_ACTION = describe ] && { printf 'name: dies\\ndescription: It.\\n'; exit; }"
    box.tool("dies", f"#!/bin/sh\n{describe}\necho before\nkill -{word} $$\necho after\n")
    outcome = box.call("tb__dies")
    assert (outcome.status, outcome.error.code, outcome.exit_code) == ("error", "tool-failed", 128 + number)
    assert f"signal {number}" in outcome.error.message
    assert outcome.output == "before\n"


DRAINED = f"""#!{sys.executable}
import fcntl, os, struct, termios, time
if os.environ["TOOLBOX_ACTION"] == "describe":
    print("name: turns\\ndescription: Takes turns.")
else:
    for stream, word in ((1, "one"), (2, "two"), (1, "three"), (2, "four"), (1, "five")):
        os.write(stream, word.encode() + b"\\n")
        while struct.unpack("i", fcntl.ioctl(stream, termios.FIONREAD, bytes(4)))[0]:
            time.sleep(0.001)
"""


def test_output_is_stdout_and_stderr_as_they_came(box):
    box.tool("turns", DRAINED)
    outcome = box.call("tb__turns")
    assert outcome.output == "one\ntwo\nthree\nfour\nfive\n"
    assert outcome.stderr == "two\nfour\n"


def test_output_arrives_before_the_end_and_cancelling_ends_all_that_was_started(box, mark, left_of):
    describe = "[ $TOOLBOX_ACTION = describe ] && { printf 'name: endless\\ndescription: It.\\n'; exit; }"
    box.tool("endless", f"#!/bin/bash\n{describe}\n(sleep 1000; : {mark}) &\nsetsid sleep 1001 &\necho started\nwait\n")

    async def body(service):
        run = service.call("tb__endless", env={"MARK": mark})
        async for event in run:
            if event.type == "stdout":
                assert (event.status, run.status) == ("in-progress", "in-progress")
                assert left_of(mark)
                run.cancel()
        return await run

    outcome = box.run(body)
    assert (outcome.status, outcome.error.code, outcome.output) == ("cancelled", "cancelled", "started\n")
    assert left_of(mark) == []


def test_a_deadline_ends_it_and_all_that_it_started(box, mark, left_of):
    describe = "[ $TOOLBOX_ACTION = describe ] && { printf 'name: endless\\ndescription: It.\\n'; exit; }"
    box.tool("endless", f"#!/bin/bash\n{describe}\nsleep 1000 &\necho started\nwait\n")
    outcome = box.call("tb__endless", env={"MARK": mark}, timeout=1.0)
    assert (outcome.status, outcome.error.code, outcome.process_exit_code) == ("error", "timed-out", 4)
    assert left_of(mark) == []


VARIABLES = ("TOOLBOX_ACTION", "AGENT", "CLAUDECODE", "AMP_THREAD_ID", "AGENT_THREAD_ID", "AMP_CURRENT_THREAD_ID")
ENVIRONMENT = f"""#!{sys.executable}
import json, os
got = json.dumps({{"cwd": os.getcwd(), **{{name: os.environ.get(name) for name in {VARIABLES!r}}}}})
if os.environ["TOOLBOX_ACTION"] == "describe":
    print(json.dumps({{"name": "env", "description": got}}))
else:
    print(got)
"""


def test_describe_and_execute_have_the_variables_that_the_protocol_names_and_start_in_the_workspace(box, monkeypatch):
    for name in VARIABLES:
        monkeypatch.setenv(name, "of-the-host")
    box.tool("env", ENVIRONMENT, where="~/.config/amp/tools")
    thread = "T-6fe536ec-68c2-4213-932f-c84f87453733"

    async def body(service):
        (tool,) = [one.spec for one in service.tools() if one.spec.name == "tb__env"]
        described = json.loads(tool.description)
        of_a_thread = await service.call("tb__env", thread=thread)
        return (
            described,
            json.loads(of_a_thread.output),
            [json.loads((await service.call("tb__env", thread=name)).output) for name in ("main", "main", "other")],
        )

    described, executed, others = box.run(body)
    both = {"AGENT": "amp", "CLAUDECODE": "1"}
    threads = VARIABLES[3:]
    assert described == {
        "cwd": str(box.workspace),
        "TOOLBOX_ACTION": "describe",
        **both,
        **dict.fromkeys(threads),
    }
    assert executed == {
        "cwd": str(box.workspace),
        "TOOLBOX_ACTION": "execute",
        **both,
        **dict.fromkeys(threads, thread),
    }
    shaped = [{one[name] for name in threads} for one in others]
    assert shaped[0] == shaped[1] != shaped[2]
    assert all(
        len(each) == 1 and re.fullmatch(r"T-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", *each) for each in shaped
    )


def test_many_calls_at_once_do_not_mix_what_they_receive(box):
    box.tool("raw_json", RAW_JSON)

    async def body(service):
        runs = [service.call("tb__raw_json", {"count": number}) for number in range(8)]
        return [json.loads((await run).output) for run in runs]

    assert box.run(body) == [{"count": number} for number in range(8)]


def test_a_tool_that_does_not_read_its_input_is_no_failure(box):
    describe = "[ $TOOLBOX_ACTION = describe ] && { printf 'name: deaf\\ndescription: It.\\ntext: string\\n'; exit; }"
    box.tool("deaf", f"#!/bin/sh\n{describe}\nexec <&-\necho done\n")
    outcome = box.call("tb__deaf", {"text": "x" * 1_000_000})
    assert (outcome.status, outcome.output) == ("done", "done\n")


def test_a_tool_gone_or_changed_between_calls_is_asked_again(box):
    """What is run is always the file that described itself so."""
    first = "#!/bin/sh\n[ $TOOLBOX_ACTION = execute ] && exec cat\n"
    first += "printf 'name: shifting\\ndescription: It.\\na: string\\n'\n"
    path = box.tool("shifting", first)

    async def body(service):
        before = await service.call("tb__shifting", {"a": "1"})
        box.tool("shifting", first.replace("a: string", "b: string"))
        after = await service.call("tb__shifting", {"b": "2"})
        path.unlink()
        gone = await service.call("tb__shifting", {"b": "2"})
        return before.output, after.output, gone.error.code

    assert box.run(body) == ("a: 1\n", "b: 2\n", "unknown-tool")


def test_asyncio_is_not_blocked_while_a_tool_runs(box):
    describe = "[ $TOOLBOX_ACTION = describe ] && { printf 'name: endless\\ndescription: It.\\n'; exit; }"
    box.tool("endless", f"#!/bin/sh\n{describe}\nsleep 1000\n")

    async def body(service):
        run = service.call("tb__endless")
        other = await service.call("list_directory", {"path": "."})
        assert run.status != "done"
        run.cancel()
        return other.status, (await asyncio.wait_for(_ended(run), 60)).status

    async def _ended(run):
        return await run

    assert box.run(body) == ("done", "cancelled")
