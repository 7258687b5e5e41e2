"""The hosts of `@package-indexes`: what the configuration of a person names, and where the indexes keep their files."""

import asyncio
import base64
import contextlib
import http.server
import json
import os
import shutil
import sys
import threading
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import registries

from haft.contracts import PACKAGE_INDEXES
from haft.sandbox.package_indexes import TOOLS, file_hosts, package_index_hosts
from haft.sandbox.package_indexes.public import GO_CHECKSUMS, PUBLIC
from haft.service import ToolService


@pytest.fixture(autouse=True)
def quick_answers(monkeypatch):
    """Names that do not exist are not looked up for long."""
    monkeypatch.setattr(file_hosts, "ANSWER_SECONDS", 1.0)


class Person:
    """A person with a home, a workspace, and a state home; the machine has no configuration of its own."""

    def __init__(self, base):
        self.home, self.workspace, self.state = base / "home", base / "workspace", base / "state"
        for each in (self.home, self.workspace, self.state):
            each.mkdir()
        self.env = {"HOME": str(self.home), "PATH": "/nowhere", "XDG_CONFIG_DIRS": str(base / "machine")}

    def write(self, path, text):
        target = self.home / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        return str(target)

    def grants(self, *tools, packages=()):
        return package_index_hosts(
            self.env, str(self.workspace), str(self.state), tools=tools or TOOLS, packages=packages
        )

    def hosts(self, *tools, packages=()):
        return {f"{each.host}:{each.ports[0][0]}" for each in self.grants(*tools, packages=packages)}


@pytest.fixture
def person(tmp_path):
    return Person(tmp_path)


@pytest.fixture
def silent(monkeypatch):
    """Indexes that are named here are not asked, because they do not exist."""
    monkeypatch.setattr(file_hosts, "file_hosts", lambda *_given: ())


def public(*tools):
    return {f"{host}:443" for tool in tools for host in PUBLIC[tool]}


def test_a_tool_without_configuration_uses_its_public_index(person):
    person.env["PIP_CONFIG_FILE"] = os.devnull
    assert person.hosts() == public(*TOOLS) | {f"{GO_CHECKSUMS}:443"}


def test_every_grant_names_the_group_and_may_lead_to_a_private_address_but_not_to_other_ports(person, silent):
    person.env["UV_DEFAULT_INDEX"] = "http://index.example:8080/simple"
    (grant,) = person.grants("uv")
    assert (grant.grant, grant.host, grant.ports, grant.private) == (
        PACKAGE_INDEXES, "index.example", ((8080, 8080),), True,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("url", "host", "literal"),
    [
        ("http://127.0.0.1:3141/root", "127.0.0.1", True),
        ("http://[::1]:3141/root", "::1", True),
        ("http://localhost:3141/", "localhost", False),
    ],
)
def test_an_index_of_this_machine_is_granted_as_it_is_written(person, silent, url, host, literal):
    person.env["UV_DEFAULT_INDEX"] = url
    (grant,) = person.grants("uv")
    assert (grant.host, grant.literal, grant.ports) == (host, literal, ((3141, 3141),))


VARIABLES = [
    ("pip", {"PIP_INDEX_URL": "https://a.example/simple"}, {"a.example:443"}),
    ("pip", {"PIP_INDEX_URL": "http://a.example", "PIP_EXTRA_INDEX_URL": "https://b.example https://c.example:9"},
     {"a.example:80", "b.example:443", "c.example:9"}),
    ("pip", {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "https://a.example/links /opt/wheels"}, {"a.example:443"}),
    ("uv", {"UV_DEFAULT_INDEX": "https://a.example", "UV_INDEX": "b=https://b.example c=https://c.example"},
     {"a.example:443", "b.example:443", "c.example:443"}),
    ("uv", {"UV_INDEX_URL": "https://a.example", "UV_EXTRA_INDEX_URL": "https://b.example"},
     {"a.example:443", "b.example:443"}),
    ("npm", {"NPM_CONFIG_REGISTRY": "https://a.example/npm"}, {"a.example:443"}),
    ("npm", {"npm_config_registry": "https://a.example", "npm_config_@team:registry": "https://b.example"},
     {"a.example:443", "b.example:443"}),
    ("yarn", {"YARN_NPM_REGISTRY_SERVER": "https://a.example"}, {"a.example:443"}),
    ("go", {"GOPROXY": "https://a.example,https://b.example|direct", "GOSUMDB": "off"},
     {"a.example:443", "b.example:443"}),
    ("go", {"GOPROXY": "https://a.example", "GOSUMDB": "sums.example+key https://s.example:8443"},
     {"a.example:443", "s.example:8443"}),
    ("go", {"GOPROXY": "https://a.example", "GOSUMDB": "sums.example+key"}, {"a.example:443", "sums.example:443"}),
    ("go", {"GOPROXY": "off"}, set()),
]  # fmt: skip


