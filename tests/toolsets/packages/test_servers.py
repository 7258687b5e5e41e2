"""Packaged servers: real npm and real uv, in a real sandbox, with a registry on this machine."""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

from haft.contracts import ToolFailed
from haft.sources.mcp import Provider

NPX = ("npx", "-y", "said")
UVX = ("uvx", "said-server")


def provider(command, *args):
    return Provider("said", "stdio", command=command, args=args)


def test_a_package_of_npm_is_installed_once_and_then_runs_without_any_registry(place, registry):
    registry.publish(dependencies={"part": "^1"})
    registry.publish("part", bin={})
    assert place.servers.names_package(provider(*NPX)) and place.servers.installed(provider(*NPX)) is None
    server = place.install(*NPX, "--word", "a b")
    assert server.version == "said 1.0.0"
    registry.close()
    again = place.servers.installed(provider(*NPX, "--word", "a b"))
    assert again == server == place.install(*NPX, "--word", "a b")
    assert place.run(server) == {"version": "1.0.0", "args": ["--word", "a b"]}
    assert any("installed said 1.0.0" in line for line in place.told)


def test_a_package_of_pypi_is_installed_once_and_then_runs_without_any_index(place, registry):
    registry.publish_wheel()
    server = place.install(*UVX, "--word", "a b")
    assert server.version == "said-server 1.0"
    registry.close()
    assert place.servers.installed(provider(*UVX, "--word", "a b")) == server
    assert place.run(server) == {"version": "1.0", "args": ["--word", "a b"]}
    assert {path.name for path in place.workspace.iterdir()} == set()


def test_install_scripts_are_not_run_and_the_progress_names_their_packages(place, registry):
    touch = f"touch {place.top}/ran; touch ran"
    registry.publish(scripts={"preinstall": touch, "install": touch, "postinstall": touch})
    server = place.install(*NPX)
    assert not list(place.top.rglob("ran"))
    assert "installing the server `said`: install scripts were not run: said" in place.told
    assert place.run(server)["version"] == "1.0.0"


def test_a_new_version_is_installed_only_by_an_upgrade_and_has_another_digest(place, registry):
    registry.publish_wheel()
    first = place.install(*UVX)
    registry.publish_wheel(version="1.1")
    assert place.install(*UVX) == first
    second = place.install(*UVX, upgrade=True)
    assert (second.version, place.run(second)["version"]) == ("said-server 1.1", "1.1")
    assert second.digest != first.digest
    assert place.run(first)["version"] == "1.0"  # A server that runs still finds its files.
    assert place.install(*UVX, upgrade=True) == second
    assert "installing the server `said`: said-server 1.1 is the newest version already" in place.told
    pinned = place.install("uvx", "said-server@1.0")
    assert (pinned.version, pinned.digest) == ("said-server 1.0", first.digest)


def test_an_upgrade_that_fails_leaves_the_version_before(place, registry):
    registry.publish_wheel()
    first = place.install(*UVX)
    registry.wheels.clear()
    shutil.rmtree(place.home)
    with pytest.raises(ToolFailed, match="the server `said` could not be installed"):
        place.install(*UVX, upgrade=True)
    assert place.servers.installed(provider(*UVX)) == first
    assert place.run(first)["version"] == "1.0"


def test_tasks_that_need_the_same_server_install_it_once(place, registry):
    registry.publish_wheel()

    async def at_once():
        return await asyncio.gather(*(place.begin_install(*UVX) for _ in range(3)))

    found = asyncio.run(at_once())
    assert found[0] == found[1] == found[2]
    assert [line for line in place.told if "installed said-server" in line] == [
        "installing the server `said`: installed said-server 1.0"
    ]
    assert any("waiting for another process" in line for line in place.told)


CHILD = """
import asyncio, json, sys
from haft.config.config import load_config
from haft.sources.mcp import Provider
from haft.toolsets.providers.packages import PackagedServers

env, state, workspace = json.loads(sys.argv[1])
servers = PackagedServers(load_config(workspace, env), state, env, workspace)
asyncio.run(servers.install(Provider("said", "stdio", command="uvx", args=("said-server",)), print))
"""


def test_a_process_that_is_killed_while_it_installs_leaves_nothing_that_disturbs(place, registry):
    registry.publish_wheel()
    registry.gate.clear()
    about = json.dumps([place.env, str(place.state), str(place.workspace)])
    child = subprocess.Popen([sys.executable, "-c", CHILD, about], stdout=subprocess.DEVNULL)
    try:
        assert registry.reached.wait(60)
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()
    assert place.servers.installed(provider(*UVX)) is None
    registry.gate.set()
    server = place.install(*UVX)
    assert place.run(server)["version"] == "1.0"
    (only,) = place.kept().values()
    assert len(only) == 1
    assert not [path for path in (place.home / ".local/share/haft/uv").iterdir() if path.name.startswith("making-")]


def test_a_cancelled_installation_leaves_nothing(place, registry):
    registry.publish_wheel()
    registry.gate.clear()

    async def cancelled():
        task = asyncio.ensure_future(place.begin_install(*UVX))
        assert await asyncio.to_thread(registry.reached.wait, 60)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert place.servers.installed(provider(*UVX)) is None and place.kept() == {}


