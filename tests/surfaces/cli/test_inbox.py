"""Calls that wait for a person: asked by one process, answered by another."""

from __future__ import annotations

import json
import os
import signal

import pytest

TOUCH = ["tools", "use", "shell", "--command", "touch made && echo done", "--wait", "100", "--json"]


@pytest.fixture
def asks(haft, ended):
    """A call that waits, in a process of its own, and its question."""

    def ask(*words):
        process, name = haft.ask(*words)
        (question,) = [one for one in haft("inbox", "--json").json if one["id"] == name]
        return ended(process), question

    return ask


def outcome_of(process):
    out, _err = process.communicate(timeout=60)
    return json.loads(out)


def test_a_call_waits_is_listed_whole_and_goes_on_when_it_is_approved(haft, asks):
    process, question = asks(*TOUCH)
    assert question["args"] == {"command": "touch made && echo done"}
    assert [part["action"] for part in question["parts"]] == ["ask", "allow"]
    assert not (haft.workspace / "made").exists()
    listed = haft("inbox")
    assert question["id"] in listed.out and "command: touch made && echo done" in listed.out
    said = haft("approve", question["id"])
    assert said.code == 0 and "is approved" in said.out
    assert "command: touch made && echo done" in said.err, "what was approved is shown whole"
    outcome = outcome_of(process)
    assert (outcome["status"], outcome["decision"]["by"]) == ("done", "person")
    assert (haft.workspace / "made").exists()
    assert haft("inbox", "--json").json == []


def test_the_caller_says_under_which_name_it_waits(haft, asks):
    process, question = asks(*TOUCH)
    haft("reject", question["run"])
    _out, err = process.communicate(timeout=60)
    assert f"waiting for approval: haft approve {question['id']}" in err.decode()


def test_other_arguments_are_decided_again_and_run(haft, asks):
    process, question = asks(*TOUCH)
    said = haft("approve", question["id"][:14], "--args", '{"command": "touch other"}')
    assert said.code == 0 and "command: touch other" in said.err
    assert outcome_of(process)["status"] == "done"
    assert (haft.workspace / "other").exists() and not (haft.workspace / "made").exists()


def test_a_no_with_a_message_reaches_the_outcome(haft, asks):
    process, question = asks(*TOUCH)
    assert haft("reject", question["run"], "--message", "not on a Friday").code == 0
    outcome = outcome_of(process)
    assert process.returncode == 3
    assert outcome["status"] == "rejected-by-user" and "not on a Friday" in outcome["error"]["message"]
    assert not (haft.workspace / "made").exists()


def test_an_answer_counts_once(haft, asks):
    process, question = asks(*TOUCH)
    assert haft("reject", question["id"]).code == 0
    late = haft("approve", question["id"])
    assert late.code == 5 and "answered already" in late.err and "rejected it" in late.err
    process.communicate(timeout=60)


