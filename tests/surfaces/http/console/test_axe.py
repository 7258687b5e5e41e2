"""axe-core finds nothing serious or critical on any page in any state, on a phone and on a desk, dark and light."""

import itertools

import pytest
from playwright.sync_api import expect
from views import SCHEMES, WIDTHS, open_view, views

import npm_programs
import sampling

NAMES = [
    view.name
    for view in views(
        dict.fromkeys(("cents", "failed", "publish", "undone", "conflict", "hostile", "task", "tests", "import"), "r")
    )
]
ALL = list(itertools.product(NAMES, WIDTHS, SCHEMES))
RULES = {
    "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
    "resultTypes": ["violations"],
}
SERIOUS = ("serious", "critical")


@pytest.mark.parametrize(("name", "width", "scheme"), sampling.some(ALL, 12, "axe"))
def test_axe_finds_nothing_serious(console, shop, browse, name, width, scheme):
    axe = npm_programs.axe()
    view = next(each for each in views(shop.runs) if each.name == name)
    # axe is a script that the page itself would refuse.
    more = {} if view.is_signed_in else {"cookies": []}
    page = browse(width=width, height=WIDTHS[width], scheme=scheme, bypass_csp=True, reduced_motion="reduce", **more)
    open_view(page, console, view)
    expect(page.locator(".guarding")).to_have_count(0)  # The answers of a new card are faded, and count only later.
    page.evaluate(axe)
    found = page.evaluate("rules => axe.run(document, rules)", RULES)["violations"]
    told = [
        f"{each['impact']} {each['id']}: {node['target']} {node['failureSummary']}"
        for each in found
        if each["impact"] in SERIOUS
        for node in each["nodes"]
    ]
    assert "\n".join(told) == ""
