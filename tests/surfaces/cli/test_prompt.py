"""The question at the terminal: what it shows, and what each answer means."""

from __future__ import annotations

import asyncio
import unicodedata
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from haft.contracts import ApprovalRequest, Confinement, Grants, RunId, ThreadId, ToolName
from haft.surfaces.cli.person.approver import _key, _Prompt
from haft.surfaces.cli.person.interrupts import Interrupts
from haft.surfaces.text.requests import call_lines, url_host

from .conftest import until

QUESTION = ", e(dit), m(essage)] "
MIRROR = "mirror.example=10.1.0.0/16,10.2.0.0/16"
CLOSED = Confinement("workspace", network=False)
TOUCH = ["tools", "use", "shell", "--command", "touch made && echo done"]


def test_each_part_of_a_command_is_shown_with_its_reason(terminal):
    here = terminal(*TOUCH)
    here.until(QUESTION)
    assert "  - ask: touch made\n" in here.seen and "  - allow: echo done\n" in here.seen
    assert "t (in this thread) or a (always, here) also allows" in here.seen
    assert "exactly this call of shell" in here.seen
    assert "Approve shell? [y/N, t(hread), a(lways), w(ith network), w HOST, e(dit), m(essage)] " in here.seen
    here.type("n\n")
    assert here.end() == 3


def test_always_is_remembered(terminal, haft):
    here = terminal(*TOUCH)
    here.until(QUESTION)
    here.type("a\n")
    assert here.end() == 0
    assert haft("permissions", "list", "--json").json[0]["exactly"] == {"command": "touch made && echo done"}
    assert haft(*TOUCH).code == 0


def test_for_this_thread_is_remembered_for_it(terminal, haft):
    here = terminal(*TOUCH, "--thread", "T-one")
    here.until(QUESTION)
    here.type("t\n")
    assert here.end() == 0
    assert haft("permissions", "list", "--json").json[0]["thread"] == "T-one"
    assert haft(*TOUCH, "--thread", "T-one").code == 0
    assert haft(*TOUCH).code == 3


def drawn_columns(line: str) -> int:
    """How far a terminal gets: to the next stop at a tab, two columns for a wide character, none for a mark."""
    column = 0
    for character in line:
        if character == "\t":
            column += 8 - column % 8
        elif unicodedata.category(character) not in ("Mn", "Me"):
            column += 2 if unicodedata.east_asian_width(character) in "WF" else 1
    return column


WIDTH = 40
SPOOF = "\t" * 4 + "        Approve shell? [y/N] y"
tricky = st.text(st.sampled_from("\t\n ax\u4f60\uff21\u0301\u200b\u1160\u00ad\U0001f600\r\x1b"), max_size=120)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(tricky, tricky, tricky)
@example(SPOOF, "x", "x")
@example("x", SPOOF, "x")
@example("x", "x", "\u4f60" * 25)
@example("x", "x", "a" * 28 + "\u0301")
@example("", "", "a\x1b\x1b\xad\uffa0\u1160")
@example("\u0301" * 50, "\u0301", "a" + "\u0301" * 500)
def test_no_text_of_a_call_leaves_its_frame(monkeypatch, value, name, reason):
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    monkeypatch.setenv("LANG", "C.UTF-8")
    request = ApprovalRequest(
        run=RunId("r_1"), tool=ToolName("shell"), description="", arguments={name: value, "words": [value]},
        reason=reason, who="me", thread=ThreadId("T-1"), cwd=value or ".", env={name: value}, preview=value,
        chain=(value,),
    )  # fmt: skip
    first, *rest = call_lines(request, request.arguments, "/w")
    assert first.startswith("shell needs approval:")
    for line in (first, *rest):
        assert drawn_columns(line) <= WIDTH, "the terminal would break it, and its end would stand where haft speaks"
        assert "\n" not in line and "\t" not in line
    assert all(line.startswith("  ") for line in rest)
    # A mark would be drawn over the frame, and a stack of them over other lines.
    for line in rest:
        marks = "".join("m" if unicodedata.category(one) in ("Mn", "Me", "Mc") else "." for one in line)
        assert marks[2:3] != "m" and "m" * 5 not in marks
        assert not line.startswith("  │ ") or marks[4:5] != "m"