def test_old_versions_and_servers_that_nobody_names_any_more_are_removed(place, registry):
    registry.publish_wheel()
    place.install(*UVX)
    registry.publish_wheel(version="2.0")
    place.install(*UVX, upgrade=True)
    (kept,) = place.kept().values()
    assert len(kept) == 2
    day = time.time() - 100_000
    for path in (place.state / "servers").glob("*/*"):
        if path.is_dir():
            os.utime(path, (day, day))
    place.install("uvx", "said-server==2.0")
    assert sorted(len(one) for one in place.kept().values()) == [1, 1]
    assert place.servers.installed(provider(*UVX)).version == "said-server 2.0"
    long_ago = time.time() - 100 * 86_400
    for path in (place.state / "servers").glob("*/current.json"):
        os.utime(path, (long_ago, long_ago))
    assert place.servers.installed(provider(*UVX)) is not None  # It is still configured.
    place.install("uvx", "said-server==1.0")
    assert place.servers.installed(provider("uvx", "said-server==2.0")) is None and len(place.kept()) == 2


def test_the_registry_of_the_persons_own_configuration_gets_its_token(place, registry):
    registry.publish("@own/said")
    del place.env["npm_config_registry"]
    host = registry.url.removeprefix("http:")
    place.env["OWN_TOKEN"] = "t0k3n"
    (place.home / ".npmrc").write_text(f"@own:registry={registry.url}/\n{host}/:_authToken=${{OWN_TOKEN}}\n")
    server = place.install("npx", "-y", "@own/said")
    assert server.version == "@own/said 1.0.0" and "Bearer t0k3n" in registry.tokens
    assert "OWN_TOKEN" not in server.env and not any("t0k3n" in line for line in place.told)


def test_a_file_on_a_host_that_is_no_package_index_is_refused_and_named(place, registry):
    registry.publish(at="http://192.0.2.1")
    with pytest.raises(ToolFailed) as error:
        place.install(*NPX)
    assert "the sandbox refused a connection to `192.0.2.1:80`" in error.value.message
    assert '"192.0.2.1:80"' in error.value.hint


def test_a_package_without_a_wheel_is_not_built(place, registry):
    registry.wheels["said_server-1.0.tar.gz"] = b"no archive"
    with pytest.raises(ToolFailed) as error:
        place.install(*UVX)
    assert "haft builds no packages of servers" in error.value.message


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("npx", "-y", "no-such-package"), "the registry has no such package"),
        (("npx", "-y", "said@9"), "the registry has no such version"),
        (("uvx", "no-such-package"), "the index has no such package"),
    ],
)
def test_a_package_that_does_not_exist_is_named_with_what_to_check(place, registry, words, hint):
    registry.publish()
    with pytest.raises(ToolFailed) as error:
        place.install(*words)
    first, *others = error.value.message.splitlines()
    assert first == f"the server `said` could not be installed: {hint}" and len(others) <= 2
    assert "in the command" in error.value.hint
    assert "npm http" not in error.value.message


def test_the_only_program_of_a_python_package_may_have_another_name(place, registry):
    registry.publish_wheel(scripts="other = said_server:main")
    assert place.run(place.install(*UVX))["version"] == "1.0"
    with pytest.raises(ToolFailed, match="has no program `third`; its programs: `other`"):
        place.install("uvx", "--from", "said-server", "third")


def test_without_node_the_message_says_what_to_install(place, registry):
    bin_ = place.workspace / "bin"
    bin_.mkdir()
    for name in ("node", "npm"):
        (bin_ / name).write_text("#!/bin/sh\ntouch ran\n")
        (bin_ / name).chmod(0o755)
    place.env["PATH"] = f"{bin_}:/nowhere"  # A call could have put these programs there.
    with pytest.raises(ToolFailed) as error:
        place.install(*NPX)
    assert "needs Node.js with npm, and Node.js was not found" in error.value.message
    assert not list(place.workspace.rglob("ran"))


@pytest.mark.skipif(shutil.which("bun") is None, reason="bun is not installed")
def test_bun_installs_and_runs_where_there_is_no_node(place, registry):
    registry.publish()
    place.env["PATH"] = os.path.dirname(shutil.which("bun"))
    if shutil.which("node", path=place.env["PATH"]):
        (place.top / "bin").mkdir()
        (place.top / "bin/bun").symlink_to(os.path.realpath(shutil.which("bun")))
        place.env["PATH"] = str(place.top / "bin")
    server = place.install("bunx", "said", "-x")
    assert os.path.basename(server.argv[0]).startswith("bun")
    assert place.run(server) == {"version": "1.0.0", "args": ["-x"]}


def test_a_python_that_is_not_here_is_named(place, registry):
    with pytest.raises(ToolFailed, match=r"asks for Python `2\.6`, which was not found"):
        place.install("uvx", "--python", "2.6", "said-server")


def test_a_refused_command_is_refused_again_by_the_installation(place):
    assert place.servers.names_package(provider("npx", "--frob", "said"))
    assert place.servers.installed(provider("npx", "--frob", "said")) is None
    with pytest.raises(ToolFailed, match="--frob"):
        place.install("npx", "--frob", "said")
    with pytest.raises(ToolFailed, match="no grant opens a Unix socket"):
        place.install("docker", "run", "said")
