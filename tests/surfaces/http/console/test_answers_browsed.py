"""Answering calls in a real browser: a call is approved with its diff on the page, its output streams, and it is undone
again; also with the keyboard alone. And what must not happen: answers by accident, or to something that nobody saw."""

import asyncio
import re
import sys
import threading
from pathlib import Path

import pytest
from playwright.sync_api import expect

sys.path.insert(0, str(Path(__file__).parent))
from console_server import ConsoleServer
from corner_shop import make_corner_shop

GUARD = 620
"""Longer than a card's guard, in milliseconds."""


@pytest.fixture(scope="module")
def answered_shop(tmp_path_factory):
    return asyncio.run(make_corner_shop(tmp_path_factory.mktemp("answered"), works=False))


@pytest.fixture(scope="module")
def console(answered_shop):
    """A server of this module, because its tests answer the calls that wait."""
    with ConsoleServer(answered_shop) as server:
        yield server


@pytest.fixture(scope="module")
def signed_in(console):
    return console.cookies("mira.okafor")


@pytest.fixture(scope="module")
def agent(console):
    # Not of the kind agent: whoever descends from an agent's process cannot answer, and this browser would.
    with console.client("codex", "person", "caller") as found:
        yield found


@pytest.fixture(scope="module")
def jonas(console):
    with console.client("jonas") as found:
        yield found


@pytest.fixture
def call(agent):
    """Let an agent make a call, and return its run and the id of the request that waits."""

    def made(tool, *, trial=False, jonas=None, **args):
        answer = agent.post("/calls", json={"tool": tool, "args": args, "trial": trial, "wait": 0})
        return answer.raise_for_status() and answer.json()["run"]

    return made


def waiting(jonas, run):
    """The request of a run, as soon as it waits."""
    for _ in range(400):
        for each in jonas.get("/inbox").json()["requests"]:
            if each["run"] == run:
                return each["id"]
        threading.Event().wait(0.02)
    raise AssertionError(jonas.get(f"/runs/{run}").text)


def write_file(call, path, content):
    return call("write_file", path=path, content=content)


def shown(page, console, request):
    """Open a call that waits, and let its guard pass."""
    page.goto(console.address(f"approve/{request}"))
    expect(page.locator("[data-card]")).to_be_visible()
    page.wait_for_timeout(GUARD)


def has_ended(jonas, run):
    for _ in range(400):
        found = jonas.get(f"/runs/{run}").json()
        if found["endedAt"] is not None:
            return found
        threading.Event().wait(0.02)
    raise AssertionError(found)


def test_a_call_is_approved_with_its_diff_its_output_streams_and_it_is_undone(console, page, call, jonas):
    run = call("shell", command="echo begin; echo careful >&2; echo changed > notes.txt; echo the end")
    page.goto(console.address(f"runs/{run}"))
    output = page.get_by_role("log", name="Output text")
    expect(output).to_have_text("Nothing written yet.")

    tab = page.context.new_page()  # Both tabs share one stream.
    tab.goto(console.address("now"))
    tab.get_by_role("link", name=re.compile("shell echo begin")).first.click()
    expect(tab.get_by_role("heading", name=re.compile("May codex run this"))).to_be_focused()
    tab.wait_for_timeout(GUARD)
    tab.get_by_role("button", name="Approve").click()
    tab.wait_for_timeout(GUARD)
    tab.get_by_role("button", name="Confirm approve").click()
    expect(tab.get_by_role("heading", name="Nothing waits for you")).to_be_visible()
    tab.close()

    # The script appended these lines: the page was not loaded again.
    expect(output.locator("div")).to_have_count(3)
    expect(output.locator(".err")).to_have_text(re.compile("careful"))
    expect(page.locator(".run-head")).to_contain_text("done, committed")
    expect(page.locator(".changes ins")).to_contain_text("changed")

    page.get_by_role("button", name="Undo").click()
    plan = page.get_by_role("region", name="Undo plan")
    expect(plan).to_contain_text("No conflict. Nothing has been touched.")
    expect(plan.get_by_role("row").last).to_contain_text("notes.txt")
    page.get_by_role("button", name=re.compile("^Undo r_")).press("Enter")
    assert (Path(console.shop.workspace) / "notes.txt").exists()
    page.get_by_role("button", name=re.compile("^Confirm: Undo")).press("Enter")
    expect(page.locator(".run-head")).to_contain_text("undone")
    expect(page.get_by_role("button", name="Redo")).to_be_visible()
    assert not (Path(console.shop.workspace) / "notes.txt").exists()


def test_a_trial_run_is_committed_in_part_by_keyboard_alone(console, page, call, jonas):
    workspace = Path(console.shop.workspace)
    command = "sed -i s/white/black/ public/theme.css; echo one > one.txt; echo two > two.txt; rm -r dist/old"
    run = call("shell", command=command, trial=True)
    waiting(jonas, run)
    page.goto(console.address("now"))
    page.keyboard.press("1")
    expect(page.get_by_role("heading", name=re.compile("Commit this trial run"))).to_be_focused()
    expect(page.locator("del .w, del")).not_to_have_count(0)
    page.wait_for_timeout(GUARD)
    for _ in range(2):  # The deleted directory comes first, then one.txt.
        page.keyboard.press("j")
    page.keyboard.press("x")
    page.keyboard.press("a")
    expect(page.get_by_text("Commits 3 of 4 changes. Leaves out one.txt.")).to_be_visible()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Nothing waits for you")).to_be_visible()
    expect(page.locator("[data-toast]")).to_contain_text("Approved once, 1 left out.")
    has_ended(jonas, run)
    assert (workspace / "two.txt").exists()
    assert not (workspace / "one.txt").exists()
    assert not (workspace / "dist/old").exists()