@pytest.mark.parametrize(("tool", "variables", "hosts"), VARIABLES)
def test_variables_name_the_indexes_of_a_tool(person, silent, tool, variables, hosts):
    person.env |= {"PIP_CONFIG_FILE": os.devnull, **variables}
    assert person.hosts(tool) == hosts


def test_an_extra_index_leaves_the_public_one(person, silent):
    person.env |= {"PIP_CONFIG_FILE": os.devnull, "PIP_EXTRA_INDEX_URL": "https://more.example"}
    assert person.hosts("pip") == {"more.example:443"} | public("pip")
    person.env["CARGO_REGISTRIES_OURS_INDEX"] = "sparse+https://crates.example/index/"
    assert person.hosts("cargo") == {"crates.example:443"} | public("cargo")


FILES = [
    ("pip", ".config/pip/pip.conf", "[global]\nindex-url = https://a.example\nextra_index_url =\n  http://b.example\n",
     {"a.example:443", "b.example:80"}),
    ("pip", ".pip/pip.conf", "[install]\nindex-url = https://a.example\n", {"a.example:443"}),
    ("uv", ".config/uv/uv.toml", 'index-url = "https://a.example"\n', {"a.example:443"}),
    ("uv", ".config/uv/uv.toml", ('[[index]]\nurl = "https://a.example"\ndefault = true\n'
     '[[index]]\nname = "b"\nurl = "https://b.example"\n'), {"a.example:443", "b.example:443"}),
    ("uv", ".config/uv/uv.toml", '[pip]\nindex-url = "https://a.example"\nextra-index-url = ["https://b.example"]\n',
     {"a.example:443", "b.example:443"}),
    ("npm", ".npmrc", ("; mine\nregistry=https://a.example/\n@team:registry = https://b.example/\n"
     "//a.example/:_authToken=s3cret\n"), {"a.example:443", "b.example:443"}),
    ("npm", ".npmrc", "registry=https://${COMPANY}/npm\n", {"company.example:443"}),
    ("yarn", ".yarnrc", 'registry "https://a.example/"\n"@team:registry" "https://b.example"\n',
     {"a.example:443", "b.example:443"}),
    ("yarn", ".yarnrc.yml", ('npmRegistryServer: "https://a.example"\nnpmScopes:\n  team:\n'
     "    npmRegistryServer: https://b.example\n"), {"a.example:443", "b.example:443"}),
    ("cargo", ".cargo/config.toml", ('[source.crates-io]\nreplace-with = "ours"\n[source.ours]\n'
     'registry = "sparse+https://a.example/"\n[registries.more]\nindex = "ssh://git@b.example/index.git"\n'),
     {"a.example:443", "b.example:22"}),
    ("go", ".config/go/env", "GOPROXY=https://a.example\nGOSUMDB=off\n", {"a.example:443"}),
]  # fmt: skip


@pytest.mark.parametrize(("tool", "path", "text", "hosts"), FILES)
def test_files_of_the_person_name_the_indexes_of_a_tool(person, silent, tool, path, text, hosts):
    person.env["COMPANY"] = "company.example"
    person.write(path, text)
    assert person.hosts(tool) - {"more.example:443"} == hosts


@pytest.mark.parametrize(("tool", "path", "text", "_hosts"), FILES)
def test_a_file_in_the_workspace_is_not_read(person, silent, tool, path, text, _hosts):
    person.env["COMPANY"] = "company.example"
    person.write(path, text)
    person.workspace = person.home
    assert not any(host.endswith((".example:443", ".example:80", ".example:22")) for host in person.hosts(tool))


def test_neither_is_one_that_a_variable_or_a_link_leads_to(person, silent):
    planted = person.workspace / "pip.conf"
    planted.write_text("[global]\nindex-url = https://planted.example\n")
    (person.workspace / "uv.toml").write_text('index-url = "https://planted.example"\n')
    person.env |= {"PIP_CONFIG_FILE": str(planted), "UV_CONFIG_FILE": str(person.workspace / "uv.toml")}
    (person.home / ".pip").mkdir()
    (person.home / ".pip" / "pip.conf").symlink_to(planted)
    assert "planted.example:443" not in person.hosts()


@pytest.mark.parametrize("text", ["registry", "[[", "\0\xff", "index-url = 3\n", "[global]\nindex-url\n[global"])
def test_a_file_that_cannot_be_understood_counts_as_empty(person, silent, text):
    person.env["PIP_CONFIG_FILE"] = person.write("pip.conf", text)
    for path in (".config/uv/uv.toml", ".npmrc", ".yarnrc", ".yarnrc.yml", ".cargo/config.toml", ".config/go/env"):
        person.write(path, text)
    assert public("uv", "npm", "yarn", "cargo", "go") <= person.hosts()


