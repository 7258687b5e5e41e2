"""A program that haft knows as an agent: it gets a private copy of its own files, the hosts of its model, and its own
sandbox, which cannot start inside haft's sandbox, is switched off."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from haft.contracts import Grants
from haft.surfaces.text.terminal import one_line
from haft.values import replace

if TYPE_CHECKING:
    from haft.connecting import Agent
    from haft.service import Program


def agent_of(words: tuple[str, ...]) -> Agent | None:
    """The agent that a command line starts; None if haft does not know the program."""
    from haft.connecting import agent_of_program

    return agent_of_program(words[0])


def as_agent(program: Program, agent: Agent, env: Mapping[str, str]) -> Program:
    """The program with everything that this agent needs to run, and nothing else."""
    from haft.service import AgentFiles

    places = tuple((place.resolve(env), place.path.removeprefix("~/")) for place in agent.folders)
    variables = {place.variable for place in agent.folders if place.variable is not None}
    keys = tuple(name for name in agent.key_variables if name in env)
    hosts = (*agent.model_hosts, *(host for name in keys if (host := _host_in(env[name])) is not None))
    grants = program.grants | Grants(network=hosts if program.grants.network is not True else False, env=keys)
    return replace(
        program,
        argv=(program.argv[0], *agent.sandbox_off, *program.argv[1:]),
        grants=grants,
        env={
            **program.env,
            **{name: env[name] for name in variables if name in env},
            **agent.sandbox_off_variables,
        },
        agent=AgentFiles(agent.title, places, agent.carried, agent.not_carried, agent.dropped, agent.deciding_keys),
    )


def _host_in(value: str) -> str | None:
    """The host and port of a model that a variable names by its address."""
    if not value.startswith(("http://", "https://")):
        return None
    try:
        found = urlsplit(value)
        port = found.port or (443 if found.scheme == "https" else 80)
    except ValueError:
        return None
    return None if found.hostname is None else f"{found.hostname}:{port}"


def agent_lines(agent: Agent, env: Mapping[str, str]) -> Iterator[str]:
    """What an agent gets in addition, line by line."""
    home = env.get("HOME", "")
    shown = [place.resolve(env) for place in agent.folders]
    names = ", ".join(f"~{path[len(home) :]}" if home and path.startswith(f"{home}/") else path for path in shown)
    yield (
        f"  {agent.title}: works on a private copy of {one_line(names)}; logins and history are carried back, changes"
        " of settings are held"
    )
    if agent.sandbox_off or agent.sandbox_off_variables:
        off = [*agent.sandbox_off, *(f"{name}={value}" for name, value in agent.sandbox_off_variables.items())]
        yield f"  its own sandbox is switched off, because it cannot start inside this one: {one_line(' '.join(off))}"