def test_a_conflict_is_seen_before_an_undo_and_settled_by_keyboard_alone(console, page, call, jonas):
    path = Path(console.shop.workspace) / "twice.txt"
    runs = []
    for content in ("first\n", "second\n"):
        runs.append(write_file(call, "twice.txt", content))
        jonas.post(f"/inbox/{waiting(jonas, runs[-1])}/approve", json={}).raise_for_status()
        has_ended(jonas, runs[-1])
    page.goto(console.address(f"runs/{runs[0]}"))
    page.keyboard.press("u")
    plan = page.get_by_role("region", name="Undo plan")
    expect(plan).to_contain_text("1 conflict. Nothing has been touched.")
    expect(plan.locator(".clash")).to_contain_text("twice.txt")
    expect(plan.get_by_role("button", name="Undo")).to_be_disabled()
    expect(plan.get_by_role("radio").first).to_be_focused()
    page.keyboard.press("Space")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(plan).to_contain_text("Armed. Enter confirms, Esc disarms.")
    assert path.read_text() == "second\n"
    page.keyboard.press("Enter")
    expect(page.locator(".run-head")).to_contain_text("undone")
    assert not path.exists()


def test_a_call_is_rejected_with_a_reason_that_the_agent_reads(console, page, call, jonas):
    run = write_file(call, "refused.txt", "no\n")
    shown(page, console, waiting(jonas, run))
    page.keyboard.press("r")
    page.keyboard.type("Use the other file, and answer ] with care.")
    page.keyboard.press("Enter")
    expect(page.locator("[data-toast]")).to_contain_text("The agent was told why.")
    assert "answer ] with care" in has_ended(jonas, run)["outcome"]["error"]["message"]


def test_keys_do_not_count_before_the_guard_has_passed(console, page, call, jonas):
    run = write_file(call, "guarded.txt", "1\n")
    page.goto(console.address(f"approve/{waiting(jonas, run)}"))
    page.evaluate(  # Typed before the card appeared: no time passes between these keys and the card.
        """() => { for (const key of ["a", "Enter", "r"])
             document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true})) }"""
    )
    expect(page.get_by_role("button", name="Confirm approve")).to_be_hidden()
    page.wait_for_timeout(GUARD)
    page.keyboard.press("Enter")  # Nothing is armed.
    assert jonas.get(f"/runs/{run}").json()["status"] == "blocked-on-user"
    page.keyboard.press("a")
    expect(page.get_by_role("button", name="Confirm approve")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Confirm approve")).to_be_hidden()
    jonas.post(f"/inbox/{run}/reject", json={})


def test_an_armed_card_stays_and_the_next_begins_with_nothing_armed(console, page, call, jonas):
    runs = [write_file(call, f"queue-{number}.txt", "1\n") for number in (1, 2)]
    first, second = (waiting(jonas, run) for run in runs)
    shown(page, console, first)
    page.keyboard.press("a")
    page.keyboard.press("]")
    page.keyboard.press("[")
    page.wait_for_timeout(100)
    expect(page).to_have_url(re.compile(first))
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(second))
    expect(page.get_by_role("button", name="Confirm approve")).to_be_hidden()
    assert has_ended(jonas, runs[0])["status"] == "done"
    assert jonas.get(f"/runs/{runs[1]}").json()["status"] == "blocked-on-user"
    jonas.post(f"/inbox/{second}/reject", json={})


def test_who_was_first_is_said_when_somebody_else_answers(console, page, call, jonas):
    run = write_file(call, "first.txt", "1\n")
    request = waiting(jonas, run)
    shown(page, console, request)
    page.keyboard.press("a")
    jonas.post(f"/inbox/{request}/approve", json={}).raise_for_status()
    expect(page.locator("main")).to_contain_text("jonas approved this")
    expect(page.get_by_role("button", name="Confirm approve")).to_have_count(0)


def test_an_answer_to_what_has_changed_meanwhile_is_not_sent_and_it_is_shown_anew(console, page, call, jonas):
    run = call("shell", command="echo 1 > part-1.txt; echo 2 > part-2.txt", trial=True)
    request = waiting(jonas, run)
    shown(page, console, request)
    page.keyboard.press("a")
    # Somebody applies a part of the trial run, so that the rest is another change.
    jonas.post(f"/runs/{run}/apply", json={"paths": ["part-1.txt"]}).raise_for_status()
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("This call changed while you looked.")
    expect(page.locator("[data-card] .path")).to_have_text(["part-2.txt"])
    expect(page.get_by_role("button", name="Confirm approve")).to_be_hidden()
    jonas.post(f"/inbox/{request}/reject", json={})


def test_what_a_tool_wrote_is_text(console, page, call, jonas):
    hostile = (
        "<img src=x onerror=document.title=1><script>document.title=1</script>\x1b[2J\u202etxt.exe\u2066\ndata: x\n\n"
    )
    run = call("shell", command=f"printf %s '{hostile}'; printf %s '{hostile}' > 'a<b>.html'", trial=True)
    request = waiting(jonas, run)
    for path in (f"approve/{request}", f"runs/{run}", "runs?q=printf", "now"):
        page.goto(console.address(path))
        expect(page.locator("main")).to_contain_text("<script>document.title=1</script>" if "/" in path else "printf")
        assert page.locator("main img, main script").count() == 0
        text = page.locator("main").inner_text()
        assert not re.search("[\x1b\u202e\u2066]", text)
    page.goto(console.address(f"runs/{run}"))
    expect(page.locator(".log .unseen").first).to_have_text("\\x1b[2J")
    assert "haft" in page.title()
    jonas.post(f"/inbox/{request}/reject", json={})
