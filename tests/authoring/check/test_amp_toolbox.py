"""Toolbox executables: for every code one file that has it, and a neighbour that has not. All are asked at once."""

import os
import socket
from pathlib import Path

import pytest

from .conftest import codes

ABOUT = "description: Run the tests of this project. Use it instead of a shell.\n"


def text(*lines, name="NAME", about=ABOUT, before="", after=""):
    """A script in the text form. NAME becomes the file's name."""
    said = f"name: {name}\n{about}" + "".join(f"{line}\n" for line in lines)
    return f"#!/usr/bin/env bash\n{before}\ncat <<'END'\n{said}END\n{after}\n"


def json(body, name="NAME"):
    about = '"description": "Run the tests of this project. Use it instead of a shell."'
    return f'#!/usr/bin/env bash\ncat <<\'END\'\n{{"name": "{name}", {about},\n{body}\n}}\nEND\n'


def schema(properties):
    return json(f'"inputSchema": {{"type": "object", "properties": {{{properties}}}}}')


BOMB = ", ".join(
    f'"{a}": {{"allOf": [{{"$ref": "#/properties/{b}"}}, {{"$ref": "#/properties/{b}"}}], "description": "d"}}'
    for a, b in zip("abcdefghijklmnop", "bcdefghijklmnopq", strict=True)
)
STRING = '"type": "string", "description": "which file"'
READ_EQUALS = """if [ "$TOOLBOX_ACTION" = execute ]; then while IFS='=' read -r key value; do echo "$key"; done; fi"""
READ_COLON = READ_EQUALS.replace("IFS='='", "IFS=': '")
READ_BOTH = READ_EQUALS.replace("; fi", "; while IFS=: read -r key value; do echo; done; fi")

CASES = {
    "no-shebang": (text().removeprefix("#!/usr/bin/env bash\n"), text()),
    "interpreter-missing": (text().replace("env bash", "env no-such-interpreter"), text()),
    "crlf-shebang": (text().replace("bash\n", "bash\r\n", 1), text()),
    "bom-shebang": ("\ufeff" + text(), text()),
    "hidden-characters": (text("path: string the file\u200b to read"), text("path: string the 👨‍👩‍👧 to read")),
    "describe-flood": (text(after="head -c 1500000 /dev/zero | tr '\\0' x"), text(after="head -c 1500 /dev/zero")),
    "describe-failed": (text(after="exit 3"), text(after="exit 0")),
    "describe-noise": (text(before="echo loading >&2"), text(before="echo loading >/dev/null")),
    "describe-leaves-processes": (
        text(after="(setsid sleep 100 >/dev/null 2>&1 &)"),
        text(after="sleep 0 >/dev/null 2>&1 & wait"),
    ),
    "writes-on-describe": (text(before="echo x > ./made.txt"), text(before="cat ./made.txt 2>/dev/null")),
    "network-on-describe": (text(before="exec 3<>/dev/tcp/192.0.2.1/80"), text()),
    "describe-form": (json('"args": {},'), json('"args": {}')),
    "no-name": (text().replace("name: NAME\n", ""), text()),
    "bad-name": (text(name="run tests!"), text()),
    "name-differs": (text(name="another"), text()),
    "no-description": (text(about=""), text()),
    "vague-description": (text(about="description: Runs tests\n"), text()),
    "description-without-use": (
        text(about="description: Render the diagrams of this repository as pictures\n"),
        text(),
    ),
    "parameter-undescribed": (text("path: string"), text("path: string which file to read")),
    "parameter-hidden": (text("timeout: number seconds"), text("patience: number seconds")),
    "duplicate-parameter-names": (text("a: string one", "a: string two"), text("a: string one", "b: string two")),
    "no-type": (text("count: how many lines"), text("count: integer how many lines")),
    "schema-error": (schema('"n": {"type": "int", "description": "how many"}'), schema(f'"n": {{{STRING}}}')),
    "schema-excess": (schema(BOMB + ', "q": {"type": "string"}'), schema(f'"n": {{{STRING}}}')),
    "text-with-structures": (text("files: array which files"), json('"args": {"files": ["array", "which files"]}')),
    "equals-input": (text("path: string which file", before=READ_EQUALS), text("a: string b", before=READ_COLON)),
    "separator-unclear": (text("path: string which file", before=READ_BOTH), text("a: string b", before=READ_COLON)),
}


