"""`haft serve http`: what it refuses before it begins, and what it says."""

import datetime
import ipaddress
import ssl

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from haft.contracts import BadUsage
from haft.service import load_config
from haft.surfaces.http.options import HttpOptions
from haft.surfaces.http.proxy import BehindProxy, check_proxies
from haft.surfaces.http.serve import named_workspaces, serve
from haft.surfaces.http.tls import BadCertificate, tls_context

PEM, KEY_FORM = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8


def no_mcp(_name, _path):
    raise AssertionError("the server must not begin")


def write_key(path, password=None):
    key = ec.generate_private_key(ec.SECP256R1())
    how = serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption()
    path.write_bytes(key.private_bytes(PEM, KEY_FORM, how))
    return key


def write_certificate(path, key):
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    alternative = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    made = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    made = made.serial_number(1).not_valid_before(now).not_valid_after(now + datetime.timedelta(days=1))
    path.write_bytes(made.add_extension(alternative, critical=False).sign(key, hashes.SHA256()).public_bytes(PEM))


def refused(tmp_path, **options):
    with pytest.raises(BadUsage) as raised:
        serve(HttpOptions(str(tmp_path), **options), no_mcp)
    return f"{raised.value.message} {raised.value.hint}"


@pytest.mark.parametrize("address", ["0.0.0.0:0", "[::]:0", ":8000", "192.0.2.1:80", "haft.example:80"])
def test_beyond_loopback_it_begins_only_with_encryption_and_a_name(tmp_path, address):
    assert "--tls-cert" in refused(tmp_path, listen=address)
    assert "--allow-host" in refused(tmp_path, listen=address, behind_proxy=("192.0.2.2",))


@pytest.mark.parametrize("address", ["8000", "127.0.0.1", "127.0.0.1:99999", "http://127.0.0.1:80", "127.0.0.1:x"])
def test_what_is_no_address_is_refused(tmp_path, address):
    assert "is not an address to listen on" in refused(tmp_path, listen=address)


@pytest.mark.parametrize("proxy", ["haft.example", "", "10.0.0.0/33", "*"])
def test_what_is_no_address_of_a_proxy_is_refused(tmp_path, proxy):
    assert "is not an address of a proxy" in refused(tmp_path, behind_proxy=(proxy,))


def test_files_for_tls_that_do_not_fit_are_named(tmp_path):
    key, certificate, other, secret = (tmp_path / name for name in ("key", "certificate", "other", "secret"))
    made = write_key(key)
    write_certificate(certificate, made)
    write_key(other)
    write_key(secret, b"password")
    assert isinstance(tls_context(str(certificate), str(key)), ssl.SSLContext)
    assert tls_context(None, None) is None
    for arguments, problem in (
        ((str(certificate), None), "`--tls-key` is missing"),
        ((None, str(key)), "`--tls-cert` is missing"),
        ((str(certificate), str(tmp_path / "none")), "none cannot be read"),
        ((str(tmp_path), str(key)), "cannot be read"),
        ((str(certificate), str(other)), "does not belong to the certificate"),
        ((str(certificate), str(secret)), "encrypted with a password"),
        ((str(key), str(key)), "are no certificate and key"),
    ):
        with pytest.raises((BadUsage, BadCertificate), match=problem.replace("`", ".")):
            tls_context(*arguments)


def test_the_workspaces_are_those_of_the_configuration_unless_one_is_named(tmp_path, monkeypatch):
    file = tmp_path / "config" / "haft" / "haft.toml"
    file.parent.mkdir(parents=True)
    file.write_text(
        '[[workspaces]]\nname = "shop"\npath = "/srv/shop"\nusers = ["ann"]\nlimits = {max_concurrent = 2}\n'
        '[[workspaces]]\nname = "site"\npath = "/srv/site"\n'
    )
    environment = {"XDG_CONFIG_HOME": str(tmp_path / "config")}
    config = load_config(str(tmp_path), environment, trust_home=str(tmp_path / "home"))
    shop, site = named_workspaces(HttpOptions(str(tmp_path)), config)
    assert (shop.name, shop.path, shop.users, dict(shop.limits)) == (
        "shop",
        "/srv/shop",
        ("ann",),
        {"max_concurrent": 2},
    )
    assert (site.name, site.users) == ("site", ())
    [only] = named_workspaces(HttpOptions(str(tmp_path), is_only=True), config)
    assert (only.name, only.path) == ("default", str(tmp_path))


@pytest.mark.anyio
async def test_behind_a_proxy_only_the_proxy_is_answered_and_it_says_who_the_client_is():
    seen, answers = [], []

    async def app(scope, _receive, _send):
        seen.append((scope["scheme"], scope["client"][0]))

    async def send(message):
        answers.append(message)

    guarded = BehindProxy(app, check_proxies(["10.0.0.0/24", "::1"]))
    headers = [(b"x-forwarded-for", b"192.0.2.7"), (b"x-forwarded-proto", b"https")]

    async def ask(address):
        scope = {"type": "http", "method": "GET", "scheme": "http", "client": (address, 1), "headers": headers}
        await guarded({**scope, "server": ("10.0.0.1", 80), "path": "/"}, None, send)

    for address in ("10.0.0.9", "::1", "::ffff:10.0.0.1"):
        await ask(address)
    assert seen[:2] == [("https", "192.0.2.7")] * 2 and len(seen) == 3
    await ask("192.0.2.1")
    assert len(seen) == 3 and answers[0]["status"] == 403