def test_the_sandbox_is_opened_for_the_call_only_as_said(haft, asks, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    process, question = asks("tools", "use", "shell", "--command", f"touch {outside}/made", "--wait", "100", "--json")
    said = haft("approve", question["id"], "--network", "--write", str(outside), "--read", str(tmp_path / "outside"))
    assert "and the whole network" in said.err and f"and writing to {outside}" in said.err
    assert f"and reading {outside}" in said.err
    outcome = outcome_of(process)
    assert outcome["status"] == "done" and outcome["sandbox"]["network"] is True
    assert (outside / "made").exists()


def test_an_answer_opens_the_network_only_to_the_hosts_that_it_names(haft, asks):
    process, question = asks("tools", "use", "shell", "--command", "touch made", "--wait", "100", "--json")
    refused = haft("approve", question["id"], "--network=*.co.uk")
    assert refused.code == 2 and "names below `co.uk` belong to many owners" in refused.err
    said = haft("approve", "--network=registry.example:443", question["id"], "--network=localhost:5432")
    assert "and network only to registry.example:443, localhost:5432" in said.err
    outcome = outcome_of(process)
    assert outcome["status"] == "done"
    assert outcome["sandbox"]["network"] == ["registry.example:443", "localhost:5432"]
    shown = haft("show", outcome["run"]).out
    assert "network only to registry.example:443, localhost:5432" in shown


def test_the_inbox_shows_the_hosts_that_a_waiting_call_has(haft, asks):
    words = ["tools", "use", "shell", "--command", "touch made", "--wait", "100", "--json"]
    process, question = asks(*words, "--network=registry.example:443")
    assert "workspace, network only to registry.example:443, an empty /tmp" in haft("inbox").out
    haft("reject", question["id"])
    process.communicate(timeout=60)


def test_under_never_the_network_is_not_opened_by_an_answer_and_the_question_stays(haft, asks):
    (haft.workspace / "haft.toml").write_text('[sandbox]\nnetwork = "never"\n')
    process, question = asks("tools", "use", "shell", "--command", "touch made", "--wait", "100", "--json")
    for option in ("--network", "--network=a.example"):
        said = haft("approve", question["id"], option)
        assert said.code == 2 and "no call gets the network" in said.err
    haft("approve", question["id"])
    assert outcome_of(process)["sandbox"]["network"] is False


def test_always_is_no_wider_than_what_was_seen(haft, asks):
    process, question = asks(*TOUCH)
    assert len(question["toAllow"]) == 1
    said = haft("approve", question["id"], "--always", "--json").json
    assert (said["approved"], said["scope"]) == (True, "always")
    assert outcome_of(process)["status"] == "done"
    again = haft("tools", "use", "shell", "--command", question["args"]["command"], "--json")
    assert again.json["decision"]["source"].startswith("remembered:")
    for other in ("touch made", "touch another"):
        assert haft("tools", "use", "shell", "--command", other).code == 3


def test_for_its_thread_is_not_for_others(haft, asks):
    process, question = asks(*TOUCH, "--thread", "T-one")
    assert haft("approve", question["id"], "--thread").code == 0
    assert outcome_of(process)["status"] == "done"
    again = ["tools", "use", "shell", "--command", question["args"]["command"]]
    assert haft(*again, "--thread", "T-one").code == 0
    assert haft(*again, "--thread", "T-two").code == 3


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--as", "9"], "there is no choice 9"),
        (["--thread", "--always"], "cannot be used together"),
        (["--args", "{}", "--always"], "approves one call"),
        (["--args", "nonsense"], "not JSON"),
        (["--write", "/no/such/place"], "does not exist"),
    ],
)
def test_a_wrong_answer_answers_nothing(haft, asks, words, why):
    process, question = asks(*TOUCH)
    said = haft("approve", question["id"], *words)
    assert said.code == 2 and why in said.err
    assert [one["id"] for one in haft("inbox", "--json").json] == [question["id"]]
    haft("reject", question["id"])
    process.communicate(timeout=60)


def test_without_wait_and_terminal_it_is_rejected_at_once(haft):
    said = haft(*TOUCH[:5], "--json")
    assert said.code == 3 and said.json["decision"]["by"] == "nobody"


def test_nobody_answers_in_time(haft):
    said = haft("tools", "use", "shell", "--command", "touch made", "--wait", "0.2", "--json")
    assert said.code == 3 and said.json["decision"]["by"] == "expiry"
    late = haft("approve", said.json["run"])
    assert late.code == 2


@pytest.mark.parametrize("seconds", ["0", "-1", "soon", "inf"])
def test_a_wait_is_a_number_of_seconds(haft, seconds):
    said = haft("tools", "use", "shell", "--command", "touch made", f"--wait={seconds}")
    assert said.code == 2 and "--wait" in said.err


def test_a_yes_outlives_the_process_that_asked_for_the_same_call_once(haft, asks):
    process, question = asks(*TOUCH)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert [one["id"] for one in haft("inbox", "--json").json] == [question["id"]]
    refused = haft("approve", question["id"], "--args", '{"command": "ls"}')
    assert refused.code == 2 and "has ended" in refused.err
    said = haft("approve", question["id"], "--json")
    assert said.code == 0 and said.json["waits"] is False
    other = haft("tools", "use", "shell", "--command", "touch made", "--json")
    assert other.code == 3, "another call is not what was approved"
    call = ["tools", "use", "shell", "--command", "touch made && echo done", "--json"]
    assert haft(*call).json["decision"]["by"] == "person"
    assert (haft.workspace / "made").exists()
    assert haft(*call).code == 3, "once"


def test_what_was_tried_is_committed_though_the_process_that_asked_is_gone(haft, asks):
    process, question = asks(*TOUCH, "--try")
    assert "made" in question["diff"] and question["output"] == "done\n"
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert "new file mode" in haft("inbox").out
    assert not (haft.workspace / "made").exists()
    said = haft("approve", question["id"], "--json")
    assert said.code == 0 and said.json["settled"]["state"] == "committed"
    assert (haft.workspace / "made").exists()


