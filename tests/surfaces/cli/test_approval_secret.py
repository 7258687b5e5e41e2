"""`haft approval secret`, and answers that need the passphrase."""

import json

from .conftest import Terminal, until

PASSPHRASE = "correct horse"


def test_the_passphrase_is_set_changed_and_removed(haft):
    assert haft("approval", "secret", "--show").out == "no approval passphrase is set\n"
    said = haft("approval", "secret", "--new", "-", stdin=f"{PASSPHRASE}\n")
    assert (said.code, said.out) == (0, "the approval passphrase is set\n")
    assert "restart your agents" in said.err
    assert haft("approval", "secret", "--show", "--json").json == {"set": True, "changed": False}
    (haft.workspace / "old").write_text(PASSPHRASE)
    (haft.workspace / "wrong").write_text("wrong horse")
    said = haft("approval", "secret", "--old", "wrong", "--new", "-", stdin="another horse\n")
    assert said.code == 3
    assert "the approval passphrase is wrong" in said.err
    assert haft("approval", "secret", "--old", "old", "--new", "-", stdin="another horse\n").code == 0
    assert haft("approval", "secret", "--remove", "--old", "old").code == 3
    assert haft("approval", "secret", "--remove", "--old", "-", stdin="another horse\n").code == 0
    assert haft("approval", "secret", "--show").out == "no approval passphrase is set\n"
    for word in (PASSPHRASE, "another horse"):
        assert not any(word in path.read_text(errors="replace") for path in haft.home.rglob("*") if path.is_file())


def test_the_passphrase_is_typed_twice_at_a_terminal_and_not_shown(haft):
    terminal = Terminal(haft, "approval", "secret")
    terminal.until("New approval passphrase: ")
    terminal.type(f"{PASSPHRASE}\n")
    terminal.until("The same again: ")
    terminal.type("something else\n")
    terminal.until("the two passphrases differ")
    assert terminal.end() == 3
    assert PASSPHRASE not in terminal.seen
    assert haft("approval", "secret", "--show", "--json").json["set"] is False


def test_answers_need_the_passphrase(haft):
    haft("approval", "secret", "--new", "-", stdin=f"{PASSPHRASE}\n")
    call = haft.start("tools", "use", "shell", "--command", "touch made", "--wait", "60", "--json")
    (request,) = until(lambda: haft("inbox", "--json").json)
    said = haft("approve", request["id"])
    assert said.code == 3
    assert "the approval passphrase is needed, and there is no terminal to ask at" in said.err
    assert haft("reject", request["id"]).code == 3
    assert haft("approve", request["id"], "--passphrase", "-", stdin="wrong horse\n").code == 3
    terminal = Terminal(haft, "approve", request["id"])
    terminal.until("Approval passphrase: ")
    terminal.type(f"{PASSPHRASE}\n")
    terminal.until("shell is approved")
    assert terminal.end() == 0
    out, _ = call.communicate()
    assert json.loads(out)["status"] == "done"
    assert (haft.workspace / "made").exists()


def test_the_watched_inbox_asks_for_the_passphrase_once(haft):
    haft("approval", "secret", "--new", "-", stdin=f"{PASSPHRASE}\n")
    call = haft.start("tools", "use", "shell", "--command", "touch made", "--wait", "60", "--json")
    until(lambda: haft("inbox", "--json").json)
    screen = Terminal(haft, "inbox", "--watch")
    screen.until("Approval passphrase: ")
    screen.type(f"{PASSPHRASE}\n")
    for name in ("made", "later"):
        screen.until("Enter confirms")
        screen.type("y")
        screen.until("approve shell? Enter confirms")
        screen.type("\r")
        screen.until("is approved")
        assert json.loads(call.communicate()[0])["status"] == "done"
        assert (haft.workspace / name).exists()
        if name == "made":
            call = haft.start("tools", "use", "shell", "--command", "touch later", "--wait", "60", "--json")
    screen.type("q")
    assert screen.end() == 0
    assert screen.seen.count("Approval passphrase: ") == 1
