"""A browser, and a server over a workspace with a history: see `corner_shop` and `console_server`.

Tests with the fixture `page` or `browse` run in the browser's thread, so they use Playwright's blocking API directly.
"""

import asyncio
import contextlib
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from console_server import ConsoleServer
from corner_shop import make_corner_shop

from browsers import Browsing, chromium


@pytest.fixture(scope="session")
def browsing():
    """One browser for all tests of this process."""
    if chromium() is None:
        pytest.skip("there is no Chromium: install Debian's chromium-headless-shell")
    with Browsing() as found:
        yield found


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    browsing = pyfuncitem.funcargs.get("browsing")
    if browsing is None:
        return None
    names = pyfuncitem._fixtureinfo.argnames
    browsing.do(pyfuncitem.obj, **{name: pyfuncitem.funcargs[name] for name in names})
    return True


@pytest.fixture(scope="session")
def shop(tmp_path_factory):
    """A workspace in which agents have been at work."""
    return asyncio.run(make_corner_shop(tmp_path_factory.mktemp("shop")))


@pytest.fixture(scope="session")
def console(shop):
    """A server over the shop, with three calls that wait for a person. Tests that answer them have a server of their
    own."""
    with ConsoleServer(shop, waits=True) as server:
        yield server


@pytest.fixture(scope="session")
def signed_in(console):
    """The cookies of a browser in which an operator has signed in."""
    return console.cookies("mira.okafor")


@pytest.fixture
def browse(browsing, signed_in):
    """`browse(width=390, scheme="dark")`: a page of an operator who has signed in. A test fails if a script of the page
    does."""
    contexts, problems = [], []

    def opened(*, cookies=signed_in, **options):
        context = browsing.context(**options)
        context.add_cookies(cookies)
        context.on("weberror", lambda error: problems.append(str(error.error)))
        contexts.append(context)
        return context.new_page()

    yield opened

    def close():
        for context in contexts:
            with contextlib.suppress(Exception):
                context.close()

    browsing.do(close)
    assert problems == []


@pytest.fixture
def page(browsing, browse):
    """A page of an operator who has signed in, 1280 pixels wide."""
    return browsing.do(browse)
