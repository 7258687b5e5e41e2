"""Lines are analysed as UTF-8. In GBK the bytes of `中\\` are two other characters, and the quote behind them ends the
word: what was a text for analysis is a command for bash. So bash never reads a line in such a locale unless a person,
who was told so, approved it.
"""

import asyncio
import os
import shutil
import subprocess

import pytest

from haft.builtin import builtin_tools
from haft.policy.analysis import AnalysisContext, analyse
from haft.policy.enablement import Enablement
from haft.policy.policy_engine import PolicyEngine
from haft.policy.query import PolicyQuery
from haft.policy.rules.reading import rules_from
from haft.service import ToolService

SHELL = next(tool.spec for tool in builtin_tools() if tool.spec.name == "shell")
HIDDEN = 'echo "中\\" ; ./pwn # "'
"""To whoever reads UTF-8: `echo`, with one word."""

FOREIGN = [
    "LC_ALL=zh_CN.GBK",
    "LANG=zh_CN.GBK",
    "LC_CTYPE=ja_JP.SJIS",
    "LC_ALL=zh_TW.Big5",
    "LC_ALL=zh_CN",
    "LC_ALL=zh_CN.GBK.UTF-8",
    "LC_ALL=../../evil.UTF-8",
    "LC_ALL+=zh_CN.GBK",
    "LC_ALL[0]=zh_CN.GBK",
    'LC_ALL="zh_CN.GBK"',
    "LC_ALL=zh_CN$x",
    "LOCPATH=evil LC_ALL=C.UTF-8",
    "export LC_ALL=zh_CN.GBK",
    'export "LC_ALL=zh_CN.GBK"',
    "export $x",
    "export L\\C_ALL=zh_CN.GBK",
    "declare -x LC_ALL=zh_CN.GBK",
    "declare -n other=LC_ALL",
    "builtin export LC_ALL=zh_CN.GBK",
    "read LC_ALL <<< zh_CN.GBK",
    'read -r "LC_"ALL <<< zh_CN.GBK',
    "read -pwhich LC_ALL <<< zh_CN.GBK",
    "read -ra LC_ALL <<< zh_CN.GBK",
    "x=1 command read LC_ALL <<< zh_CN.GBK",
    "read $x <<< zh_CN.GBK",
    "read LC_{ALL,CTYPE} <<< zh_CN.GBK",
    "mapfile -t LC_ALL <<< zh_CN.GBK",
    "printf -v LC_ALL %s zh_CN.GBK",
    "printf -vLC_ALL %s zh_CN.GBK",
    "for LC_ALL in zh_CN.GBK; do true; done",
    ": ${LC_ALL:=zh_CN.GBK}",
    ": ${!x:=zh_CN.GBK}",
    "if true; then LC_ALL=zh_CN.GBK; fi",
    "f() { LC_ALL=zh_CN.GBK; }",
    "env LC_ALL=zh_CN.GBK sed -n 1p a.txt",
    "timeout 5 /usr/bin/env LC_ALL=zh_CN.GBK sed -n 1p a.txt",
    "LC_ALL=zh_CN.GBK sed -n 1p a.txt",
]

PLAIN = [
    "LC_ALL=C sort a.txt",
    "LC_ALL=POSIX sort a.txt",
    "LC_ALL=C.UTF-8 sort a.txt",
    "LC_ALL=en_US.utf8 sort a.txt",
    "LANG='de_DE.UTF-8' sort a.txt",
    "LC_ALL= sort a.txt",
    "env LC_ALL=C sort a.txt",
    "echo $LANG ${LC_ALL:-none}",
    "grep -n LC_ALL=zh_CN.GBK a.txt",
    'cat a.txt | while read -r line; do echo "$line"; done',
]


@pytest.fixture
def workspace(tmp_path):
    place = tmp_path / "workspace"
    place.mkdir()
    (place / "a.txt").write_text("a\n")
    (place / "pwn").write_text("#!/bin/sh\necho pwned\n")
    (place / "pwn").chmod(0o755)
    return place


@pytest.fixture
def locales(workspace):
    """Where the files of a GBK locale lie."""
    if shutil.which("localedef") is None or not os.path.isdir("/usr/share/i18n/charmaps"):
        pytest.skip("the definitions of locales are not on this machine")
    where = workspace / "locales"
    where.mkdir()
    # It warns of what the locale lacks, and makes it all the same.
    subprocess.run(
        ["localedef", "--quiet", "--no-archive", "-c", "-f", "GBK", "-i", "POSIX", where / "zh_CN.gbk"], check=False
    )
    return where


