"""Finds out from which hosts a configured package index serves its files, by asking the index for one page.

A Python index names its files on the page of a package, an npm registry in the description of a package, a cargo index
in `config.json`. haft asks with the host's own proxies and certificates, outside of any sandbox, and keeps each answer
for a day. If an index does not answer, only the index itself is granted. Credentials go only to the index that they
were configured for, and neither into the cache nor into messages.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import html
import http.client
import json
import netrc
import os
import re
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import IO, Final
from urllib.parse import quote, unquote, urljoin, urlsplit
from urllib.request import proxy_bypass_environment  # type: ignore[attr-defined]  # typeshed does not list it

from haft.sandbox.package_indexes.addresses import Address, address_of, is_local
from haft.sandbox.package_indexes.configuration import Index
from haft.values import dataclass

FRESH_SECONDS: Final = 86_400.0
"""How long the answer of an index counts."""
FAILED_SECONDS: Final = 300.0
"""How long haft does not ask again after a failure."""
ANSWER_SECONDS: Final = 5.0
ALL_SECONDS: Final = 10.0
MOST_BYTES: Final = 2_000_000
MOST_PACKAGES: Final = 20
MOST_HOSTS: Final = 20
AT_ONCE: Final = 8
CACHE: Final = "package-indexes"
_WELL_KNOWN: Final = {"python": "six", "npm": "ms"}
"""Packages with a short page that most indexes have."""
_ACCEPT: Final = {
    "python": "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1",
    "npm": "application/vnd.npm.install-v1+json, application/json;q=0.5",
    "cargo": "application/json",
}
_LINKS: Final = {
    "python": re.compile(r"""href\s*=\s*["']?([^"'\s>]+)|"url"\s*:\s*"([^"]+)\""""),
    "npm": re.compile(r'"tarball"\s*:\s*"([^"]+)"'),
    "cargo": re.compile(r'"dl"\s*:\s*"([^"]+)"'),
}
_PACKED: Final = (".whl", ".zip", ".egg", ".gz", ".tgz", ".bz2", ".xz", ".tar")


def file_hosts(
    indexes: Iterable[Index], env: Mapping[str, str], state_home: str, packages: Sequence[str] = ()
) -> tuple[Address, ...]:
    """The hosts that the pages of the indexes name. `packages` are names of Python packages."""
    pages = [page for index in indexes for page in _pages(index, packages)]
    cache = _Cache(os.path.join(state_home, CACHE))
    known = {page: cache.read(page) for page in pages}
    if missing := [page for page, hosts in known.items() if hosts is None]:
        asking = _Asking(env)
        known |= dict(_answers(asking, missing))
        for page in missing:
            cache.write(page, known[page])
    return tuple(dict.fromkeys(address for hosts in known.values() for address in hosts or ()))


@dataclass(frozen=True, slots=True)
class _Page:
    kind: str
    url: str
    """Without credentials."""
    credentials: str | None


def _pages(index: Index, packages: Sequence[str]) -> Iterator[_Page]:
    """The pages that say where the files of an index are."""
    parts = urlsplit(index.url)
    if parts.scheme not in ("http", "https") or index.kind == "files":
        return
    base = parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl().rstrip("/")
    credentials = None
    if parts.username is not None:
        credentials = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    if index.kind == "cargo":
        yield _Page(index.kind, f"{base}/config.json", credentials)
        return
    names = [_normal(name) for name in packages] if index.kind == "python" else []
    for name in list(dict.fromkeys(names))[:MOST_PACKAGES] or [_WELL_KNOWN[index.kind]]:
        slash = "/" if index.kind == "python" else ""
        yield _Page(index.kind, f"{base}/{quote(name, safe='')}{slash}", credentials)


