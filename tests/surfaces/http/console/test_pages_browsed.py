"""The pages Files, Tools, Rules, Audit and Machine in a real browser: each does what it is for."""

import re

import pytest
from playwright.sync_api import expect

TOTAL = "src/cart/total.ts"


def test_the_history_of_a_file_says_which_run_did_what_and_why(console, shop, page):
    page.goto(console.address(f"files/{TOTAL}"))
    rail = page.get_by_role("list").filter(has=page.get_by_text("Saved outside haft")).get_by_role("link")
    expect(rail).to_have_count(5)
    expect(rail.nth(0)).to_contain_text("sub-agent of claude-code")
    expect(rail.nth(2)).to_contain_text("Saved outside haft")
    expect(rail.nth(3)).to_contain_text("undone by mira")
    rail.nth(1).click()
    expect(page).to_have_url(re.compile(rf"change={shop.runs['cents']}"))
    change = page.locator("#change")
    expect(change).to_contain_text("mira approved")
    expect(change.locator("ins").first).to_contain_text("roundCents")
    blamed = page.get_by_role("region", name="The file now, by run")
    expect(blamed.locator(".is-now .ln").first).to_contain_text("roundCents")
    expect(blamed).to_contain_text("outside haft")


def test_undo_from_here_on_takes_back_all_later_runs_of_a_file_after_one_more_question(console, page):
    path, first, second = "notes.txt", "one\n", "one\ntwo\n"
    with console.client("undoer") as client:
        for content in (first, second):
            called = client.post(
                "/calls", json={"tool": "write_file", "args": {"path": path, "content": content}, "wait": 0}
            )
            client.post(f"/inbox/{called.json()['run']}/approve", json={}).raise_for_status()
            client.get(f"/runs/{called.json()['run']}").raise_for_status()
    page.goto(console.address(f"files/{path}"))
    expect(page.locator(".rail a")).to_have_count(2)
    page.locator(".rail a").nth(1).click()
    page.get_by_role("button", name="Undo from here on").click()
    plan = page.get_by_role("region", name="Undo plan")
    expect(plan).to_contain_text("Nothing has been touched")
    plan.get_by_role("button", name="Undo 2 runs").press("Enter")
    assert (console.shop.workspace / path).exists()
    plan.get_by_role("button", name="Confirm: undo 2 runs").press("Enter")
    expect(page.get_by_text("Undone.")).to_be_visible()
    expect(page.locator(".rail .is-undone")).to_have_count(2)
    assert not (console.shop.workspace / path).exists()


def test_a_file_that_no_run_changed_says_so(console, page):
    page.goto(console.address("files"))
    page.get_by_label("Go to a path").fill("README.md")
    page.keyboard.press("Enter")
    expect(page.get_by_text("No run has changed README.md.")).to_be_visible()


def test_what_a_tool_takes_is_a_form_and_the_decision_follows_what_is_typed(console, page):
    page.goto(console.address("tools/shell"))
    page.get_by_label("command").fill("ls src")
    decided = page.get_by_role("region", name="What haft decides")
    expect(decided).to_contain_text("This call passes")
    page.get_by_label("command").fill("ls src && rm -rf dist")
    expect(decided).to_contain_text("This call needs approval")
    expect(decided.get_by_role("listitem").first).to_contain_text("rm -rf dist")
    page.get_by_label("command").fill("npm publish")
    expect(decided).to_contain_text("haft.toml:7")


def test_a_form_says_nested_values_lists_and_alternatives(console, page):
    page.goto(console.address("tools/tb__print_label"))
    form = page.locator("#call")
    form.get_by_label("carrier").select_option("bicycle")
    for name, text in {"name": "Ann", "street": "Mill 1", "city": "Ulm"}.items():
        form.get_by_label(name, exact=True).or_(form.get_by_role("textbox", name=f"{name} required")).first.fill(text)
    form.get_by_label("parcel").select_option("By box")
    form.get_by_label("parcel, By box").select_option("M")
    form.get_by_role("button", name="Add to notes").click()
    form.get_by_label("notes, entry 1").fill("Ring twice")
    form.get_by_label("insured").check()
    form.get_by_label("declared_value").fill("12.5")
    page.get_by_role("button", name="JSON").click()
    expect(form.get_by_label("Arguments as JSON")).to_have_value(
        '{\n  "carrier": "bicycle",\n  "to": {\n    "name": "Ann",\n    "street": "Mill 1",\n    "city": "Ulm"\n  },\n'
        '  "parcel": "M",\n  "notes": [\n    "Ring twice"\n  ],\n  "insured": true,\n  "declared_value": 12.5\n}'
    )
    form.get_by_label("Arguments as JSON").fill('{"carrier": "post", "unknown": 1}')
    page.get_by_role("button", name="Form").click()
    expect(page.get_by_role("alert")).to_contain_text("cannot show")


