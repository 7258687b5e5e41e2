"""Git plugins: fetched in the sandbox, pinned, kept, and never followed by themselves. The repositories are local."""

import asyncio
import contextlib
import http.server
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import threading
from types import SimpleNamespace

import pytest

from haft.config.config import load_config
from haft.contracts import BadConfig, StartFailed, host_grant
from haft.registry import Catalogue
from haft.sandbox import Sandbox
from haft.sources.bash_plugin import PluginReference
from haft.storage import StateHome
from haft.toolsets import checkouts
from haft.toolsets import fetching as fetching_module
from haft.toolsets.download_network import git_host
from haft.toolsets.formats import Host
from haft.toolsets.git_source import source_of
from haft.toolsets.lock_file import read_pins
from haft.toolsets.plugins import BashPluginSource
from haft.toolsets.probe import probe_launcher

TOOL = """#!/usr/bin/env bash
case "$1" in
schema) echo '{"id": "greet", "version": "1", "args_mode": "flags", "tools": [{"type": "function", "function":
  {"name": "greet", "description": "SAYS", "parameters": {"type": "object", "properties": {}}}}]}' ;;
run) echo "SAYS" ;;
esac
"""


def git(where, *words):
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"]
    done = subprocess.run(["git", *identity, *words], cwd=where, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def commit(repository, says):
    (repository / "greet.bash").write_text(TOOL.replace("SAYS", says))
    git(repository, "add", "-A")
    git(repository, "commit", "--quiet", "--message", says)
    return git(repository, "rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path):
    """One with a commit, which the tag `v1` names."""
    made = tmp_path / "far" / "greeter"
    made.mkdir(parents=True)
    git(made, "init", "--quiet")
    (made / "agent_plugin.json").write_text('{"bash_tools": [{"file": "greet.bash"}]}')
    commit(made, "one")
    git(made, "tag", "--annotate", "--message", "first", "v1")
    return made


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A workspace, with a configuration of its user, a state home and a cache."""
    workspace, own = tmp_path / "workspace", tmp_path / "own"
    for folder in (workspace, own / "config/haft"):
        folder.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(own))
    monkeypatch.setenv("HAFT_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(own / "config"))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    made = SimpleNamespace(
        workspace=workspace,
        file=own / "config/haft/haft.toml",
        lock=own / "config/haft/haft.lock",
        cache=own / ".local/share/haft/plugins",
        home=StateHome(str(tmp_path / "state")),
    )
    made.home.prepare()
    return made


def named(place, *entries, **more):
    """The plugins, where the user's file names these."""
    tables = f"plugins = [{', '.join(json.dumps(entry) for entry in entries)}]\n"
    tables += "".join(f"{name} = {json.dumps(value)}\n" for name, value in more.items())
    place.file.write_text(f"{tables}[plugin_policy]\nallow_bash_tools = true\n")
    return loaded(place)


def loaded(place):
    config = load_config(str(place.workspace), os.environ, trust_home=place.home.path)
    host = Host(str(place.workspace), place.home, os.environ, None, None)
    host.configure(config)
    return BashPluginSource(host)


def fetched(plugins):
    """Fetch what is not there; how the first plugin stands then."""
    asyncio.run(plugins.plugins.fetching.fetch(plugins.plugins.unfetched(), lambda _done, _all: None))
    return plugins.plugins.fetching.checkout_state(plugins.plugins.references[0])


def updated(plugins):
    return asyncio.run(plugins.plugins.fetching.update(plugins.plugins.references, lambda _done, _all: None))[0]


def listed(plugins):
    catalogue = Catalogue()
    catalogue.replace_source("bash-plugin", plugins.find())
    return catalogue.listings(all=True)


def test_a_tag_is_fetched_pinned_and_found_like_a_folder(place, repository):
    plugins = named(place, f"bash+git:file://{repository}#v1")
    (before,) = listed(plugins)
    assert before.state == "broken" and "not fetched yet" in before.reason
    told = []

    async def renew():
        catalogue = Catalogue()
        with probe_launcher(str(place.workspace), place.home) as launcher:
            catalogue.replace_source("bash-plugin", await plugins.refresh(launcher, lambda *count: told.append(count)))
        return catalogue.listings()

    (tool,) = asyncio.run(renew())
    assert (tool.spec.name, tool.spec.description, tool.spec.provenance) == ("greet", "one", "user")
    head = git(repository, "rev-parse", "HEAD")
    pinned = {"url": f"file://{repository}", "ref": "v1", "commit": head}
    assert json.loads(place.lock.read_text()) == {"version": 1, "plugins": [pinned]}
    checkout = os.path.dirname(tool.spec.origin)
    assert checkout.startswith(f"{place.cache}/") and os.path.basename(checkout) == head
    assert sorted(os.listdir(checkout)) == ["agent_plugin.json", "greet.bash"]
    assert (0, 1) in told and (1, 1) in told
    assert [name for name in os.listdir(place.cache) if name.startswith(".making")] == []
    assert len(os.listdir(f"{place.home.path}/caches")) <= 1  # the workspace's own: fetching leaves none


@pytest.mark.parametrize("form", ["branch", "commit", "short", "default"])
def test_branches_and_commits_are_resolved(place, repository, form):
    first = git(repository, "rev-parse", "HEAD")
    git(repository, "branch", "old/one")
    last = commit(repository, "two")
    ref, expected = {
        "branch": ("#old/one", first),
        "commit": (f"#{first}", first),
        "short": (f"#{first[:9]}", first),
        "default": ("", last),
    }[form]
    assert fetched(named(place, f"bash+git:{repository}{ref}")).commit == expected


def test_a_table_names_a_subdirectory_with_a_plugin_of_its_own(place, repository):
    inner = repository / "plugins" / "inner"
    inner.mkdir(parents=True)
    (inner / "agent_plugin.json").write_text('{"bash_tools": [{"file": "inner.bash"}]}')
    (inner / "inner.bash").write_text(TOOL)
    commit(repository, "two")
    place.file.write_text(
        f'plugins = [{{bash_tool = {{git = "{repository}", subdirectory = "plugins/inner"}}}}]\n'
        "[plugin_policy]\nallow_bash_tools = true\n"
    )
    plugins = loaded(place)
    checkout_state = fetched(plugins)
    assert [file.path for file in plugins.plugins.files()] == [f"{checkout_state.place}/plugins/inner/inner.bash"]


def test_a_moved_tag_is_seen_and_followed_only_by_an_update(place, repository):
    plugins = named(place, f"bash+git:{repository}#v1")
    first = fetched(plugins).commit
    second = commit(repository, "two")
    git(repository, "tag", "--force", "--annotate", "--message", "again", "v1")
    assert asyncio.run(plugins.plugins.fetching.remote(plugins.plugins.references[0])) == second
    assert fetched(plugins).commit == first
    done = updated(plugins)
    assert (done.before, done.commit, done.problem) == (first, second, None)
    assert plugins.plugins.fetching.checkout_state(plugins.plugins.references[0]).commit == second


def test_nothing_is_needed_once_it_is_there(place, repository):
    plugins = named(place, f"bash+git:{repository}#v1")
    first = fetched(plugins)
    shutil.rmtree(repository)
    again = loaded(place)
    assert not again.plugins.unfetched() and again.plugins.fetching.checkout_state(again.plugins.references[0]) == first
    done = updated(again)
    assert "no repository" in done.problem and done.commit == first.commit
    assert again.plugins.fetching.checkout_state(again.plugins.references[0]) == first


def test_a_pin_that_cannot_be_fetched_names_the_cure_and_is_not_replaced(place, repository):
    url = str(repository)
    lost = "1" * 40
    place.lock.write_text(json.dumps({"version": 1, "plugins": [{"url": url, "ref": "v1", "commit": lost}]}))
    plugins = named(place, f"bash+git:{url}#v1")
    checkout_state = fetched(plugins)
    assert checkout_state.place is None and checkout_state.commit == lost
    for words in (f"{url}#v1", lost[:12], str(place.lock), "`haft plugins update greeter`"):
        assert words in checkout_state.problem
    done = updated(plugins)
    assert done.before == lost and done.commit == git(repository, "rev-parse", "HEAD")


def test_what_failed_is_tried_again_after_a_while_only(place, repository, monkeypatch):
    plugins = named(place, f"bash+git:{repository}#maim")
    checkout_state = fetched(plugins)
    assert "no tag, branch or commit `maim`; did you mean `main`?" in checkout_state.problem
    (tool,) = listed(plugins)
    assert tool.state == "broken" and "no tag, branch or commit `maim`" in tool.reason
    assert not plugins.plugins.unfetched() and not place.lock.exists()
    monkeypatch.setattr(fetching_module, "AGAIN_SECONDS", 0.0)
    git(repository, "tag", "maim")
    assert fetched(plugins).place is not None


def test_one_that_fails_leaves_the_others_alone(place, repository):
    plugins = named(place, f"bash+git:{repository.parent}/nothing", f"bash+git:{repository}#v1")
    assert "no repository" in fetched(plugins).problem
    assert plugins.plugins.fetching.checkout_state(plugins.plugins.references[1]).place is not None


def test_two_fetch_at_once_and_agree(place, repository):
    one, two = named(place, f"bash+git:{repository}#v1").plugins, loaded(place).plugins

    async def both():
        await asyncio.gather(*(each.fetching.fetch(each.references, lambda _done, _all: None) for each in (one, two)))

    asyncio.run(both())
    assert (
        one.fetching.checkout_state(one.references[0]).place
        == two.fetching.checkout_state(two.references[0]).place
        is not None
    )
    assert len(read_pins(str(place.lock))) == 1


def test_what_someone_began_and_left_is_ignored_and_taken_away_in_time(place, repository):
    plugins = named(place, f"bash+git:{repository}#v1")
    old, fresh = place.cache / ".making-old", place.cache / ".making-fresh"
    for left in (old, fresh):
        (left / "tree").mkdir(parents=True)
    os.utime(old, (1, 1))
    assert fetched(plugins).place is not None
    assert not old.exists() and fresh.exists()


@pytest.mark.parametrize(
    ("url", "ref"),
    [
        ("--upload-pack=touch x", None),
        ("ext::sh -c touch% x", None),
        ("fd::17", None),
        ("http://example.org/x.git", None),
        ("https://", None),
        ("ssh://-oProxyCommand=x/y", None),
        ("file://elsewhere/x", None),
        ("https://example.org/a b", None),
        ("https://example.org/x.git", "--upload-pack=x"),
        ("https://example.org/x.git", "a..b"),
        ("https://example.org/x.git", "v1^{}"),
        ("https://example.org/x.git", "a:b"),
        ("https://example.org/x.git", "a\nb"),
        ("https://example.org/x.git", "main@{1}"),
    ],
)
def test_hostile_words_are_refused_before_git_sees_them(url, ref):
    with pytest.raises(BadConfig, match="is not fetched"):
        source_of(PluginReference("x", "/c/haft.toml", "bash", git=url, ref=ref), "/c/haft.lock", "/c")


def test_secrets_of_an_address_are_not_written_down():
    reference = PluginReference("x", "/c/haft.toml", "bash", git="https://me:token@example.org/x.git", ref="v1")
    source = source_of(reference, "/c/haft.lock", "/c")
    assert source.words == "https://example.org/x.git#v1" and "token" in source.address
    over_ssh = PluginReference("x", "/c/haft.toml", "bash", git="git@example.org:a/x.git")
    assert source_of(over_ssh, "/c/haft.lock", "/c").scheme == "ssh"


@pytest.mark.parametrize("target", ["/etc/passwd", "../../../../etc/passwd", "sub/../.."])
def test_a_link_that_leads_out_is_refused(place, repository, target):
    (repository / "sub").mkdir()
    (repository / "sub" / "x").write_text("")
    (repository / "leak").symlink_to(target)
    (repository / "fine").symlink_to("sub/x")
    commit(repository, "two")
    assert f"its link leak leads out of it, to {target}" in fetched(named(place, f"bash+git:{repository}")).problem
    assert not any(name for name in os.listdir(place.cache) if not name.startswith("."))


def test_hooks_filters_and_submodules_do_nothing(place, repository, tmp_path):
    mark = tmp_path / "mark"
    for hook in ("post-checkout", "reference-transaction", "post-index-change"):
        path = repository / ".git" / "hooks" / hook
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\ntouch {mark}\n")
        path.chmod(0o755)
    git(repository, "config", "uploadpack.packObjectsHook", f"touch {mark};")
    (repository / ".gitattributes").write_text("*.bash filter=evil\n")
    (repository / ".gitmodules").write_text(f'[submodule "s"]\n\tpath = s\n\turl = {repository}\n')
    git(repository, "update-index", "--add", "--cacheinfo", f"160000,{git(repository, 'rev-parse', 'HEAD')},s")
    commit(repository, "two")
    mark.unlink(missing_ok=True)
    checkout_state = fetched(named(place, f"bash+git:{repository}"))
    assert not mark.exists() and os.path.exists(f"{checkout_state.place}/greet.bash")
    assert not os.path.exists(f"{checkout_state.place}/s/greet.bash")


def test_what_unfolds_to_very_many_files_is_refused_before_any_is_written(place, repository):
    tree = git(repository, "write-tree")
    for _ in range(5):
        entries = "".join(f"040000 tree {tree}\t{number}\n" for number in range(10))
        made = subprocess.run(
            ["git", "mktree"], cwd=repository, input=entries.encode(), capture_output=True, check=True
        )
        tree = made.stdout.decode().strip()
    bomb = git(repository, "commit-tree", "-m", "many", tree)
    git(repository, "branch", "bomb", bomb)
    assert "more files than a plugin may have" in fetched(named(place, f"bash+git:{repository}#bomb")).problem


def test_a_cache_that_calls_could_write_is_refused(place, repository):
    for inside in (place.workspace / "kept", place.home.path, "~/.cache/kept"):
        plugins = named(place, f"bash+git:{repository}#v1", plugin_cache_dir=str(inside))
        assert not plugins.plugins.unfetched()
        assert "set `plugin_cache_dir`" in listed(plugins)[0].reason


def test_the_cache_is_where_caches_are_unless_calls_have_their_own_there(place, repository, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    assert fetched(named(place, f"bash+git:{repository}#v1")).place.startswith(f"{tmp_path}/caches/haft/plugins/")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "own/.cache"))
    assert fetched(loaded(place)).place.startswith(f"{place.cache}/")


def test_a_lock_file_that_cannot_be_understood_is_said_and_left(place, repository):
    place.lock.write_text('{"version": 1, "plugins": [{"url": "x", "ref": null, "commit": "HEAD"}]}')
    plugins = named(place, f"bash+git:{repository}#v1")
    assert not plugins.plugins.unfetched()
    assert "haft.lock cannot be understood" in listed(plugins)[0].reason
    assert "HEAD" in place.lock.read_text()


def test_what_is_off_is_not_fetched(place, repository):
    plugins = named(place, f"bash+git:{repository}#v1", disabled_plugins=["greeter"])
    (tool,) = listed(plugins)
    assert tool.state == "disabled" and "disabled_plugins" in tool.reason and not plugins.plugins.unfetched()
    place.file.write_text(f'plugins = ["bash+git:{repository}#v1"]\n')
    plugins = loaded(place)
    (tool,) = listed(plugins)
    assert tool.state == "disabled" and "allow_bash_tools" in tool.reason and not plugins.plugins.unfetched()


@pytest.mark.parametrize("form", ['"bash+git:{}#v1"', '{{bash_tool = {{git = "{}", ref = "v1"}}}}'])
def test_a_workspace_that_nobody_trusts_fetches_nothing(place, repository, form):
    (place.workspace / "haft.toml").write_text(
        f"plugins = [{form.format(repository)}]\n[plugin_policy]\nallow_bash_tools = true\n"
    )
    plugins = loaded(place)
    assert not plugins.plugins.unfetched()
    assert all(one.state == "broken" and "haft trust" in one.reason for one in listed(plugins))
    assert not place.cache.exists()


def test_a_workspace_that_is_named_by_a_link_is_trusted_no_more(place, repository, tmp_path):
    (place.workspace / "haft.toml").write_text(
        f'plugins = [{{bash_tool = {{git = "{repository}"}}}}, "bash:./x.bash"]\n'
    )
    (place.workspace / "x.bash").write_text(TOOL)
    place.file.write_text("[plugin_policy]\nallow_bash_tools = true\n")
    place.workspace = tmp_path / "link"
    place.workspace.symlink_to("workspace")
    plugins = loaded(place)
    assert not plugins.plugins.unfetched()
    assert {one.spec.provenance for one in listed(plugins) if one.spec.origin.endswith("x.bash")} == {"workspace"}


def test_a_trusted_workspace_pins_beside_its_own_file(place, repository, monkeypatch):
    (place.workspace / "haft.toml").write_text(f'plugins = ["bash+git:{repository}#v1"]\n')
    place.file.write_text("[plugin_policy]\nallow_bash_tools = true\n")
    monkeypatch.setattr("haft.config.trust_store.is_trusted", lambda *_words: True)
    assert fetched(loaded(place)).place is not None
    assert (place.workspace / "haft.lock").exists() and not place.lock.exists()


def test_the_network_is_granted_only_where_the_repository_is_elsewhere(place, repository, monkeypatch):
    seen = []

    class Refusing:
        async def run(self, command, _sink):
            seen.append(command)
            raise StartFailed("`git` was not found")

    monkeypatch.setattr(Sandbox, "launcher", lambda _self, *words, **_more: seen.append(words) or Refusing())
    problem = fetched(named(place, "bash+git:https://example.org/x.git#v1")).problem
    assert "install git" in problem and seen[0][0] == "workspace"
    (grant,) = map(host_grant, seen[0][1].network)
    assert grant.covers("example.org", 443) and not grant.covers("example.org", 80)
    seen.clear()
    fetched(named(place, f"bash+git:{repository}#v1"))
    assert not seen[0][1].network and seen[1].readable == (str(repository),)
    assert seen[1].env["GIT_TERMINAL_PROMPT"] == "0"


@pytest.mark.parametrize(
    ("address", "host", "port"),
    [
        ("https://example.org/x.git", "example.org", 443),
        ("https://me:s3cret@example.org:8443/x.git", "example.org", 8443),
        ("ssh://git@example.org/x.git", "example.org", 22),
        ("ssh://git@example.org:2222/x.git", "example.org", 2222),
        ("git@example.org:x.git", "example.org", 22),
        ("git://example.org/x.git", "example.org", 9418),
        ("https://10.0.0.7/x.git", "10.0.0.7", 443),
        ("https://[fd00::7]:8443/x.git", "fd00::7", 8443),
        ("git://localhost:9000/x.git", "localhost", 9000),
    ],
)
def test_the_host_of_a_git_address_is_granted_with_its_port(address, host, port):
    word = git_host(address)
    grant = host_grant(word)
    assert (grant.host, grant.ports) == (host, ((port, port),)) and "s3cret" not in word
    assert (grant.within != ()) == (host == "example.org")  # The server of a company may have a private address.


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")
def test_a_git_server_that_sends_git_to_another_host_is_said(place, monkeypatch, tmp_path):
    monkeypatch.setattr(checkouts, "_CONFIG", checkouts._CONFIG + "[http]\n\tsslVerify = false\n")
    with moved_to("https://moved.example/x.git", tmp_path) as port:
        problem = fetched(named(place, f"bash+git:https://127.0.0.1:{port}/x.git#v1")).problem
    assert "the sandbox refused a connection to `moved.example:443`" in problem
    assert f"only the host in https://127.0.0.1:{port}/x.git is granted" in problem and "new address" in problem


@contextlib.contextmanager
def moved_to(address, folder):
    """An https server that redirects everything."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(302)
            self.send_header("Location", address + self.path.removeprefix("/x.git"))
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *words): ...

    made = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    made += ["-keyout", f"{folder}/key.pem", "-out", f"{folder}/cert.pem", "-subj", "/CN=127.0.0.1"]
    subprocess.run(made, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(f"{folder}/cert.pem", f"{folder}/key.pem")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


@pytest.mark.skipif(not os.path.exists(f"{git('/', '--exec-path')}/git-daemon"), reason="git daemon is not there")
def test_a_repository_is_fetched_over_a_network(place, repository):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    words = [
        "daemon",
        "--verbose",
        "--export-all",
        f"--port={port}",
        "--listen=127.0.0.1",
        f"--base-path={repository.parent}",
    ]
    with subprocess.Popen(["git", *words], stderr=subprocess.PIPE, start_new_session=True) as daemon:
        try:
            assert b"Ready" in daemon.stderr.readline()
            checkout_state = fetched(named(place, f"bash+git:git://127.0.0.1:{port}/greeter#v1"))
        finally:
            os.killpg(daemon.pid, signal.SIGKILL)
    assert checkout_state.place is not None and checkout_state.commit == git(repository, "rev-parse", "HEAD")


def test_it_works_without_a_sandbox(place, repository):
    named(place, f"bash+git:{repository}#v1")
    place.file.write_text(place.file.read_text() + '[sandbox]\nmode = "off"\n')
    assert fetched(loaded(place)).place is not None