def test_a_part_of_what_was_tried_is_applied_from_another_process(haft, asks):
    command = "mkdir new; echo a > new/a; echo b > b; echo c > c"
    process, question = asks("tools", "use", "shell", "--command", command, "--wait", "100", "--json", "--try")
    wrong = haft("approve", question["id"], "--path", "new/b")
    assert wrong.code == 2 and "did you mean `new/a`?" in wrong.err
    stale = haft("approve", question["id"], "--path", "b", "--digest", "0" * 64)
    assert stale.code == 5 and question["digest"] in stale.err
    said = haft("approve", question["id"], "--path", "new", "--path", "b", "--digest", question["digest"])
    assert said.code == 0 and "is approved in part" in said.out
    outcome = outcome_of(process)
    assert (outcome["status"], outcome["changes"]["state"]) == ("done", "held")
    assert [each["path"] for each in outcome["changes"]["files"]] == ["c"]
    assert (haft.workspace / "new/a").exists() and (haft.workspace / "b").exists()
    assert not (haft.workspace / "c").exists()
    assert haft("changes", "drop", outcome["run"]).code == 0


def test_a_part_of_what_was_tried_is_applied_though_the_process_that_asked_is_gone(haft, asks):
    process, question = asks("tools", "use", "shell", "--command", "echo a > a; echo b > b", "--wait", "100", "--try")
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    said = haft("approve", question["id"], "--path", "a", "--json")
    assert said.code == 0 and said.json["paths"] == ["a"] and said.json["settled"]["state"] == "committed"
    assert (haft.workspace / "a").exists() and not (haft.workspace / "b").exists()
    (held,) = haft("changes", "list", "--json").json
    assert (held["run"], held["files"]) == (question["run"], 1)


def test_what_was_tried_is_dropped_though_the_process_that_asked_is_gone(haft, asks):
    process, question = asks(*TOUCH, "--try")
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    said = haft("reject", question["id"], "--json")
    assert said.code == 0 and said.json["settled"]["state"] == "discarded"
    assert not (haft.workspace / "made").exists()
    assert haft("changes", "list", "--json").json == []


def test_the_inbox_of_a_workspace_is_not_that_of_another(haft, asks, tmp_path):
    process, question = asks(*TOUCH)
    other = tmp_path / "other"
    other.mkdir()
    assert haft("-w", str(other), "inbox", "--json").json == []
    assert [one["id"] for one in haft("-w", str(other), "inbox", "--all", "--json").json] == [question["id"]]
    haft("reject", question["id"])
    process.communicate(timeout=60)


def test_looking_leaves_no_trace(haft):
    said = haft("inbox")
    assert (said.code, said.out) == (0, "") and "no call waits" in said.err
    assert haft("approve", "a_1234").code == 2
    assert not haft.home.exists()


def test_what_waits_hides_nothing(haft, asks):
    process, question = asks(
        "tools", "use", "write_file", "--path", "b.txt", "--content", "x" * 500 + "END\x1b[2K\u202e", "--wait", "100"
    )
    shown = haft("inbox").out
    assert "END\\x1b[2K\\u202e" in "".join(line.removeprefix("  │ ") for line in shown.splitlines())
    assert "\x1b" not in shown and "\u202e" not in shown
    haft("reject", question["id"])
    process.communicate(timeout=60)


def test_a_tool_whose_file_changed_after_always_asks_again_and_shows_the_difference(haft, asks, tmp_path):
    site = tmp_path / "site"
    info = site / "shouting-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: shouting\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[haft.tools]\nshout = shouting:shout\n")
    code = 'from haft import tool\n\n@tool\ndef shout(text: str) -> str:\n    """Shout."""\n    return text.upper()\n'
    (site / "shouting.py").write_text(code)
    haft.env["PYTHONPATH"] = str(site)
    call = ["tools", "use", "shout", "--text", "hey", "--json"]
    process, question = asks(*call, "--wait", "100")
    assert question["definitionDiff"] is None
    assert haft("approve", question["id"], "--always").code == 0
    assert outcome_of(process)["output"] == "HEY"
    again = haft(*call).json
    assert (again["status"], again["decision"]["by"]) == ("done", "rule")
    (site / "shouting.py").write_text(code.replace("text.upper()", "'evil ' + text"))
    assert haft(*call).code == 3
    process, question = asks(*call, "--wait", "100")
    assert "-    return text.upper()" in question["definitionDiff"]
    assert "+    return 'evil ' + text" in question["definitionDiff"]
    assert "changed" in question["reason"]
    haft("reject", question["id"])
    assert outcome_of(process)["status"] == "rejected-by-user"


def test_arguments_that_the_tool_would_refuse_are_refused_and_the_question_stays(haft, asks):
    process, question = asks(*TOUCH)
    said = haft("approve", question["id"], "--args", '{"comand": "ls"}')
    assert said.code == 2 and "command" in said.err
    assert [one["id"] for one in haft("inbox", "--json").json] == [question["id"]]
    haft("reject", question["id"])
    process.communicate(timeout=60)
