"""`haft serve`: offer the tools to other programs. The servers are surfaces of their own, which the entry point of haft
hands to the command line: surfaces do not import each other."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec

import click

from haft.contracts import BadConfig, BadUsage
from haft.surfaces.cli.globals import Globals, HaftCommand
from haft.surfaces.cli.place import agent_of_this_process, tell_ignored, tell_what_is_logged, workspace_of
from haft.surfaces.text.home import state_home


@click.command("mcp", cls=HaftCommand)
@click.option(
    "--http",
    metavar="HOST:PORT",
    help="Listen on this address, instead of serving one client on stdin and stdout. Clients need a token.",
)
@click.option(
    "--allow-host",
    "allow_hosts",
    metavar="NAME",
    multiple=True,
    help="With `--http`: also answer requests to this host name, and allow an address that other machines can reach.",
)
@click.option("--tools", "globs", metavar="GLOB", multiple=True, help="Offer only tools whose names match.")
@click.option("--lazy", is_flag=True, help="List only `search_tools` and `call_tool`: clients search for the others.")
@click.option(
    "--profile",
    type=click.Choice(["read-only"]),
    help="`read-only`: offer only tools that declare that they change nothing.",
)
@click.pass_obj
def serve_mcp(
    options: Globals,
    http: str | None,
    allow_hosts: tuple[str, ...],
    globs: tuple[str, ...],
    lazy: bool,
    profile: str | None,
) -> None:
    """Offer the tools to MCP clients, such as agents."""
    from haft.service import load_config

    if allow_hosts and http is None:
        raise BadUsage("`--allow-host` needs `--http`: over stdio there are no host names")
    workspace = workspace_of(options)
    tell_what_is_logged(options)
    tell_ignored(load_config(workspace, os.environ, trust_home=state_home().path), options, is_brief=True)
    serve = options.servers["mcp"]
    raise click.exceptions.Exit(
        serve(
            workspace=workspace,
            tools=globs,
            lazy=lazy,
            read_only=profile == "read-only",
            http=http,
            allow_hosts=allow_hosts,
            quiet=options.quiet,
        )
    )


@click.command("http", cls=HaftCommand)
@click.option(
    "--listen",
    metavar="HOST:PORT",
    default="127.0.0.1:8750",
    show_default=True,
    help="The address. Port 0 lets the system choose a port.",
)
@click.option(
    "--allow-host",
    "allow_hosts",
    metavar="NAME",
    multiple=True,
    help="Also answer requests to this host name. Beyond loopback, one is needed.",
)
@click.option("--tls-cert", metavar="FILE", help="Speak TLS, with the certificate in this file (PEM).")
@click.option("--tls-key", metavar="FILE", help="The key of the certificate (PEM).")
@click.option(
    "--behind-proxy",
    metavar="ADDRESS",
    multiple=True,
    help="Take requests only from this address or network, where a proxy adds TLS.",
)
@click.pass_obj
def serve_http(
    options: Globals,
    listen: str,
    allow_hosts: tuple[str, ...],
    tls_cert: str | None,
    tls_key: str | None,
    behind_proxy: tuple[str, ...],
) -> None:
    """Serve an HTTP API, MCP and the console for people, on one port."""
    from haft.service import load_config

    check_extra()
    workspace = workspace_of(options)
    tell_what_is_logged(options)
    tell_ignored(load_config(workspace, os.environ, trust_home=state_home().path), options, is_brief=True)
    raise click.exceptions.Exit(
        options.servers["http"](
            workspace=workspace,
            is_only=options.workspace is not None,
            listen=listen,
            allow_hosts=allow_hosts,
            tls_cert=tls_cert,
            tls_key=tls_key,
            behind_proxy=behind_proxy,
            makes_link=sys.stderr.isatty() and agent_of_this_process() is None,
            quiet=options.quiet,
        )
    )


def check_extra() -> None:
    """Raise `BadConfig` if a package is missing that only the server needs."""
    missing = [name for name in ("starlette", "uvicorn", "jinja2", "httpx") if find_spec(name) is None]
    if missing:
        raise BadConfig(
            f"`haft serve http` needs {', '.join(missing)}, not installed here", hint='pip install "haft[server]"'
        )