def test_a_call_from_the_page_leads_to_its_run(console, page):
    page.goto(console.address("tools/read_file"))
    page.get_by_label("path").fill("README.md")
    page.get_by_role("button", name="Call").click()
    expect(page).to_have_url(re.compile("/runs/r_"))


def test_the_catalogue_begins_with_what_is_broken_and_narrows_as_one_types(console, page):
    page.goto(console.address("tools"))
    rows = page.locator("#catalogue a")
    expect(rows.first).to_contain_text("tb__stock_report")
    expect(rows.first).to_contain_text("broken")
    page.get_by_label("Find a tool").fill("label")
    expect(page.locator("#catalogue li:visible a")).to_have_count(1)
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("tools/tb__print_label"))


def test_an_edited_rule_says_which_past_calls_it_would_decide_otherwise(console, page):
    page.goto(console.address("rules"))
    row = page.get_by_role("row").filter(has_text="sh scripts/test.sh")
    expect(row).to_contain_text("passes")
    expect(row).to_contain_text(re.compile(r"[3-9] calls"))
    row.get_by_role("link").click()
    page.get_by_label("The rule as it is in the file").fill(
        '[[permissions]]\ntool = "shell"\nmatches = {command = "sh scripts/test.sh*"}\naction = "reject"\n'
    )
    expect(page.get_by_text(re.compile(r"[3-9] of \d+ calls would be decided otherwise"))).to_be_visible()
    expect(page.locator(".flips li").last).to_contain_text("passed, would be rejected")
    page.get_by_label("The rule as it is in the file").fill('[[permissions]]\ntool = "shell"\nactoin = "allow"\n')
    expect(page.locator("[data-replayed]")).to_contain_text("actoin")


def test_a_new_rule_is_written_after_one_more_question(console, page):
    own = console.home.parent / "config/haft/haft.toml"
    page.goto(console.address("rules?rule=new"))
    page.get_by_label("A new rule").fill('[[permissions]]\ntool = "search"\naction = "ask"\n')
    expect(page.get_by_text(re.compile("would be decided otherwise"))).to_be_visible()
    page.get_by_role("button", name="Add").press("Enter")
    assert not own.exists()
    page.get_by_role("button", name="Confirm: add the rule").press("Enter")
    expect(page.get_by_role("row").filter(has_text="search")).to_contain_text("needs approval")
    assert 'tool = "search"' in own.read_text()
    page.get_by_role("row").filter(has_text="search").get_by_role("link").click()
    page.get_by_role("button", name="Remove the rule").press("Enter")
    page.get_by_role("button", name="Confirm: remove the rule").press("Enter")
    expect(page.get_by_text("Removed.")).to_be_visible()
    assert "search" not in own.read_text()


def test_the_audit_log_is_verified_first_and_can_be_searched(console, page):
    page.goto(console.address("audit"))
    expect(page.get_by_role("region", name="Verification")).to_contain_text(
        re.compile(r"Complete and unaltered, \d+ records since")
    )
    page.get_by_label("Search the audit log").fill("npm publish")
    page.keyboard.press("Enter")
    rows = page.locator(".log-entries tbody tr")
    expect(rows).to_have_count(1)
    expect(rows.first).to_contain_text("rejected")
    with page.expect_download() as downloading:
        page.get_by_role("link", name="Export").click()
    assert "npm publish" in downloading.value.path().read_text()


def test_the_machine_begins_with_what_is_wrong_and_its_remedy(console, page):
    page.goto(console.address("machine"))
    first = page.locator(".troubles li").first
    expect(first).to_contain_text("broken")
    expect(first).to_contain_text("tb__stock_report")
    expect(first.get_by_role("button")).to_have_accessible_name(re.compile("Copy the command haft tools check"))


def test_what_tools_and_agents_wrote_is_text_on_every_page(console, page):
    for path in ("runs?tool=shell", "audit", "files", "tools", "rules", "machine", "now"):
        page.goto(console.address(path))
        assert page.title() != "1"
        assert page.locator("main script").count() == 0


@pytest.mark.parametrize("roles", [("reader",), ("caller",)])
def test_a_role_sees_no_button_for_what_it_may_not_do(console, browse, roles):
    page = browse(cookies=console.cookies(f"only-a-{roles[0]}", "person", *roles))
    page.goto(console.address(f"files/{TOTAL}"))
    expect(page.get_by_text("Undo this run")).to_have_count(0 if roles == ("caller",) else 1)
    page.goto(console.address("rules"))
    expect(page.get_by_role("link", name="New rule")).to_have_count(0)
