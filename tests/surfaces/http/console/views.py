"""Every view of the console: each page, and the states that it can be in. Axe checks them, and pictures are taken of
them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

WIDTHS = {1280: 860, 390: 844}
SCHEMES = ("dark", "light")


@dataclass(frozen=True)
class View:
    """A page in one state. `path` is below the workspace, or an address from `/` on; `act` brings the page into the
    state."""

    name: str
    path: str
    act: Callable[[Any], None] | None = None
    is_signed_in: bool = True


def _arm(key: str) -> Callable[[Any], None]:
    def act(page: Any) -> None:
        page.wait_for_timeout(700)  # The keys of a card count only after a moment.
        page.keyboard.press("a" if key != "r" else "r")
        if key.isdigit():
            page.keyboard.press(key)
        page.wait_for_timeout(100)

    return act


def _type_a_command(page: Any) -> None:
    page.get_by_label("command").fill("ls src && rm -rf dist")
    page.locator(".verdict").wait_for()


def _edit_the_rule(page: Any) -> None:
    text = page.get_by_label("The rule as it is in the file")
    text.fill(text.input_value().replace("allow", "reject"))
    page.get_by_text("would be decided otherwise").wait_for()


def _open_the_keys(page: Any) -> None:
    page.keyboard.press("?")


def views(runs: Mapping[str, str]) -> list[View]:
    """All views. `runs` are those of a corner shop."""
    total = "files/src/cart/total.ts"
    return [
        View("now", "now"),
        View("now-keys", "now", _open_the_keys),
        View("approve", "approve"),
        View("approve-armed", "approve", _arm("1")),
        View("approve-grant", "approve", _arm("4")),
        View("approve-edited", "approve", _arm("5")),
        View("approve-reject", "approve", _arm("r")),
        View("approve-none", "approve/a_000000000000000000000000"),
        View("runs", "runs"),
        View("runs-none", "runs?text=nothing+has+this"),
        View("run", f"runs/{runs['cents']}"),
        View("run-undo", f"runs/{runs['cents']}?undo=1"),
        View("run-error", f"runs/{runs['failed']}"),
        View("run-rejected", f"runs/{runs['publish']}"),
        View("run-undone", f"runs/{runs['undone']}"),
        View("run-conflict", f"runs/{runs['conflict']}"),
        View("run-hostile", f"runs/{runs['hostile']}"),
        View("run-task", f"runs/{runs['task']}"),
        View("run-unknown", "runs/r_000000000000000000000000"),
        View("compare", f"compare?a={runs['tests']}&b={runs['failed']}"),
        View("files", "files"),
        View("file", f"{total}?change={runs['cents']}"),
        View("file-undo", f"{total}?change={runs['import']}&undo=from-here"),
        View("file-none", "files/README.md"),
        View("tools", "tools"),
        View("tool-form", "tools/tb__print_label"),
        View("tool-decided", "tools/shell", _type_a_command),
        View("tool-broken", "tools/tb__stock_report"),
        View("tool-none", "tools/no_such_tool"),
        View("rules", "rules"),
        View("rule-edited", "rules?rule=haft.toml:13", _edit_the_rule),
        View("rule-new", "rules?rule=new"),
        View("audit", "audit"),
        View("audit-none", "audit?text=nothing+has+this"),
        View("machine", "machine"),
        View("sign-in", "/sign-in", is_signed_in=False),
        View("nowhere", "/w/no-such-workspace/now"),
    ]


def open_view(page: Any, server: Any, view: View) -> int:
    """Go to a view, and return the status of the answer. Clocks stand still in pictures, so nothing is waited for that
    never comes: live pages have a stream that stays open."""
    answer = page.goto(f"{server.url}{view.path}" if view.path.startswith("/") else server.address(view.path))
    page.wait_for_load_state("load")
    if view.act is not None:
        view.act(page)
    return 0 if answer is None else answer.status