def test_the_prompt_says_who_waits_for_the_answer(monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    request = ApprovalRequest(
        run=RunId("r_3"), tool=ToolName("shell"), description="", arguments={}, reason="", who="me",
        thread=ThreadId("T-1"), chain=("r_1", "r_2"), chain_tools=("deploy", "step"),
    )  # fmt: skip
    shown = "\n".join(call_lines(request, {}, "/w"))
    assert "called by: r_1 (deploy) → r_2 (step): all wait for the answer" in shown


def test_a_file_to_be_trusted_stays_in_its_frame(haft, terminal):
    (haft.workspace / "haft.toml").write_text(
        f"# {SPOOF}\n# {'x' * 76}hint: nothing is widened\n[sandbox]\nmode = 'off'\n"
    )
    asked = terminal("trust", COLUMNS="80")
    asked.until("as it is now? [y/N] ")
    shown = asked.seen[: asked.seen.rindex("would count")].splitlines()[1:]
    assert all(line.startswith("  │ ") and drawn_columns(line) <= 80 for line in shown if line.strip())
    assert "\\t\\t\\t\\t" in asked.seen
    asked.type("n\n")
    asked.end()


def test_a_changed_definition_is_shown_and_hides_nothing():
    request = ApprovalRequest(
        run=RunId("r_1"),
        tool=ToolName("shout"),
        description="",
        arguments={},
        reason="its definition has changed",
        who="me",
        thread=ThreadId("T-1"),
        definition_diff="--- a\n+++ b\n@@ -1 +1 @@\n-old\n+new\x1b[2K\n" + "+more\n" * 500,
    )
    shown = list(call_lines(request, {}, "/w"))
    assert "  its file is not the one that was approved:" in shown
    assert "-old" in shown and "+new\\x1b[2K" in shown
    assert len(shown) < 250 and any("more lines" in line for line in shown)
    described = replace(request, definition_diff="--- definition as approved\n+++ definition as it is now\n")
    assert "  its definition is not the one that was approved:" in list(call_lines(described, {}, "/w"))
    configured = replace(request, definition_diff="configuration: its grants have changed")
    assert "  its configuration is not the one that was approved:" in list(call_lines(configured, {}, "/w"))


def test_a_process_that_answers_all_calls_is_not_offered_the_network_for_one_call():
    confined = Confinement("read-only", session=True, keeps_state=True, entry="below `[providers.x]`")
    assert "w HOST" not in prompt_of(confined)._keys({}) and answered("w", confined) is None
    assert "by a grant below `[providers.x]`" in prompt_of(confined)._not_understood("w", {})


@pytest.mark.parametrize("answer", ["a 9", "a 0", "t x", "w w", "yy", "sure"])
def test_unknown_input_asks_again_and_says_what_the_keys_are(terminal, haft, answer):
    here = terminal(*TOUCH)
    here.until(QUESTION)
    here.type(f"{answer}\n")
    here.until(f"`{answer}` is not an answer here: type y/N, t(hread), a(lways), w(ith network), w HOST, e(dit)")
    here.until(QUESTION)
    assert not (haft.workspace / "made").exists()
    here.type("y\n")
    assert here.end() == 0
    assert (haft.workspace / "made").exists()
    assert haft("permissions", "list", "--json").json[0]["origin"] == "built-in"


@pytest.mark.parametrize("answer", ["yes", "Y", "YES", " Yes "])
def test_yes_means_yes(terminal, haft, answer):
    here = terminal(*TOUCH)
    here.until(QUESTION)
    here.type(f"{answer}\n")
    assert here.end() == 0
    assert (haft.workspace / "made").exists()


@pytest.mark.parametrize(("answer", "origin"), [("always", None), ("Thread 1", "T-one")])
def test_the_words_behind_the_keys_are_answers_too(terminal, haft, answer, origin):
    here = terminal(*TOUCH, "--thread", "T-one")
    here.until(QUESTION)
    here.type(f"{answer}\n")
    assert here.end() == 0
    kept = haft("permissions", "list", "--json").json[0]
    assert kept["exactly"] == {"command": "touch made && echo done"} and kept.get("thread") == origin


def test_yes_with_network(terminal, haft):
    here = terminal(*TOUCH)
    here.until(QUESTION)
    here.type("w\n")
    assert here.end() == 0
    assert haft("log", "--json").json[0]["outcome"]["sandbox"]["network"] is True


@pytest.mark.parametrize(
    ("answer", "grants"),
    [
        ("w registry.example:443", Grants(network=("registry.example:443",))),
        ("with network Registry.Example, localhost:5432", Grants(network=("registry.example", "localhost:5432"))),
        ("network *.example.org /tmp", Grants(network=("*.example.org",), scratch=True)),
        ("w mirror.example=10.1.0.0/16,10.2.0.0/16 /tmp", Grants(network=(MIRROR,), scratch=True)),
        ("w @package-indexes", Grants(network=("@package-indexes",))),
        ("w /tmp", Grants(network=True, scratch=True)),
        ("network", Grants(network=True)),
    ],
)
def test_the_network_can_be_opened_for_the_typed_hosts(answer, grants):
    given = answered(answer)
    assert given.approved and given.grants == grants
    words = "with network" if grants.network is True else f"with network only to {', '.join(grants.network)}"
    assert words in given.message


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ("w https://a.example", "`https://a.example` is no host: leave out `https://` and the path"),
        ("w localhost:x", "`localhost:x` is no host"),
        ("w a.example *.github.io", "names below `github.io` belong to many owners; name the hosts"),
        ("w @mirrors", "there is no group `@mirrors` of hosts"),
    ],
)
def test_a_host_that_cannot_be_granted_is_asked_for_again_with_the_reason(answer, why):
    prompt = prompt_of(CLOSED)
    assert answered(answer) is None
    assert why in prompt._not_understood(answer, {}) and "is not offered" in prompt._not_understood(answer, {})


