"""Signing in with a real browser: with a link, with a token, and out again."""

import pytest

from browsers import Browsing, chromium
from haft import Principal
from haft.service import SignInLinks, Tokens, user_name

pytestmark = pytest.mark.skipif(chromium() is None, reason="there is no Chromium here")


@pytest.fixture(scope="module")
def browsing():
    with Browsing() as made:
        yield made


def test_a_link_signs_in_once_and_leaves_no_token_in_the_address(browsing, running):
    link = SignInLinks(running.home).address(running.url, Principal(user_name()))

    def go():
        with browsing.context() as context:
            page = context.new_page()
            page.goto(link.replace("/sign-in#", "/sign-in?to=/api/v1/me#"))
            page.wait_for_url("**/api/v1/me")
            told = page.locator("body").inner_text()
            (cookie,) = context.cookies()
            again = context.browser.new_context().new_page()
            again.goto(link)
            again.get_by_text("used before").wait_for()
            address = again.url
            again.context.close()
            return told, cookie, address

    told, cookie, address = browsing.do(go)
    assert '"operator"' in told and user_name() in told
    assert cookie["httpOnly"] and cookie["sameSite"] == "Strict" and cookie["name"].startswith("haft_session_")
    assert address == f"{running.url}/sign-in"


def test_a_token_is_typed_and_never_taken_from_an_address(browsing, running):
    token = Tokens(running.home).add("rita", Principal("ana"), kind="person", roles=["reader"])[1]

    def go():
        with browsing.context() as context:
            page = context.new_page()
            page.goto(f"{running.url}/sign-in?to=/api/v1/me#{token}")
            page.locator("#token").fill("haft_wrong")
            page.keyboard.press("Enter")
            page.get_by_text("wrong, expired or revoked").wait_for()
            before = context.cookies()
            page.locator("#token").fill(token)
            page.keyboard.press("Enter")
            page.wait_for_url("**/api/v1/me")
            return before, page.locator("body").inner_text()

    before, told = browsing.do(go)
    assert before == [] and '"rita"' in told
