"""`haft inbox --watch --notify`: what the desktop is told, and what is said where there is none."""

import json
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the desktops of Linux")

RECORDER = """#!/bin/sh
for word in "$@"; do printf '%s\\n' "$word"; done >> "$HOME/notified"
echo end >> "$HOME/notified"
"""


@pytest.fixture
def desktop(haft, tmp_path):
    """A desktop session whose `notify-send` writes down what it is told."""
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "notify-send").write_text(RECORDER)
    (programs / "notify-send").chmod(0o755)
    haft.env["PATH"] = f"{programs}:{haft.env['PATH']}"
    haft.env["DBUS_SESSION_BUS_ADDRESS"] = "unix:path=/nonexistent"
    haft.env["HOME"] = str(tmp_path)
    return tmp_path / "notified"


@pytest.fixture
def waits(haft, ended):
    def ask(command):
        ended(haft.ask("tools", "use", "shell", "--command", command, "--wait", "100")[0])

    return ask


def watched(haft, ended, *words):
    watching = ended(haft.start("inbox", "--watch", *words))
    return json.loads(watching.stdout.readline()), watching


def told(path, eventually):
    eventually(lambda: path.exists() and path.read_text().endswith("end\n"), what="a notification")
    return path.read_text().splitlines()


def test_a_notification_names_the_tool_the_caller_and_the_workspace_but_no_argument(
    haft, ended, waits, desktop, eventually
):
    waits("echo hunter2 > <b>made</b>")
    request, _ = watched(haft, ended, "--notify")
    app, bar, title, text, end = told(desktop, eventually)
    assert (app, bar, title, end) == ("--app-name=haft", "--", "haft: shell needs approval", "end")
    assert text == f"{request['who']} in {haft.workspace.name}"


def test_arguments_are_in_it_only_if_asked_for_and_are_no_markup(haft, ended, waits, desktop, eventually):
    waits("echo '<b>x</b>' > made")
    watched(haft, ended, "--notify=arguments")
    text = told(desktop, eventually)[3]
    assert "&lt;b&gt;x&lt;/b&gt;" in text and "<" not in text


@pytest.mark.parametrize(
    ("path", "bus", "said"), [(True, False, "no desktop session"), (False, True, "`notify-send` is not installed")]
)
def test_where_there_is_no_desktop_one_line_says_so_and_the_requests_still_come(
    haft, ended, waits, desktop, path, bus, said
):
    if not path:
        (desktop.parent / "programs/notify-send").unlink()
    if not bus:
        del haft.env["DBUS_SESSION_BUS_ADDRESS"]
        haft.env.pop("XDG_RUNTIME_DIR", None)
    waits("touch made")
    request, watching = watched(haft, ended, "--notify")
    assert request["tool"] == "shell"
    watching.terminate()
    _out, err = watching.communicate(timeout=30)
    lines = [line for line in err.decode().splitlines() if "desktop" in line]
    assert len(lines) == 1 and said.replace("no desktop session", "does not belong to a desktop session") in lines[0]


def test_notifications_need_watch(haft):
    said = haft("inbox", "--notify")
    assert said.code == 2 and "`--notify` needs `--watch`" in said.err