def test_a_call_with_hosts_can_get_more_hosts_or_the_whole_network():
    confined = Confinement("workspace", network=("a.example",))
    assert "w(ith network), w HOST" in prompt_of(confined)._keys({})
    assert answered("w b.example", confined).grants == Grants(network=("b.example",))
    assert answered("w", confined).grants == Grants(network=True)
    for closed in (Confinement("workspace", network=False, never_network=True), Confinement("workspace", network=True)):
        assert answered("w b.example", closed) is None
        assert "w HOST" not in prompt_of(closed)._keys({})


def prompt_of(confinement):
    request = ApprovalRequest(
        RunId("r_1"), ToolName("shell"), "", {}, "it may write", "me", ThreadId("t"), sandbox=confinement
    )
    return _Prompt(request, Interrupts(lambda _text: None), "/w", None)


def answered(line, confinement=CLOSED):
    return asyncio.run(prompt_of(confinement)._answer_for(_key(line), {}))


def test_a_tool_without_a_sandbox_offers_no_network(terminal, haft):
    here = terminal("tools", "use", "write_file", "--path", "b.txt", "--content", "x")
    here.until(QUESTION)
    assert "network]" not in here.seen and "w(ith network)" not in here.seen
    here.type("w\n")
    here.until("`w` is not offered: ")
    here.until(QUESTION)
    here.type("n\n")
    assert here.end() == 3