def _normal(name: str) -> str:
    """The name of a Python package, as indexes write it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _answers(asking: _Asking, pages: Sequence[_Page]) -> Iterator[tuple[_Page, tuple[Address, ...] | None]]:
    pool = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="haft-index")
    try:
        tasks = {pool.submit(asking.ask, page): page for page in pages}
        done, late = wait(tasks, timeout=ALL_SECONDS)
        yield from ((tasks[task], task.result()) for task in done)
        yield from ((tasks[task], None) for task in late)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


class _Asking:
    """Asks indexes with the proxies and certificates that the environment names."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = env
        self._until = time.monotonic() + ALL_SECONDS
        named = {scheme: env.get(f"{scheme}_proxy") or env.get(f"{scheme.upper()}_PROXY") for scheme in _SCHEMES}
        every = env.get("all_proxy") or env.get("ALL_PROXY")
        self._proxies = {scheme: url for scheme in _SCHEMES if (url := named[scheme] or every)}
        self._context = _context(env)

    def ask(self, page: _Page) -> tuple[Address, ...] | None:
        """The hosts that a page names; None if there is no answer."""
        address = address_of(page.url)
        if address is None:
            return None
        redirects = _Redirects(is_index_local=is_local(address[0]))
        headers = {"Accept": _ACCEPT[page.kind], "User-Agent": "haft"}
        request = urllib.request.Request(page.url, headers=headers)  # noqa: S310  `_pages` checks the scheme
        if (secret := page.credentials or self._from_netrc(address[0])) is not None:
            # Not sent to another host that the index redirects to.
            encoded = base64.b64encode(secret.encode()).decode()
            request.add_unredirected_header("Authorization", f"Basic {encoded}")
        try:
            with self._opener(address[0], redirects).open(request, timeout=ANSWER_SECONDS) as answer:
                body, final = self._body(answer), str(answer.geturl())
        except urllib.error.HTTPError as refusal:
            refusal.close()
            return None
        except (OSError, ValueError, http.client.HTTPException):
            return None
        if body is None:
            return None
        links = (
            _unescaped(page.kind, next(filter(None, found.groups()))) for found in _LINKS[page.kind].finditer(body)
        )
        hosts = redirects.passed + [found for link in links if (found := _host(page.kind, final, link)) is not None]
        allowed = (found for found in hosts if redirects.is_index_local or not is_local(found[0]))
        return tuple(dict.fromkeys(allowed))[:MOST_HOSTS]

    def _opener(self, host: str, redirects: _Redirects) -> urllib.request.OpenerDirector:
        no_proxy = self._env.get("no_proxy") or self._env.get("NO_PROXY") or ""
        is_direct = proxy_bypass_environment(host, {"no": no_proxy})
        opener = urllib.request.OpenerDirector()  # `build_opener` would also open ftp: and file: URLs.
        for handler in (
            urllib.request.ProxyHandler({} if is_direct else self._proxies),
            urllib.request.HTTPHandler(),
            urllib.request.HTTPSHandler(context=self._context),
            urllib.request.HTTPDefaultErrorHandler(),
            urllib.request.HTTPErrorProcessor(),
            redirects,
        ):
            opener.add_handler(handler)
        return opener

    def _body(self, answer: IO[bytes]) -> str | None:
        """The first bytes of an answer; None if they come too slowly."""
        data = b""
        while len(data) < MOST_BYTES and (more := answer.read(min(65_536, MOST_BYTES - len(data)))):
            data += more
            if time.monotonic() > self._until:
                return None
        return data.decode("utf-8", "replace")

    def _from_netrc(self, host: str) -> str | None:
        """The credentials for a host in the person's `.netrc`, which pip and uv read too."""
        path = self._env.get("NETRC") or os.path.join(self._env.get("HOME", ""), ".netrc")
        try:
            found = netrc.netrc(path).authenticators(host) if os.path.isfile(path) else None
        except (OSError, netrc.NetrcParseError, UnicodeError):
            return None
        return None if found is None else f"{found[0]}:{found[2] or ''}"


_SCHEMES: Final = ("http", "https")


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Notes the hosts that an index redirects to. Refuses to follow a redirect to this machine, unless the index itself
    is on this machine."""

    def __init__(self, *, is_index_local: bool) -> None:
        self.is_index_local = is_index_local
        self.passed: list[Address] = []

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        address = address_of(newurl)
        if address is None or (is_local(address[0]) and not self.is_index_local):
            raise ValueError("it redirects to this machine")
        self.passed.append(address)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _context(env: Mapping[str, str]) -> ssl.SSLContext:
    context = ssl.create_default_context()
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR", "PIP_CERT", "REQUESTS_CA_BUNDLE"):
        path = env.get(name, "")
        with contextlib.suppress(OSError):  # Also `ssl.SSLError`: the file has no certificates.
            if os.path.isdir(path):
                context.load_verify_locations(capath=path)
            elif os.path.isfile(path):
                context.load_verify_locations(cafile=path)
    return context


def _unescaped(kind: str, link: str) -> str:
    return html.unescape(link.replace("\\/", "/")) if kind == "python" else link.replace("\\/", "/")


def _host(kind: str, page: str, link: str) -> Address | None:
    """The host of a file that a page names; None if the link leads to no file."""
    try:
        url = urljoin(page, link)
        path = urlsplit(url).path
    except ValueError:
        return None
    if kind == "python" and not path.endswith(_PACKED):
        return None
    return address_of(url)


class _Cache:
    """The answers of indexes, in the state home. A name of a file says neither the index nor the package."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def _path(self, page: _Page) -> str:
        return os.path.join(self._folder, hashlib.sha256(f"{page.kind} {page.url}".encode()).hexdigest()[:32])

    def read(self, page: _Page) -> tuple[Address, ...] | None:
        """The kept hosts; empty if the index did not answer a short while ago; None if it is to be asked."""
        path = self._path(page)
        try:
            with open(path, encoding="ascii") as file:
                hosts = json.load(file)
            age = abs(time.time() - os.stat(path).st_mtime)
            if hosts is None:
                return () if age < FAILED_SECONDS else None
            return tuple((str(host), int(port)) for host, port in hosts) if age < FRESH_SECONDS else None
        except (OSError, ValueError, TypeError):
            return None

    def write(self, page: _Page, hosts: tuple[Address, ...] | None) -> None:
        path = self._path(page)
        with contextlib.suppress(OSError):
            os.makedirs(self._folder, mode=0o700, exist_ok=True)
            for name in os.listdir(self._folder):
                old = os.path.join(self._folder, name)
                if time.time() - os.stat(old).st_mtime > FRESH_SECONDS:
                    os.unlink(old)
            new = f"{path}.{os.urandom(4).hex()}"
            with open(new, "x", encoding="ascii") as file:
                json.dump(hosts, file)
            os.replace(new, path)
