"""The browser of the console's tests: Chromium as the system has it, driven by Playwright. Playwright's own download is
not used. `scripts/test-programs` runs this file to ask whether a browser is there.

    with Browsing() as browsing:
        title = browsing.do(lambda: browsing.context().new_page().title())

Playwright's blocking API leaves an event loop running in its thread, and then `asyncio.run` fails there. So Playwright
has a thread of its own, in which everything runs that touches a page.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Self, TypeVar

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Playwright

Answer = TypeVar("Answer")

PROGRAMS = (
    "chromium-headless-shell",
    "chrome-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)
# A container has little shared memory, and root has no browser sandbox. The pages are haft's own.
# Names below `example` lead to this machine, as the name of an attacker can.
OPTIONS = (
    "--no-sandbox",
    "--disable-dev-shm-usage",
    "--font-render-hinting=none",
    "--host-resolver-rules=MAP *.example 127.0.0.1",
)


def chromium() -> str | None:
    """The path of a Chromium; None if there is none. `HAFT_CHROMIUM` names another one."""
    if named := os.environ.get("HAFT_CHROMIUM"):
        return named
    return next((found for name in PROGRAMS if (found := shutil.which(name))), None)


class Browsing:
    """One browser, in a thread of its own."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="browser")
        self._playwright: Playwright | None = None
        self.browser: Browser | None = None

    def __enter__(self) -> Self:
        self.do(self._start)
        return self

    def __exit__(self, *_: object) -> None:
        self.do(self._stop)
        self._thread.shutdown()

    def do(self, work: Callable[..., Answer], *arguments: Any, **named: Any) -> Answer:
        """Do something in the browser's thread, and wait for it."""
        return self._thread.submit(work, *arguments, **named).result()

    def context(self, *, width: int = 1280, height: int = 860, scheme: str = "light", **more: Any) -> BrowserContext:
        """A context without cookies: as a browser that was never here. Only in the browser's thread."""
        assert self.browser is not None
        options = {"viewport": {"width": width, "height": height}, "color_scheme": scheme, "locale": "en-GB"}
        made = self.browser.new_context(**(options | more))  # type: ignore[arg-type]
        made.set_default_timeout(15_000)
        return made

    def _start(self) -> None:
        from playwright.sync_api import sync_playwright

        self._playwright = sync_playwright().start()
        self.browser = self._playwright.chromium.launch(executable_path=chromium(), args=[*OPTIONS])

    def _stop(self) -> None:
        if self.browser is not None:
            self.browser.close()
        if self._playwright is not None:
            self._playwright.stop()


if __name__ == "__main__":
    sys.exit(chromium() is None)