def test_under_never_no_network_is_offered(terminal, haft):
    (haft.workspace / "haft.toml").write_text('[sandbox]\nnetwork = "never"\n')
    here = terminal(*TOUCH)
    here.until(QUESTION)
    assert "w(ith network)" not in here.seen
    here.type("w\n")
    here.until("`w` is not offered: ")
    here.until(QUESTION)
    here.type("n\n")
    assert here.end() == 3


def test_no_with_a_message(terminal, haft):
    here = terminal(*TOUCH)
    here.until(QUESTION)
    here.type("m\n")
    here.until("Message for the caller: ")
    here.type("use make instead\n")
    assert here.end() == 3
    assert "use make instead" in haft("log", "--json").json[0]["outcome"]["error"]["message"]


def test_edited_arguments_are_approved_once(terminal, haft):
    here = terminal(*TOUCH)
    here.until(QUESTION)
    here.type("e\n")
    here.until("Arguments as JSON on one line")
    here.type('{"command": "touch other"}\n')
    here.until("command: touch other")
    here.until("Approve shell? [y/N, w(ith network), w HOST, e(dit), m(essage)] ")
    here.type("y\n")
    assert here.end() == 0
    assert (haft.workspace / "other").exists()


def test_it_can_be_answered_elsewhere_meanwhile(terminal, haft):
    here = terminal(*TOUCH)
    here.until(QUESTION)
    waiting = until(lambda: haft("inbox", "--json").json)
    assert haft("approve", waiting[0]["id"]).code == 0
    here.until("answered elsewhere: ")
    assert here.end() == 0
    assert (haft.workspace / "made").exists()


def test_edited_arguments_are_looked_at_again_before_anyone_says_yes(terminal, haft):
    (haft.workspace / "docs").mkdir()
    here = terminal(*TOUCH, EDITOR="", VISUAL="")
    here.until(QUESTION)
    here.type("e\n")
    here.until("Arguments as JSON")
    here.type('{"command": "rm -rf docs"}\n')
    here.until("recursive-delete")
    here.until(QUESTION)
    assert "command: rm -rf docs" in here.seen
    here.type("e\n")
    here.until("Arguments as JSON")
    here.type('{"comand": "x"}\n')
    here.until("the arguments were not changed")
    here.until(QUESTION)
    here.type("n\n")
    assert here.end() == 3
    assert (haft.workspace / "docs").exists()


def test_a_question_mark_explains_the_choices(terminal):
    here = terminal(*TOUCH)
    here.until(QUESTION)
    here.type("?\n")
    here.until("n, no, Enter: reject this call")
    here.until(QUESTION)
    here.type("n\n")
    assert here.end() == 3


def test_a_key_that_is_not_offered_says_why(terminal):
    here = terminal("tools", "use", "shell", "--command", "cat /tmp/out.csv")
    here.until(QUESTION)
    here.type("t\n")
    here.until("`t` is not offered: `/tmp/out.csv` lies outside of the workspace; it leaves the workspace")
    here.until(QUESTION)
    here.type("o\n")
    here.until("`o` is not offered: no variable is withheld")
    here.until(QUESTION)
    here.type("n\n")
    assert here.end() == 3


def test_the_first_line_breaks_between_words(monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    reason = "`/tmp/out.csv` lies outside of the workspace; it leaves the workspace (outside-workspace)"
    request = ApprovalRequest(RunId("r_1"), ToolName("t"), "", {}, reason, "me", ThreadId("T"))
    first, second, *_ = call_lines(request, {}, "/w")
    assert first == "t needs approval: `/tmp/out.csv` lies outside of the"
    assert second == "  │ workspace; it leaves the workspace (outside-workspace)"


@pytest.mark.parametrize(
    "url",
    [
        "https://host.example/path",
        "https://host.example\\@good.example/",
        "https:///host.example/",
        "https:\\\\host.example?@good.example",
        "https://good.example@host.example#x",
    ],
)
def test_the_host_of_an_address_is_the_one_that_a_browser_visits(url):
    assert url_host(url) == "host.example"
