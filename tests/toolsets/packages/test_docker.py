"""Servers that need the Docker socket."""

import pytest

from haft.sources.mcp import Provider
from haft.toolsets.providers.packages import why_not_installable

TCP = {"DOCKER_HOST": "tcp://localhost:2375"}


def why(command, *args, env=None):
    return why_not_installable(Provider("box", "stdio", command=command, args=args, env=env or {}))


@pytest.mark.parametrize(
    ("command", "args"),
    [
        ("docker", ("run", "-i", "--rm", "mcp/time")),
        ("/usr/bin/podman", ("run", "mcp/time")),
        ("npx", ("-y", "docker-mcp", "--socket=/var/run/docker.sock")),
        ("server", ("-v", "/var/run/docker.sock:/var/run/docker.sock")),
        ("server", ("unix:///run/user/1000/podman/podman.sock",)),
    ],
)
def test_a_server_that_needs_the_socket_is_refused_with_the_lines_to_write_instead(command, args):
    said = why(command, *args)
    assert "no grant opens a Unix socket" in said and "below `[providers.box]`" in said
    assert 'grant = {network = ["localhost:2375"]}' in said and "`url = …`" in said


def test_a_variable_can_name_the_socket_too():
    assert "unix:///var/run/docker.sock" in why("server", env={"DOCKER_HOST": "unix:///var/run/docker.sock"})


@pytest.mark.parametrize("words", [(), ("-v", "/var/run/docker.sock:/var/run/docker.sock")])
def test_a_client_that_reaches_docker_over_the_network_is_not_refused(words):
    assert why("docker", "run", "-i", *words, "mcp/time", env=TCP) is None


@pytest.mark.parametrize("args", [("docker.sock.md",), ("about-docker",), ("docker-sock",)])
def test_words_about_docker_are_not_the_socket(args):
    assert why("server", *args) is None
