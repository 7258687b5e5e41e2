"""`haft providers login`: a person logs in at a remote MCP server, in a browser."""

import json
import re
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "sources" / "mcp"))
from remote_servers import Issuer, real_server

BROWSER = """\
#!{python}
import pathlib, sys, urllib.request
pathlib.Path({opened!r}).write_text(sys.argv[1])
urllib.request.build_opener(urllib.request.ProxyHandler({{}})).open(sys.argv[1]).read()
"""


@pytest.fixture
def issuer():
    with Issuer() as issuer:
        yield issuer


@pytest.fixture
def server(haft, issuer):
    """A server that wants a login, configured as `calc`."""
    with real_server(token=lambda: issuer.good, issuer=issuer.url) as url:
        own = haft.home.parent / "config" / "haft" / "haft.toml"
        own.parent.mkdir(parents=True)
        own.write_text(f'[providers.calc]\nurl = "{url}"\n')
        yield url


@pytest.fixture
def opened(tmp_path, monkeypatch):
    """Where the browser of this machine writes which address it opened; it then logs in."""
    path, program = tmp_path / "opened", tmp_path / "browser"
    program.write_text(BROWSER.format(python=sys.executable, opened=str(path)))
    program.chmod(0o755)
    return path, str(program)


def test_a_login_in_the_browser_lets_calls_through_until_the_server_is_removed(haft, server, issuer, opened):
    path, browser = opened
    refused = haft("tools", "use", "mcp__calc__add", "--a", "2", "--b", "3", "--approve")
    assert refused.code == 2
    assert "`haft providers login calc`" in refused.err
    said = haft("providers", "login", "calc", BROWSER=browser)
    assert said.code == 0, said.err
    assert "The MCP server `calc` asks you to log in at `127.0.0.1` (its own host):" in said.err
    assert path.read_text() in said.err.splitlines()
    assert said.out == "logged in at calc\ncalc has 1 tool\n  mcp__calc__add\n"
    assert haft("tools", "use", "mcp__calc__add", "--a", "2", "--b", "3", "--approve", "--only", "output").out == "5"
    kept = [path for path in haft.home.rglob("*") if path.is_file() and b"access-token-1" in path.read_bytes()]
    assert [path.parent.name for path in kept] == ["logins"]
    assert haft("providers", "remove", "calc").code == 0
    assert not kept[0].exists()


def test_nobody_but_the_person_opens_a_page(haft, server, issuer, opened):
    path, browser = opened
    haft("providers", "restart", "calc", BROWSER=browser)
    haft("tools", "use", "mcp__calc__add", "--a", "2", "--b", "3", "--approve", BROWSER=browser)
    assert not path.exists()
    assert issuer.requests == []


def test_a_server_of_a_workspace_is_not_contacted_before_it_is_trusted(haft, issuer, opened):
    path, browser = opened
    with real_server(token="never", issuer=issuer.url) as url:
        (haft.workspace / ".mcp.json").write_text(json.dumps({"mcpServers": {"theirs": {"url": url}}}))
        said = haft("providers", "login", "theirs", BROWSER=browser)
    assert said.code == 2
    assert "haft did not connect to `theirs`" in said.err
    assert "haft providers trust theirs" in said.err
    assert not path.exists()


def test_a_server_without_a_login_says_so(haft, issuer):
    with real_server() as url:
        own = haft.home.parent / "config" / "haft" / "haft.toml"
        own.parent.mkdir(parents=True)
        own.write_text(f'[providers.calc]\nurl = "{url}"\n')
        said = haft("providers", "login", "calc")
    assert said.code == 0
    assert said.out.startswith("calc needs no login\n")


def test_a_login_that_a_person_refuses_fails_and_keeps_nothing(haft, server, issuer, opened):
    issuer.refuses = True
    said = haft("providers", "login", "calc", BROWSER=opened[1])
    assert said.code == 1
    assert "the login was refused: access_denied" in said.err
    assert not [*haft.home.rglob("logins/*")]


def test_without_a_browser_the_address_is_printed_and_the_one_at_the_end_is_pasted(server, terminal, opened):
    """The person's browser runs on another machine, where nobody waits for it."""
    here = terminal("providers", "login", "calc", "--no-browser", BROWSER=opened[1])
    here.until("press Enter.")
    (address,) = re.findall(r"^http\S+", here.seen, flags=re.MULTILINE)
    with pytest.raises(urllib.error.HTTPError) as caught:
        direct.open(address)
    caught.value.close()
    here.type(caught.value.headers["location"] + "\n")
    here.until("mcp__calc__add")
    assert here.process.wait(30) == 0
    assert not opened[0].exists()


class Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None


direct = urllib.request.build_opener(Stay, urllib.request.ProxyHandler({}))