def test_every_code_is_found_where_it_is_and_not_in_its_neighbour(check_all, tmp_path):
    for code, scripts in CASES.items():
        for which, script in zip(("bad", "good"), scripts, strict=True):
            name = f"{code}-{which}"
            (tmp_path / name).write_text(script.replace("NAME", name), newline="")
            (tmp_path / name).chmod(0o755)
    reports = {Path(report.target).name: report for report in check_all(tmp_path)}
    missed = {code: codes(reports[f"{code}-bad"]) for code in CASES if not reports[f"{code}-bad"].has(code)}
    imagined = {code: codes(reports[f"{code}-good"]) for code in CASES if codes(reports[f"{code}-good"])}
    assert (missed, imagined) == ({}, {})
    assert {report.kind for report in reports.values()} == {"amp-toolbox"}
    assert reports["no-name-good"].name == "tb__no-name-good"


def made(path, script):
    path.write_text(script)
    path.chmod(0o755)
    return path


def test_a_fault_in_printed_json_is_found_in_the_script(check, tmp_path):
    script = json('"args": {},')
    report = check(made(tmp_path / "NAME", script))
    (finding,) = (finding for finding in report.findings if finding.code == "describe-form")
    assert finding.line is not None and script.splitlines()[finding.line - 1] == "}"
    assert "line 3" in finding.message


def test_hidden_characters_are_found_in_the_source_with_their_line_and_in_the_parameters(check, tmp_path):
    report = check(made(tmp_path / "NAME", CASES["hidden-characters"][0]))
    found = [finding for finding in report.findings if finding.code == "hidden-characters"]
    assert [finding.line for finding in found] == [6, None]
    assert "U+200B" in found[0].message and "parameters" in found[1].message


def test_twice_the_same_key_in_json_is_found(check, tmp_path):
    tool = tmp_path / "twice"
    tool.write_text(json('"args": {"a": ["string", "one"], "a": ["string", "two"]}', "twice"))
    tool.chmod(0o755)
    assert codes(check(tool)) == {"duplicate-parameter-names"}


def test_a_file_without_the_run_bit_is_not_asked(check, tmp_path):
    tool, data = tmp_path / "tool", tmp_path / "data.json"
    tool.write_text(text(name="tool"))
    data.write_text("{}")
    (finding,) = check(tool).findings
    assert (finding.code, finding.fixable, "chmod +x" in finding.hint) == ("not-executable", True, True)
    assert [finding.fixable for finding in check(data).findings if finding.code == "not-executable"] == [False]
    tool.chmod(0o755)
    assert not codes(check(tool))


def test_what_is_no_file_is_named_and_never_opened(check_all, tmp_path):
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to("nowhere")
    (tmp_path / "circle").symlink_to("circle")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))
        found = {Path(report.target).name: codes(report) for report in check_all(tmp_path)}
    assert found == {
        "fifo": {"not-a-file"},
        "socket": {"not-a-file"},
        "link": {"dangling-link"},
        "circle": {"dangling-link"},
    }


def test_what_everybody_may_change_or_replace_is_an_error(check, tmp_path):
    place = tmp_path / "open"
    place.mkdir()
    tool = place / "tool"
    tool.write_text(text(name="tool"))
    for mode, around, expected in ((0o755, 0o755, 0), (0o757, 0o755, 1), (0o755, 0o777, 1), (0o755, 0o1777, 0)):
        tool.chmod(mode)
        place.chmod(around)
        assert codes(check(tool)) == ({"world-writable"} if expected else set())


@pytest.mark.every_user
@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_what_cannot_be_read_is_an_error(check, tmp_path):
    tool = tmp_path / "tool"
    tool.write_text(text(name="tool"))
    tool.chmod(0o300)
    assert codes(check(tool)) == {"unreadable"}


def test_a_name_that_is_no_text_is_said_and_the_file_not_started(check, tmp_path):
    tool = os.fsencode(tmp_path) + b"/\xff"
    with open(tool, "w") as file:
        file.write(text())
    os.chmod(tool, 0o755)
    assert codes(check(os.fsdecode(tool))) == {"file-name"}


def test_an_empty_file_is_an_error(check, tmp_path):
    tool = tmp_path / "tool"
    tool.touch()
    tool.chmod(0o755)
    assert codes(check(tool)) == {"describe-form"}


def test_a_file_that_the_kernel_refuses_is_an_error(check, tmp_path):
    tool = tmp_path / "tool"
    tool.write_bytes(b"\x7fELF" + bytes(100))
    tool.chmod(0o755)
    assert codes(check(tool)) == {"describe-not-started"}