@pytest.fixture
def engine(workspace):
    def engine(*tables):
        rules = rules_from(list(tables), origin="user", source="user.toml")
        return PolicyEngine(rules, Enablement(), str(workspace.resolve()), "/home/ann")

    return engine


ALLOWED = {"tool": "shell", "action": "allow"}


def called(workspace, home, **options):
    async def call():
        rule = {**ALLOWED, "grant": {"env": ["LOCPATH"]}}
        settings = {"permissions": [rule]}
        async with ToolService.open(workspace, home=home, installed=False, settings=settings) as service:
            return await service.call("shell", {"command": HIDDEN}, **options)

    return asyncio.run(call())


def test_bash_really_reads_another_line_in_another_encoding(workspace, locales):
    env = {**os.environ, "LOCPATH": str(locales), "LC_ALL": "zh_CN.GBK"}
    said = subprocess.run(["bash", "-c", HIDDEN], cwd=workspace, env=env, capture_output=True).stdout
    assert b"pwned" in said
    later = subprocess.run(
        ["bash", "-c", f"LC_ALL=zh_CN.GBK\n{HIDDEN}"], cwd=workspace, env={**env, "LC_ALL": "C"}, capture_output=True
    )
    assert b"pwned" in later.stdout


@pytest.mark.every_user
def test_a_host_of_another_encoding_does_not_hand_it_to_what_a_rule_allowed(workspace, locales, tmp_path, monkeypatch):
    monkeypatch.setenv("LC_ALL", "zh_CN.GBK")
    monkeypatch.setenv("LOCPATH", str(locales))
    outcome = called(workspace, tmp_path / "home")
    assert outcome.status == "done", outcome
    assert outcome.output == '中" ; ./pwn # \n'


@pytest.mark.every_user
def test_a_caller_that_sets_another_encoding_needs_approval_although_a_rule_allows_it(workspace, locales, tmp_path):
    outcome = called(workspace, tmp_path / "home", env={"LC_ALL": "zh_CN.GBK", "LOCPATH": str(locales)})
    assert outcome.status == "rejected-by-user", outcome
    assert outcome.output == ""


@pytest.mark.parametrize("setting", FOREIGN)
def test_a_line_that_may_set_another_encoding_is_not_understood(workspace, setting):
    found = analyse(f"{setting}\n{HIDDEN}", AnalysisContext(str(workspace.resolve())))
    assert not found.understood
    assert not found.safe
    assert found.parts[0].dangers == ("not-understood",)


@pytest.mark.parametrize("line", PLAIN)
def test_a_line_that_stays_with_utf8_or_bytes_passes_as_before(workspace, line):
    assert analyse(line, AnalysisContext(str(workspace.resolve()))).safe


def test_a_script_in_a_line_may_not_set_another_encoding_either(engine):
    line = f"bash -c 'LC_ALL=zh_CN.GBK\n{HIDDEN}'"
    assert engine(ALLOWED).decide(PolicyQuery(SHELL, {"command": line})).action == "ask"


@pytest.mark.parametrize("name", ["LC_ALL", "LANG", "LC_CTYPE", "LC_COLLATE", "LOCPATH"])
def test_variables_of_a_call_that_choose_another_encoding_ask_even_where_a_rule_allows(engine, name):
    foreign = {name: "zh_CN.GBK"}
    for question in (
        PolicyQuery(SHELL, {"command": "cat a.txt", "env": foreign}),
        PolicyQuery(SHELL, {"command": "cat a.txt"}, env=foreign),
    ):
        assert engine(ALLOWED).decide(question).action == "ask"
        decision = engine().decide(question)
        assert decision.action == "ask"
        assert f"`{name}=zh_CN.GBK` is set" in decision.reason
    assert engine().decide(PolicyQuery(SHELL, {"command": "cat a.txt", "env": {"LC_ALL": "C.UTF-8"}})).action == "allow"


def test_rules_that_reject_are_held_against_the_text_in_another_encoding(engine):
    line = 'echo "中\\" ; rm -r x # "'
    question = PolicyQuery(SHELL, {"command": line, "env": {"LC_ALL": "zh_CN.GBK"}})
    rejecting = engine({"tool": "shell", "action": "reject", "matches": {"command": "rm *"}}, ALLOWED)
    assert rejecting.decide(question).action == "reject"


def test_names_that_cannot_be_looked_up_as_bash_spells_them_are_not_trusted(workspace, monkeypatch):
    (workspace / "链").symlink_to("/etc/passwd")
    monkeypatch.setattr("sys.getfilesystemencoding", lambda: "gbk")
    assert not analyse("cat 链", AnalysisContext(str(workspace.resolve()))).understood
    assert analyse("cat a.txt", AnalysisContext(str(workspace.resolve()))).safe
