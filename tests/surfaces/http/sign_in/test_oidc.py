"""Signing in with a real identity provider, `oidc-provider` from npm."""

import contextlib
import re
import subprocess
from urllib.parse import parse_qs, urljoin, urlsplit

import httpx
import pytest

import npm_programs
from haft.service import Sessions, StateHome
from haft.surfaces.http.sign_in import SignIn
from haft.surfaces.http.sign_in.oidc import OidcProvider, OidcSettings

ROLES = {"staff": frozenset({"caller"}), "admins": frozenset({"operator"}), "unverified": frozenset({"reader"})}
RUNS = "/api/v1/workspaces/default/runs"
OWN = {"Sec-Fetch-Site": "same-origin"}
PAGE = {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}


@pytest.fixture(scope="module")
def issuer():
    modules = npm_programs.identity_provider()
    script = npm_programs.PROVIDER.parent / "provider.mjs"
    command = [str(npm_programs.node()), str(script), str(modules)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            yield process.stdout.readline().strip()
        finally:
            process.kill()


@contextlib.contextmanager
def served(serve, directory, issuer, **settings):
    """A server with this identity provider."""
    given = {"client_id": "haft", "client_secret": "the secret of haft", "groups": ROLES, **settings}

    def sign_in(home):
        return SignIn(home, oidc=OidcProvider(OidcSettings(issuer, **given), home))

    with serve(directory, sign_in=sign_in) as running:
        yield running


@pytest.fixture(scope="module")
def with_provider(tmp_path_factory, issuer, serve):
    with served(serve, tmp_path_factory.mktemp("oidc"), issuer) as found:
        yield found


class Browser:
    """A browser, as far as signing in needs one: it keeps cookies, says where a navigation comes from, follows
    redirects, and fills in the provider's forms."""

    def __init__(self, running):
        self.home = running.url
        self.client = httpx.Client(timeout=60, trust_env=False)

    def close(self):
        self.client.close()

    def go(self, address, *, until=None, account=None, **request):
        """The answer at the end of the way; the first one whose address begins with `until`."""
        site, answer = "none", None
        for _ in range(20):
            own = str(address).startswith(self.home)
            headers = {**PAGE, "Sec-Fetch-Site": site} if own else PAGE
            answer = self.client.request(request.pop("method", "GET"), address, headers=headers, **request)
            request = {}
            if answer.is_redirect:
                following = urljoin(address, answer.headers["location"])
                if urlsplit(following).netloc != urlsplit(address).netloc:
                    site = "cross-site"
                address = following
                if until is not None and address.startswith(until):
                    return address
            elif own and 'http-equiv="refresh"' in answer.text:
                site = "same-origin"  # A page of haft that loads itself again.
            elif not own and "<form" in answer.text:
                address, request = self._filled_in(answer, account)
            else:
                return answer
        raise AssertionError(f"the way from {self.home} does not end: {answer.text}")

    def _filled_in(self, page, account):
        action = re.search(r'action="([^"]+)"', page.text)[1]
        prompt = re.search(r'name="prompt" value="(\w+)"', page.text)[1]
        data = {"prompt": prompt, "login": account, "password": "any"} if prompt == "login" else {"prompt": prompt}
        return urljoin(str(page.url), action), {"method": "POST", "data": data}

    def callback(self, account):
        """The address with the code, to which the provider sends this browser."""
        start = f"{self.home}/sign-in/oidc?to=/healthz"
        return self.go(start, until=f"{self.home}/sign-in/oidc/callback", account=account)

    def api(self, path, **request):
        return self.client.request(request.pop("method", "GET"), self.home + path, headers=OWN, **request)


@pytest.fixture
def browse():
    """Makes browsers."""
    with contextlib.ExitStack() as stack:
        yield lambda running: stack.enter_context(contextlib.closing(Browser(running)))


def test_somebody_signs_in_with_their_account_and_has_the_roles_of_their_groups(with_provider, browse):
    browser = browse(with_provider)
    assert "/sign-in/oidc" in browser.go(f"{browser.home}/sign-in").text
    answer = browser.go(f"{browser.home}/sign-in/oidc?to=/healthz", account="ana+staff+unknown")
    assert (answer.status_code, answer.text, answer.url.path) == (200, "ok\n", "/healthz")
    assert browser.api(RUNS).status_code == 200
    called = browser.api(
        "/api/v1/workspaces/default/calls", method="POST", json={"tool": "read_file", "args": {"path": "none"}}
    )
    assert called.json()["who"] == "ana@example.org"
    (session,) = [each for each in Sessions(with_provider.home).all() if each.name == "ana@example.org"]
    assert (session.how, session.groups) == ("oidc", ("staff",))
    names = [name for name in browser.client.cookies if name.startswith("haft")]
    assert names == [f"haft_session_{urlsplit(browser.home).port}"]


def test_somebody_without_a_group_that_has_a_role_is_not_let_in(with_provider, browse):
    browser = browse(with_provider)
    answer = browser.go(f"{browser.home}/sign-in/oidc", account="eve+nobodies")
    assert answer.status_code == 403 and "eve has no role here" in answer.text
    assert browser.api(RUNS).status_code == 401


def test_an_address_that_the_provider_has_not_verified_names_nobody(with_provider, browse):
    browser = browse(with_provider)
    browser.go(f"{browser.home}/sign-in/oidc?to=/healthz", account="ana+unverified")
    assert "ana@127.0.0.1" in [each.name for each in Sessions(with_provider.home).all()]


def test_a_state_is_good_once_and_only_in_the_browser_that_began(with_provider, browse):
    mine, other = browse(with_provider), browse(with_provider)
    address = mine.callback("ben+staff")
    assert "did not begin" in other.go(address).text and other.api(RUNS).status_code == 401
    (kept,) = [each for each in mine.client.cookies.jar if each.name.startswith("haft_oidc_")]
    assert mine.go(address).text == "ok\n" and mine.api(RUNS).status_code == 200
    mine.client.cookies.clear()
    assert "did not begin" in mine.go(address).text
    mine.client.cookies.jar.set_cookie(kept)
    assert "used before" in mine.go(address).text
    mine.client.cookies.clear()
    assert mine.api(RUNS).status_code == 401


def test_a_code_is_good_once_and_not_in_another_sign_in(with_provider, browse):
    mine, other = browse(with_provider), browse(with_provider)
    code = parse_qs(urlsplit(mine.callback("ben+staff")).query)["code"][0]
    theirs = other.callback("eve+staff")
    stolen = re.sub(r"code=[^&]+", f"code={code}", theirs)
    assert "did not take its own code" in other.go(stolen).text and other.api(RUNS).status_code == 401


def test_an_error_of_the_provider_is_shown_as_text(with_provider, browse):
    browser = browse(with_provider)
    address = browser.callback("ben+staff")
    shown = browser.go(re.sub(r"code=[^&]+", "error=%3Cscript%3E", address))
    assert shown.status_code == 403 and "&lt;script&gt;" in shown.text and "<script>" not in shown.text


def test_a_wrong_secret_lets_nobody_in(tmp_path, issuer, browse, serve):
    with served(serve, tmp_path, issuer, client_secret="another") as running:
        browser = browse(running)
        assert "did not take its own code" in browser.go(f"{browser.home}/sign-in/oidc", account="ben+staff").text


def test_a_group_that_loses_its_role_ends_the_sessions(tmp_path, issuer):
    home = StateHome(str(tmp_path))
    with_role = SignIn(home, oidc=OidcProvider(OidcSettings(issuer, "haft", groups=ROLES), home))
    without = SignIn(home, oidc=OidcProvider(OidcSettings(issuer, "haft", groups={}), home))
    other = SignIn(home, oidc=OidcProvider(OidcSettings("https://other.example", "haft", groups=ROLES), home))
    subject = f'["{issuer}", "ana"]'
    session, _ = with_role.sessions.begin("ana@example.org", "oidc", subject=subject, groups=("admins",))
    identity = with_role.identity_in(session)
    assert (identity.roles, identity.key) == ({"operator"}, f"oidc:{issuer}:ana")
    assert [each.identity_in(session) for each in (without, other, SignIn(home))] == [None, None, None]
