"""What `--fix` does to files, and what it leaves alone."""

import os
import stat

import pytest

from haft.authoring.check import CODES, Finding, apply_fixes
from haft.sources.checks.files import check_rights, check_start, inspect_file

SCRIPT = b"#!/bin/sh\necho 'name: x'\n"


def findings(path):
    file = inspect_file(str(path))
    return [*check_rights(str(path), file.mode), *check_start(file)]


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize(
    ("content", "before", "after"),
    [(SCRIPT, 0o644, 0o755), (SCRIPT, 0o600, 0o700), (SCRIPT, 0o640, 0o750), (b"\x7fELF" + bytes(9), 0o444, 0o555)],
)
def test_whoever_may_read_a_program_may_run_it_afterwards(tmp_path, content, before, after):
    tool = tmp_path / "tool"
    tool.write_bytes(content)
    tool.chmod(before)
    mended = apply_fixes(findings(tool))
    assert ([finding.code for finding, _done in mended.done], mended.refused) == (["not-executable"], [])
    assert (mode(tool), tool.read_bytes()) == (after, content)


def test_others_lose_the_right_to_write(tmp_path):
    place = tmp_path / "place"
    place.mkdir()
    tool = place / "tool"
    tool.write_bytes(SCRIPT)
    tool.chmod(0o777)
    place.chmod(0o777)
    assert len(apply_fixes(findings(tool)).done) == 2
    assert (mode(tool), mode(place)) == (0o775, 0o775)
    assert not findings(tool)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"#!/bin/sh\r\necho a\r\nprintf 'b\rc\xc3\xa4'\n\r\n", b"#!/bin/sh\necho a\nprintf 'b\rc\xc3\xa4'\n\n"),
        (b"\xef\xbb\xbf#!/bin/sh\necho \xef\xbb\xbf\n", b"#!/bin/sh\necho \xef\xbb\xbf\n"),
        (b"\xef\xbb\xbf#!/bin/sh\r\necho a\r\n", b"#!/bin/sh\necho a\n"),
    ],
)
def test_line_ends_and_the_mark_are_mended_and_no_other_byte(tmp_path, before, after):
    tool = tmp_path / "tool"
    tool.write_bytes(before)
    tool.chmod(0o750)
    apply_fixes(findings(tool))
    assert (tool.read_bytes(), mode(tool)) == (after, 0o750)
    assert not findings(tool)
    assert os.listdir(tmp_path) == ["tool"]


@pytest.mark.parametrize("content", [b"echo a\r\n", b"\xef\xbb\xbfecho\n", b"a,b\r\n1,2\r\n", b"#!/bin/sh\necho\r\n"])
def test_what_is_not_broken_is_not_touched(tmp_path, content):
    tool = tmp_path / "tool"
    tool.write_bytes(content)
    tool.chmod(0o755)
    assert not apply_fixes(findings(tool)).done
    assert tool.read_bytes() == content


def test_a_link_that_leads_out_is_not_followed(tmp_path):
    place, outside = tmp_path / "place", tmp_path / "outside"
    place.mkdir()
    outside.write_bytes(SCRIPT.replace(b"\n", b"\r\n"))
    outside.chmod(0o646)
    (place / "tool").symlink_to(outside)
    mended = apply_fixes(findings(place / "tool"))
    assert {finding.code for finding, _why in mended.refused} == {"world-writable", "not-executable", "crlf-shebang"}
    assert not mended.done and all("link" in why for _finding, why in mended.refused)
    assert (mode(outside), outside.read_bytes()) == (0o646, SCRIPT.replace(b"\n", b"\r\n"))


def test_a_link_inside_is_mended_where_it_leads(tmp_path):
    (tmp_path / "real").write_bytes(SCRIPT)
    (tmp_path / "real").chmod(0o644)
    (tmp_path / "tool").symlink_to("real")
    assert apply_fixes(findings(tmp_path / "tool")).done
    assert mode(tmp_path / "real") == 0o755 and (tmp_path / "tool").is_symlink()


def test_a_directory_that_is_a_link_is_not_changed(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "real").chmod(0o777)
    (tmp_path / "link").symlink_to("real")
    mended = apply_fixes([Finding("world-writable", "x", path=str(tmp_path / "link"), fixable=True)])
    assert len(mended.refused) == 1 and mode(tmp_path / "real") == 0o777


def test_what_is_found_in_the_workspace_is_only_changed_in_the_workspace(tmp_path):
    workspace, victim = tmp_path / "workspace", tmp_path / "victim"
    victim.mkdir()
    (victim / "tool").write_bytes(SCRIPT.replace(b"\n", b"\r\n"))
    (victim / "tool").chmod(0o646)
    victim.chmod(0o777)
    (workspace / ".agents").mkdir(parents=True)
    (workspace / ".agents/tools").symlink_to(victim)
    mended = apply_fixes(findings(workspace / ".agents/tools/tool"), str(workspace))
    assert not mended.done and len(mended.refused) == 4
    assert (mode(victim), mode(victim / "tool")) == (0o777, 0o646) and b"\r\n" in (victim / "tool").read_bytes()
    assert len(apply_fixes(findings(victim / "tool"), str(workspace)).done) == 4, (
        "whoever names the file itself means it"
    )


def test_nor_through_a_link_out_of_its_directory_there(tmp_path):
    (tmp_path / "tools").mkdir()
    (tmp_path / "hook").write_bytes(SCRIPT)
    (tmp_path / "hook").chmod(0o644)
    (tmp_path / "tools/tool").symlink_to("../hook")
    assert not apply_fixes(findings(tmp_path / "tools/tool"), str(tmp_path)).done and mode(tmp_path / "hook") == 0o644
    (tmp_path / "tools/real").write_bytes(SCRIPT)
    (tmp_path / "tools/real").chmod(0o644)
    assert apply_fixes(findings(tmp_path / "tools/real"), str(tmp_path)).done and mode(tmp_path / "tools/real") == 0o755


@pytest.mark.parametrize("payload", [b"\0\r\n\x01", b"\xff\r\n", b"\r\n" * 1_000_000])
def test_a_script_that_carries_more_than_text_keeps_every_byte(tmp_path, payload):
    tool = tmp_path / "tool"
    tool.write_bytes(b"#!/bin/sh\r\n" + b"# text\r\n" * 2_000 + payload)
    before = tool.read_bytes()
    (finding,) = [one for one in findings(tool) if one.code == "crlf-shebang"]
    assert not finding.fixable
    mended = apply_fixes([Finding("crlf-shebang", "x", path=str(tool), fixable=True)])
    assert len(mended.refused) == 1 and tool.read_bytes() == before, "nor where it became so since it was looked at"


def test_what_is_gone_is_said(tmp_path):
    mended = apply_fixes([Finding("not-executable", "x", path=str(tmp_path / "gone"), fixable=True)])
    assert len(mended.refused) == 1


def test_only_codes_that_say_so_are_ever_mended():
    assert {code.code for code in CODES.values() if code.fixable} == {
        "not-executable",
        "world-writable",
        "crlf-shebang",
        "bom-shebang",
    }