def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(person, silent):
    os.mkfifo(person.home / ".npmrc")
    assert person.hosts("npm") == public("npm")


@contextlib.contextmanager
def serving(answer):
    """An http server; `answer(path, headers)` returns a status, headers and a body."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            status, headers, body = answer(self.path, self.headers)
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *words): ...

    asked = []
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield f"127.0.0.1:{server.server_port}", asked
        server.shutdown()


def page(*links, kind="text/html"):
    body = "".join(f'<a href="{link}">x</a>' for link in links)
    return 200, {"Content-Type": kind}, body.encode()


def test_the_page_of_a_package_says_from_where_a_python_index_serves_files(person):
    links = ("https://files.example/a-1.whl#sha256=0", "../../b-1.tar.gz", "https://docs.example/read-me")
    with serving(lambda _path, _headers: page(*links)) as (index, asked):
        person.env["UV_DEFAULT_INDEX"] = f"http://{index}/simple"
        assert person.hosts("uv", packages=["Some.Package"]) == {index, "files.example:443"}
        assert asked == ["/simple/some-package/"]


def test_a_python_index_may_answer_in_json(person):
    said = {"name": "six", "files": [{"filename": "a.whl", "url": "https://files.example:8443/a.whl"}]}

    def answer(_path, headers):
        assert headers["Accept"].startswith("application/vnd.pypi.simple.v1+json")
        return 200, {"Content-Type": "application/vnd.pypi.simple.v1+json"}, json.dumps(said).encode()

    with serving(answer) as (index, _asked):
        person.env["UV_DEFAULT_INDEX"] = f"http://{index}/simple"
        assert person.hosts("uv") == {index, "files.example:8443"}


def test_an_npm_registry_says_where_its_tarballs_are_and_a_cargo_index_where_its_downloads_are(person):
    packument = {"versions": {"1.0.0": {"dist": {"tarball": "https://tarballs.example/ms.tgz"}}}}
    config = {"dl": "https://crates.example/{crate}/download", "api": "https://api.example"}

    def answer(path, _headers):
        return 200, {}, json.dumps(config if path.endswith("config.json") else packument).encode()

    with serving(answer) as (index, _asked):
        person.env |= {"npm_config_registry": f"http://{index}/npm/"}
        assert person.hosts("npm") == {index, "tarballs.example:443"}
        person.write(
            ".cargo/config.toml",
            f'[source.crates-io]\nreplace-with = "a"\n[source.a]\nregistry = "sparse+http://{index}/crates/"\n',
        )
        assert person.hosts("cargo") == {index, "crates.example:443"}


def test_an_answer_is_kept_and_a_failure_too_for_a_short_while(person, monkeypatch):
    with serving(lambda path, _headers: page("https://f.example/a.whl") if "a" in path else (404, {}, b"")) as (
        index, asked,
    ):  # fmt: skip
        person.env["UV_DEFAULT_INDEX"] = f"http://{index}"
        for _ in range(2):
            assert person.hosts("uv", packages=["a"]) == {index, "f.example:443"}
            assert person.hosts("uv", packages=["b"]) == {index}
        assert asked == ["/a/", "/b/"]
        monkeypatch.setattr(file_hosts, "FAILED_SECONDS", 0.0)
        person.hosts("uv", packages=["a", "b"])
        assert asked == ["/a/", "/b/", "/b/"]
        monkeypatch.setattr(file_hosts, "FRESH_SECONDS", 0.0)
        person.hosts("uv", packages=["a"])
        assert asked[-1] == "/a/"


def test_an_index_that_does_not_answer_is_granted_alone(person):
    person.env["UV_DEFAULT_INDEX"] = "http://127.0.0.1:9/simple"
    assert person.hosts("uv") == {"127.0.0.1:9"}


def test_credentials_go_to_the_index_alone_and_are_kept_nowhere(person):
    seen = {}

    def answer(path, headers):
        seen[path] = headers.get("Authorization")
        if path.startswith("/simple"):
            return 302, {"Location": f"http://localhost:{other.rpartition(':')[2]}/else/six/"}, b""
        return page("/files/a.whl")

    with serving(answer) as (index, _asked), serving(answer) as (other, _asked_too):
        person.env["UV_DEFAULT_INDEX"] = f"http://someone:s3cret@{index}/simple"
        found = person.grants("uv")
        assert seen == {"/simple/six/": "Basic " + base64.b64encode(b"someone:s3cret").decode(), "/else/six/": None}
        assert {each.host for each in found} == {"127.0.0.1", "localhost"}
    assert "s3cret" not in repr(found)
    assert not any(b"s3cret" in each.read_bytes() for each in person.state.rglob("*") if each.is_file())


def test_the_credentials_of_netrc_are_used_as_pip_does(person):
    person.write(".netrc", "machine 127.0.0.1 login me password s3cret\n")
    seen = []
    with serving(lambda _path, headers: seen.append(headers.get("Authorization")) or page()) as (index, _asked):
        person.env["UV_DEFAULT_INDEX"] = f"http://{index}"
        person.hosts("uv")
    assert seen == ["Basic " + base64.b64encode(b"me:s3cret").decode()]


@pytest.mark.parametrize("target", ["127.0.0.1:1", "localhost:1", "169.254.169.254", "[::1]:1", "[::ffff:127.0.0.1]"])
def test_an_index_elsewhere_cannot_open_this_machine_or_its_metadata(person, target, monkeypatch):
    with serving(lambda _path, _headers: page(f"http://{target}/a.whl", "https://f.example/a.whl")) as (index, _asked):
        person.env |= {"http_proxy": f"http://{index}", "UV_DEFAULT_INDEX": "http://index.example/simple"}
        assert person.hosts("uv") == {"index.example:80", "f.example:443"}


def test_neither_can_a_redirect_of_it(person):
    answers = (302, {"Location": "http://127.0.0.1:1/latest/meta-data"}, b"")
    with serving(lambda _path, _headers: answers) as (index, asked):
        person.env |= {"http_proxy": f"http://{index}", "UV_DEFAULT_INDEX": "http://index.example/simple"}
        assert person.hosts("uv") == {"index.example:80"}
        assert asked == ["http://index.example/simple/six/"]


def test_a_long_page_is_read_only_in_part(person, monkeypatch):
    monkeypatch.setattr(file_hosts, "MOST_BYTES", 1_000)
    links = ["https://f.example/a.whl"] * 50 + ["https://g.example/a.whl"]
    with serving(lambda _path, _headers: page(*links)) as (index, _asked):
        person.env["UV_DEFAULT_INDEX"] = f"http://{index}"
        assert person.hosts("uv") == {index, "f.example:443"}


def test_a_page_cannot_name_hosts_without_end(person):
    links = [f"https://f{number}.example/a.whl" for number in range(1000)]
    with serving(lambda _path, _headers: page(*links)) as (index, _asked):
        person.env["UV_DEFAULT_INDEX"] = f"http://{index}"
        assert len(person.hosts("uv")) == 1 + file_hosts.MOST_HOSTS


@pytest.mark.skipif(sys.platform != "linux", reason="the sandbox is made of Linux")
@pytest.mark.skipif(shutil.which("pip3") is None, reason="pip is not on this machine")
def test_a_call_with_the_group_installs_from_the_index_and_reaches_nothing_else(tmp_path, monkeypatch):
    for name in ("workspace", "person"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    ask = "import urllib.request as u; u.urlopen('http://ADDRESS/', timeout=20)"

    async def call(other):
        async def yes(_request):
            return True

        workspace = tmp_path / "workspace"
        async with ToolService.open(workspace, home=tmp_path / "state", approver=yes, installed=False) as service:
            command = f"pip3 install --target made {registries.NAME} && python3 made/{registries.NAME}.py"
            command += f'; python3 -c "{ask.replace("ADDRESS", other)}" 2>&1'
            return await service.call("shell", {"command": command}, grants={"network": [PACKAGE_INDEXES]})

    with registries.python_index() as base, serving(lambda _path, _headers: page()) as (other, asked):
        monkeypatch.setenv("PIP_INDEX_URL", f"{base}/simple")
        monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
        outcome = asyncio.run(call(other))
    assert "it works" in outcome.output and "Connection refused" in outcome.output and asked == []
    assert base.removeprefix("http://") in outcome.sandbox.network and PACKAGE_INDEXES not in outcome.sandbox.network


def test_the_page_of_an_index_opens_no_private_service(person):
    links = (
        "http://10.99.0.1:22/a-1.whl",
        "http://intranet.example:5432/a-1.whl",
        "https://files.index.example/a-1.whl",
    )
    with serving(lambda _path, _headers: page(*links)) as (index, _asked):
        person.env["UV_DEFAULT_INDEX"] = f"http://{index}/simple"
        person.env["UV_INDEX"] = "http://pypi.index.example/simple"
        found = {grant.host: grant for grant in person.grants("uv", packages=["a"])}
    assert "10.99.0.1" not in found
    assert not found["intranet.example"].private
    assert found["pypi.index.example"].private and found["files.index.example"].private
