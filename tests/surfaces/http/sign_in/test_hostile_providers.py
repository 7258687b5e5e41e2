"""An identity provider that lies, is old, or is somebody else: its answers are refused, and start no session."""

import base64
import hashlib
import hmac
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx
import pytest
from joserfc import jwt
from joserfc.jwk import RSAKey

from haft.service import Sessions, StateHome
from haft.surfaces.http.sign_in import SignIn
from haft.surfaces.http.sign_in.oidc import OidcProvider, OidcSettings, SignInRefused, check_address

KEY = RSAKey.generate_key(2048, {"kid": "mine"})
OTHER_KEY = RSAKey.generate_key(2048, {"kid": "mine"})
SECRET = "the secret of haft, which is long enough for a key"
PAGE = {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document", "Sec-Fetch-Site": "cross-site"}


class Lying(ThreadingHTTPServer):
    """A provider whose answers a test changes."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.issuer = f"http://127.0.0.1:{self.server_port}"
        self.honest()

    def honest(self):
        self.asked = {}
        self.document = {}
        """What it says differently about itself."""
        self.claims = {}
        """What its tokens say differently; None leaves a claim out."""
        self.answer = {}
        """What else the answer with the token says differently."""
        self.sign = lambda claims: jwt.encode({"alg": "RS256", "kid": "mine"}, claims, KEY)
        self.userinfo = {"sub": "ana", "groups": ["staff"]}

    def said(self, path, form):
        if path == "/.well-known/openid-configuration":
            names = {"authorization": "authorize", "token": "token", "userinfo": "userinfo"}
            places = {f"{name}_endpoint": f"{self.issuer}/{place}" for name, place in names.items()}
            algorithms = {"id_token_signing_alg_values_supported": ["RS256", "HS256", "none"]}
            return {"issuer": self.issuer, "jwks_uri": f"{self.issuer}/jwks", **places, **algorithms, **self.document}
        if path == "/jwks":
            return {"keys": [KEY.as_dict(private=False)]}
        if path == "/userinfo":
            return self.userinfo
        assert path == "/token"
        self.asked |= form
        now = int(time.time())
        claims = {"iss": self.issuer, "sub": "ana", "aud": "haft", "iat": now, "exp": now + 300}
        claims |= {"nonce": self.asked["nonce"], "groups": ["staff"]}
        claims = {name: value for name, value in (claims | self.claims).items() if value is not None}
        return {"access_token": "opaque", "token_type": "Bearer", "id_token": self.sign(claims), **self.answer}


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self._say({})

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self._say({name: values[0] for name, values in parse_qs(body).items()})

    def _say(self, form):
        told = json.dumps(self.server.said(self.path, form)).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(told)))
        self.end_headers()
        self.wfile.write(told)

    def log_message(self, *_words):
        pass


@pytest.fixture(scope="module")
def lying_server():
    with Lying() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def provider(lying_server):
    lying_server.honest()
    return lying_server


@pytest.fixture(scope="module")
def running(tmp_path_factory, lying_server, serve):
    def sign_in(home):
        settings = OidcSettings(lying_server.issuer, "haft", SECRET, {"staff": frozenset({"caller"})})
        made = OidcProvider(settings, home)
        return SignIn(home, oidc=made)

    with serve(tmp_path_factory.mktemp("lying"), sign_in=sign_in) as found:
        yield found


@pytest.fixture(scope="module")
def browser(running):
    with httpx.Client(base_url=running.url, timeout=60, trust_env=False) as client:
        yield client


@pytest.fixture
def come_back(running, provider, browser):
    """What a browser gets that goes to the provider, and comes back."""
    running.server.authenticator.oidc._document = None  # What the provider said before does not count here.
    browser.cookies.clear()

    def go(**query):
        sent = browser.get("/sign-in/oidc?to=/healthz")
        if not sent.is_redirect:
            return sent
        asked = {name: values[0] for name, values in parse_qs(urlsplit(sent.headers["location"]).query).items()}
        provider.asked = asked
        told = {"code": "any", "state": asked["state"], "iss": provider.issuer, **query}
        told = {name: value for name, value in told.items() if value is not None}
        return browser.get(f"/sign-in/oidc/callback?{urlencode(told)}", headers=PAGE)

    return go


def unsigned(claims):
    parts = [json.dumps(each).encode() for each in ({"alg": "none"}, claims)]
    return ".".join([*(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts), ""])


def signed_with(key):
    def sign(claims):
        parts = [json.dumps(each).encode() for each in ({"alg": "HS256"}, claims)]
        text = ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts)
        return f"{text}.{base64.urlsafe_b64encode(hmac.digest(key, text.encode(), 'sha256')).rstrip(b'=').decode()}"

    return sign


def test_an_honest_provider_signs_somebody_in(running, provider, come_back):
    answer = come_back()
    assert (answer.status_code, answer.headers["location"]) == (303, "/healthz"), answer.text
    assert len(Sessions(running.home).all()) == 1
    challenge = base64.urlsafe_b64encode(hashlib.sha256(provider.asked["code_verifier"].encode()).digest())
    assert provider.asked["code_challenge"] == challenge.rstrip(b"=").decode()
    assert provider.asked["code_challenge_method"] == "S256"
    assert len({provider.asked[name] for name in ("state", "nonce", "code_verifier")}) == 3


NOW = time.time()
LIES = {
    "another issuer in the token": {"claims": {"iss": "https://other.example"}},
    "no issuer in the token": {"claims": {"iss": None}},
    "another audience": {"claims": {"aud": "another"}},
    "no audience": {"claims": {"aud": None}},
    "a token for several that was made for another": {"claims": {"aud": ["haft", "another"], "azp": "another"}},
    "a token for several that was made for nobody": {"claims": {"aud": ["haft", "another"]}},
    "another nonce": {"claims": {"nonce": "of another sign-in"}},
    "no nonce": {"claims": {"nonce": None}},
    "expired": {"claims": {"iat": int(NOW) - 1000, "exp": int(NOW) - 500}},
    "no end": {"claims": {"exp": None}},
    "an end that is no time": {"claims": {"exp": "never"}},
    "made in the future": {"claims": {"iat": int(NOW) + 5000, "exp": int(NOW) + 9000}},
    "not good yet": {"claims": {"nbf": int(NOW) + 5000}},
    "no subject": {"claims": {"sub": None}},
    "an empty subject": {"claims": {"sub": ""}},
    "a subject that is no text": {"claims": {"sub": ["ana"]}},
    "no group": {"claims": {"groups": []}},
    "a group that is no text": {"claims": {"groups": [["staff"], 1, {}]}},
    "signed with another key": {"sign": lambda claims: jwt.encode({"alg": "RS256", "kid": "mine"}, claims, OTHER_KEY)},
    "signed with a key that it does not have": {
        "sign": lambda claims: jwt.encode({"alg": "RS256", "kid": "x"}, claims, KEY)
    },
    "signed with the public key": {"sign": signed_with(KEY.as_pem(private=False))},
    "signed with the secret": {"sign": signed_with(SECRET.encode())},
    "not signed": {"sign": unsigned},
    "a damaged token": {"sign": lambda claims: "a.b.c"},
    "no token": {"answer": {"id_token": None}},
    "a token of other access": {"claims": {"at_hash": "AAAAAAAAAAAAAAAAAAAAAA"}},
    "two people in one sign-in": {"claims": {"groups": None}, "userinfo": {"sub": "eve", "groups": ["staff"]}},
    "another issuer in its document": {"document": {"issuer": "https://other.example"}},
    "an unsafe token endpoint": {"document": {"token_endpoint": "http://other.example/token"}},
    "an unsafe page": {"document": {"authorization_endpoint": "javascript:alert(1)"}},
    "another issuer in the address": {"query": {"iss": "https://other.example"}},
    "an issuer missing in the address": {
        "query": {"iss": None},
        "document": {"authorization_response_iss_parameter_supported": True},
    },
    "no code": {"query": {"code": None}},
    "another state": {"query": {"state": "of another browser"}},
    "no state": {"query": {"state": None}},
}


@pytest.mark.parametrize("lie", LIES, ids=[each.replace(" ", "-") for each in LIES])
def test_a_lie_starts_no_session(running, provider, come_back, lie):
    lies = dict(LIES[lie])
    query = lies.pop("query", {})
    for name, value in lies.items():
        setattr(provider, name, value)
    before = Sessions(running.home).all()
    answer = come_back(**query)
    assert answer.status_code == 403 and 'role="alert"' in answer.text, answer.text
    assert all("haft_session" not in each for each in answer.headers.get_list("set-cookie"))
    assert Sessions(running.home).all() == before


def test_a_page_of_another_site_reaches_nothing_but_the_callback_and_only_as_a_whole_page(running, provider):
    with httpx.Client(base_url=running.url, timeout=60, trust_env=False) as client:
        for path in ("/sign-in/oidc", "/sign-in/session", "/sign-in/sign_in.js"):
            assert client.get(path, headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
        embedded = {**PAGE, "Sec-Fetch-Dest": "iframe"}
        assert client.get("/sign-in/oidc/callback?code=a&state=b", headers=embedded).status_code == 403
        assert client.post("/sign-in/oidc/callback", headers=PAGE).status_code == 403
        elsewhere = {**PAGE, "Host": "evil.example"}
        assert client.get("/sign-in/oidc/callback?code=a&state=b", headers=elsewhere).status_code == 403


@pytest.mark.parametrize("address", ["http://issuer.example", "file:///etc/passwd", "", None, 7, "https://"])
def test_haft_goes_only_to_addresses_that_nobody_can_read_or_answer_on_the_way(address):
    with pytest.raises(SignInRefused):
        check_address("issuer", address)


def test_a_state_cookie_is_good_for_ten_minutes_and_only_whole(tmp_path):
    made = OidcProvider(OidcSettings("https://issuer.example", "haft"), StateHome(str(tmp_path)))
    sealed = made._sealed({"state": "s", "to": "/", "until": time.time() + 600})
    assert made._unsealed(sealed)["state"] == "s"
    assert made._unsealed(made._sealed({"state": "s", "to": "/", "until": time.time() - 1})) is None
    for spoiled in (sealed[:-1], "A" + sealed, sealed.replace(".", ""), "", ".", "é.é", None):
        assert made._unsealed(spoiled) is None
    other = OidcProvider(OidcSettings("https://issuer.example", "haft"), StateHome(str(tmp_path / "other")))
    assert other._unsealed(sealed) is None
