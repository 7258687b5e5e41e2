"""`haft providers`: lists MCP servers, adds and removes them, lets them start, restarts them, logs in at them, shows
their logs, and reads their resources.

Only `add`, `trust`, `restart`, `login` and `read` start a server. A server that a workspace names starts only after the
person saw its command, or its address.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from haft.contracts import BadUsage, HaftError, Rejected
from haft.lazy import regex
from haft.surfaces.cli.globals import Globals, HaftCommand
from haft.surfaces.cli.place import require_person, tell_ignored, tell_what_is_logged, workspace_of
from haft.surfaces.cli.screen.printing import complain, complain_of, data, facts, lines, say, table, warn
from haft.surfaces.cli.screen.progress import Progress
from haft.surfaces.cli.words.network_option import CommandWithNetwork, network_option
from haft.surfaces.text.home import state_home
from haft.surfaces.text.terminal import framed, is_terminal, one_line, styled, visible

if TYPE_CHECKING:
    from haft.contracts import Network
    from haft.service import ProvidersFacade, StartProposal, ToolService


_LIKE_A_URL: Final = regex(r"[a-zA-Z][a-zA-Z0-9+.-]*:/")


def _opened(options: Globals, *, is_brief: bool = True) -> ProvidersFacade:
    from haft.service import ProvidersFacade, check_workspace

    home = state_home()
    facade = ProvidersFacade(check_workspace(workspace_of(options), home.path), home)
    tell_ignored(facade.config, options, is_brief=is_brief)
    tell_what_is_logged(options)
    return facade


def complete_providers(_ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[Any]:
    """Shell completion: the names of the MCP servers."""
    from click.shell_completion import CompletionItem

    from haft.service import ProvidersFacade

    found: list[Any] = []
    with contextlib.suppress(HaftError):  # Other commands report a broken configuration.
        facade = ProvidersFacade(workspace_of(Globals(quiet=True)), state_home())
        found = [CompletionItem(one.provider.name, help=one.provider.source) for one in facade.servers()]
    return [one for one in found if one.value.startswith(incomplete)]


_name = click.argument("name", shell_complete=complete_providers, help="An MCP server.")


@click.command("list", cls=HaftCommand)
@click.pass_obj
def list_providers(options: Globals) -> None:
    """List the MCP servers, each with its state and its tools. haft starts no server for this."""
    rows = _opened(options, is_brief=False).listed()
    if options.json:
        facts([row.to_json() for row in rows])
        return
    table(
        [(row.title, row.state, _count(row.tools), row.where()) for row in rows],
        style_first="bold",
        cut=is_terminal(sys.stdout),
    )
    if options.quiet:
        return
    for row in rows:
        if row.reason is not None:
            say(row.reason if row.server.is_file else f"{row.title}: {row.reason}")
    if not rows:
        say("no MCP servers are configured: `haft providers add NAME -- COMMAND` adds one")


def _count(tools: Sequence[str]) -> str:
    return f"{len(tools)} tool{'' if len(tools) == 1 else 's'}"


@click.command("add", cls=CommandWithNetwork)
@click.argument(
    "words",
    nargs=-1,
    metavar="NAME (URL | -- COMMAND…)",
    help="The name of the server, and its address or command. With --from: the servers to import. Default: all.",
)
@click.option(
    "--from",
    "source",
    metavar="FILE",
    type=click.Path(),
    help="Import the servers of another agent's configuration file.",
)
@click.option(
    "--in",
    "where",
    type=click.Choice(["user", "workspace"]),
    default="user",
    help="The haft.toml to write to: your own (default), or that of the workspace.",
)
@click.option("--type", "kind", metavar="TYPE", help="http or sse, for a URL. Default: http.")
@click.option(
    "--env",
    metavar="NAME[=VALUE]",
    multiple=True,
    help="Set a variable of the server. Without a value, haft passes your own variable on (repeatable).",
)
@click.option("--header", metavar="NAME:VALUE", multiple=True, help="Send this HTTP header (repeatable).")
@click.option("--cwd", metavar="DIR", type=click.Path(), help="The directory to start in. Default: the workspace.")
@click.option("--read", metavar="PATH", multiple=True, type=click.Path(), help="Let the server read PATH (repeatable).")
@click.option(
    "--write",
    metavar="PATH",
    multiple=True,
    type=click.Path(),
    help="Let the server write to PATH; `.` is the workspace (repeatable).",
)
@network_option("Let the server use the whole network.")
@click.option("--include", metavar="GLOB", multiple=True, help="Use only tools with such names (repeatable).")
@click.option("--exclude", metavar="GLOB", multiple=True, help="Do not use tools with such names (repeatable).")
@click.option("--timeout", metavar="SECONDS", type=float, help="End calls of its tools after this time.")
@click.option("--replace", "replaces", is_flag=True, help="Replace a server of the same name in the file.")
@click.option("--no-start", is_flag=True, help="Only write the file. Do not start the server.")
@click.option("--yes", "is_confirmed", is_flag=True, help="With --from: do not ask.")
@click.pass_context
def add_provider(
    context: click.Context,
    words: tuple[str, ...],
    source: str | None,
    where: str,
    kind: str | None,
    env: tuple[str, ...],
    header: tuple[str, ...],
    cwd: str | None,
    read: tuple[str, ...],
    write: tuple[str, ...],
    network: Network,
    include: tuple[str, ...],
    exclude: tuple[str, ...],
    timeout: float | None,
    replaces: bool,
    no_start: bool,
    is_confirmed: bool,
) -> None:
    """Add an MCP server to your haft.toml, start it, and list its tools. Write the server's command after `--`, or give
    its URL. With `--from`, import servers from a file of another agent, such as .mcp.json, .vscode/mcp.json,
    opencode.json or Codex's config.toml; haft shows them and asks you first.

    The server runs in a sandbox of its own: it reads the workspace, and reaches no network, unless you grant more."""
    from haft.service import this_user

    require_person("providers add")
    options: Globals = context.obj
    facade = _opened(options)
    if source is not None:
        given = facade.read_tables(source, words)
        if not is_confirmed:
            _ask_import(source, given)
    else:
        name, made = _server(words, kind)
        made |= {
            "env": dict(_split(one, "=", "--env", "NAME=VALUE") for one in env if "=" in one),
            "headers": dict(_split(one, ":", "--header", "NAME:VALUE") for one in header),
            "cwd": None if cwd is None else os.path.abspath(os.path.expanduser(cwd)),
            "grant": _grant(network, env, read, write),
            "include": list(include),
            "exclude": list(exclude),
            "timeout": timeout,
        }
        given = {name: facade.written(name, made)}
    changes = [
        facade.add(name, written, this_user(), in_workspace=where == "workspace", replaces=replaces)
        for name, written in given.items()
    ]
    started: dict[str, list[str] | None] = {}
    for change in changes:
        if not options.json:
            lines([visible(f"added `{change.name}` to {change.file}")])
        if not no_start:
            _ask_inputs(change.name, options)
            started[change.name] = _started(change.name, options, is_remote=given[change.name].url is not None)
            if started[change.name] is None:
                say(
                    f"`{change.name}` stays in {change.file}: correct it with `haft providers add {change.name} "
                    f"--replace …`, or remove it with `haft providers remove {change.name}`"
                )
    if options.json:
        facts([{**change.to_json(), "tools": started.get(change.name)} for change in changes])
    if any(tools is None for tools in started.values()):
        context.exit(1)


def _server(words: Sequence[str], kind: str | None) -> tuple[str, dict[str, Any]]:
    """The name of a server on the command line, and its address or command."""
    if len(words) < 2:
        raise BadUsage(
            "`haft providers add` needs a name, and a URL or a command",
            hint="for example `haft providers add time -- uvx mcp-server-time`, or `haft providers add x https://…`",
        )
    name, first, *rest = words
    if first.startswith(("http://", "https://")) and not rest:
        return name, {"url": first, **({"type": kind} if kind else {})}
    if not rest and _LIKE_A_URL.match(first):
        raise BadUsage(f"`{first}` is not the address of an MCP server", hint="an address begins with `https://`")
    return name, {"command": first, "args": rest, **({"type": kind} if kind else {})}


def _grant(network: Network, env: Sequence[str], read: Sequence[str], write: Sequence[str]) -> dict[str, Any]:
    names = [one for one in env if "=" not in one]
    given = {
        "network": list(network) if isinstance(network, tuple) else network,
        "env": names,
        "read": list(read),
        "write": list(write),
    }
    return {name: value for name, value in given.items() if value}


def _ask_import(source: str, given: dict[str, Any]) -> None:
    from haft.service import provider_text

    _require_terminal(f"{source} was not imported", "read it, then add `--yes`")
    for name, written in given.items():
        for line in framed(provider_text(name, written).rstrip("\n")):
            sys.stderr.write(f"{line}\n")
    _confirm("Add these servers, and let them start?", f"{source} was not imported: you rejected it")


def _require_terminal(what: str, hint: str) -> None:
    if not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
        raise Rejected(f"{what}: there is no terminal to ask at", hint=hint)


def _confirm(question: str, rejected: str) -> None:
    from haft.surfaces.cli.person.line_input import confirm

    if not asyncio.run(confirm(f"{question} [y/N] ")):
        raise Rejected(rejected)


@click.command("trust", cls=HaftCommand)
@_name
@click.option("--revoke", "is_revoked", is_flag=True, help="Withdraw your trust: the server starts no more.")
@click.option(
    "--yes",
    "is_confirmed",
    is_flag=True,
    help="Trust the server without a question. Use this option only for a server that you have looked at.",
)
@click.option(
    "--annotations/--no-annotations",
    default=None,
    help="Believe what the server says about its tools, for example that a tool only reads. Default: as before.",
)
@click.option(
    "--input",
    "inputs",
    metavar="ID=FILE",
    multiple=True,
    help="Read the value of an input from a file; - is stdin (repeatable). Default: haft asks at the terminal.",
)
@click.option("--no-start", is_flag=True, help="Do not start the server now.")
@click.pass_context
def trust_provider(
    context: click.Context,
    name: str,
    is_revoked: bool,
    is_confirmed: bool,
    annotations: bool | None,
    inputs: tuple[str, ...],
    no_start: bool,
) -> None:
    """Let an MCP server start, as it is configured now. haft shows its command or its address, and asks you. If you
    trusted it before, haft shows what changed. haft also asks for values that the server needs, and keeps them as
    secrets.

    The trust holds for this configuration, and for the bytes of the local files that the command names. It approves no
    calls: haft decides about each call as usual."""
    from haft.service import this_user

    options: Globals = context.obj
    facade = _opened(options)
    if is_revoked:
        changed = facade.revoke(name)
        if options.json:
            facts({"name": name, "trusted": False, "changed": changed, "tools": None})
        else:
            lines([visible(f"{name} is {'no longer trusted' if changed else 'not trusted, and was not before'}")])
        return
    require_person("providers trust")
    proposal = facade.proposal(name)
    name = proposal.server.provider.name
    changed = proposal.why_not is not None
    if changed:
        _show(proposal)
    if changed and not is_confirmed:
        _require_terminal(f"{name} is not trusted", f"look at it, then `haft providers trust {name} --yes`")
        _confirm("Let this server start?", f"{name} is not trusted: you rejected it")
    _give_inputs(facade, proposal, inputs)
    if proposal.inputs:
        seen, proposal = proposal, facade.proposal(name)
        if proposal.server.provider.identity != seen.server.provider.identity:
            raise Rejected(f"{name} is not trusted: it changed meanwhile", hint="try again")
    facade.trust(proposal, this_user(), annotations=annotations)
    if not options.json:
        lines([visible(f"{name} may start{'' if changed else ', and could before'}")])
    is_remote = proposal.server.provider.transport != "stdio"
    tools = None if no_start else _started(name, options, is_remote=is_remote)
    if options.json:
        facts({"name": name, "trusted": True, "changed": changed, "tools": tools})
    if tools is None and not no_start:
        context.exit(1)


def _show(proposal: StartProposal) -> None:
    """Show what would start, on stderr."""
    provider = proposal.server.provider
    sys.stderr.write(styled(visible(f"the MCP server {provider.name} ({provider.source})"), "bold", sys.stderr) + "\n")
    for line in framed("\n".join(proposal.difference) or proposal.text.rstrip("\n")):
        sys.stderr.write(f"{line}\n")
    if proposal.difference:
        say("it has changed since you trusted it: this is the difference")
    for path in proposal.changed_files:
        say(f"changed since then: {path}")
    for path in proposal.files:
        if path not in proposal.changed_files:
            say(f"it runs {path}")
    where = "connects to this address" if provider.url is not None or provider.transport != "stdio" else "starts it"
    say(f"haft {where}; its tools still need approval as usual")


def _give_inputs(facade: ProvidersFacade, proposal: StartProposal, given: Sequence[str]) -> None:
    """Ask for the values that a server needs, or read them from the files in `given`."""
    from haft.service import this_user

    files = dict(_split(one, "=", "--input", "ID=FILE") for one in given)
    for one in proposal.inputs:
        if one.name in files:
            value = _read_value(files[one.name])
        else:
            _require_terminal(
                f"`{proposal.server.provider.name}` needs the input `{one.name}`",
                f"`--input {one.name}=FILE` reads it from a file, `--input {one.name}=-` from stdin",
            )
            value = _ask_value(one.name, one.description, one.options, one.default)
        facade.keep_input(proposal.server, one.name, value, this_user())


def _ask_inputs(name: str, options: Globals) -> None:
    """Ask for the values that a server needs, if there is a terminal to ask at."""
    if not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
        return
    facade = _opened(Globals(workspace=options.workspace, quiet=True))
    if facade.named(name).missing_inputs:
        _give_inputs(facade, facade.proposal(name), ())


def _ask_value(name: str, description: str, choices: Sequence[str], default: str | None) -> str:
    import getpass

    about = f" ({one_line(description)})" if description else ""
    if choices:
        say(f"one of: {', '.join(map(one_line, choices))}")
    usual = "" if default is None else ", Enter for the default"
    value = getpass.getpass(visible(f"{name}{about}{usual}: "), stream=sys.stderr) or (default or "")
    if not value:
        raise Rejected(f"the input `{name}` was not given")
    if choices and value not in choices:
        raise BadUsage(f"the input `{name}` must be one of {', '.join(map(one_line, choices))}")
    return value


def _read_value(path: str) -> str:
    if path == "-":
        return sys.stdin.readline().rstrip("\n")
    try:
        with open(os.path.expanduser(path), encoding="utf-8") as file:
            return file.read(1_000_000).rstrip("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise BadUsage(f"{path} cannot be read: {getattr(error, 'strerror', None) or 'it is no text'}") from error


def _split(text: str, mark: str, option: str, form: str) -> tuple[str, str]:
    name, found, value = text.partition(mark)
    if not found or not name.strip():
        raise BadUsage(f"`{option} {text}` is not understood", hint=f"write it as `{option} {form}`")
    return name.strip(), value.strip()


@click.command("restart", cls=HaftCommand)
@_name
@click.option("--upgrade", is_flag=True, help="First install the newest version of its package (`npx`, `uvx`, …).")
@click.pass_context
def restart_provider(context: click.Context, name: str, upgrade: bool) -> None:
    """Start an MCP server, and ask it for its tools again. If another haft process runs this server too, that one goes
    on."""
    options: Globals = context.obj
    provider = _opened(options).named(name).provider
    name = provider.name
    tools = _started(name, options, is_remote=provider.transport != "stdio", upgrade=upgrade)
    if options.json:
        facts({"name": name, "tools": tools})
    if tools is None:
        context.exit(1)


@click.command("login", cls=HaftCommand)
@_name
@click.option("--no-browser", is_flag=True, help="Do not open a browser. Print the address of the login page only.")
@click.pass_context
def login_at_provider(context: click.Context, name: str, no_browser: bool) -> None:
    """Log in at a remote MCP server. haft opens the login page in your browser, and keeps the tokens for this server
    alone."""
    from haft.service import login_provider as log_in
    from haft.service import this_user

    options: Globals = context.obj
    require_person("providers login")
    this_user().must_be_person("providers login")
    facade = _opened(options)
    provider = facade.named(name).provider
    if provider.transport != "stdio" and (why := facade.proposal(provider.name).why_not) is not None:
        raise BadUsage(f"haft did not connect to `{provider.name}`: {why}")
    result = asyncio.run(
        log_in(
            provider,
            state_home().path,
            say,
            browser=not no_browser,
            pasted=_typed_lines() if is_terminal(sys.stdin) else None,
        )
    )
    if not options.json:
        lines([visible(f"logged in at {provider.name}" if result.needed else f"{provider.name} needs no login")])
    tools = _started(provider.name, options, is_remote=provider.transport != "stdio")
    if options.json:
        facts(
            {
                "name": provider.name,
                "needed": result.needed,
                "issuer": result.issuer,
                "scope": result.scope,
                "tools": tools,
            }
        )
    if tools is None:
        context.exit(1)


async def _typed_lines() -> AsyncIterator[str]:
    from haft.surfaces.cli.person.line_input import read_line

    while line := await read_line(""):
        yield line.strip()


@click.command("remove", cls=HaftCommand)
@_name
@click.option("--purge", "is_purged", is_flag=True, help="Also delete the files that the server keeps for itself.")
@click.pass_obj
def remove_provider(options: Globals, name: str, is_purged: bool) -> None:
    """Remove an MCP server from the haft.toml that names it, and forget your trust in it, its values and its tokens.
    The files that the server keeps for itself stay, unless you add `--purge`."""
    from haft.service import this_user

    change = _opened(options).remove(name, this_user(), purges=is_purged)
    if options.json:
        facts(change.to_json())
        return
    lines([visible(f"removed `{change.name}` from {change.file}")])
    if change.files is not None:
        lines([visible(f"{'deleted its files in' if change.purged else 'its files stay in'} {change.files}")])


@click.command("logs", cls=HaftCommand)
@_name
@click.option("--lines", "count", metavar="N", type=click.IntRange(1), help="Print only the last N lines.")
@click.pass_obj
def print_logs(options: Globals, name: str, count: int | None) -> None:
    """Print what an MCP server wrote to stderr, the oldest first."""
    facade = _opened(options)
    server = facade.named(name)
    text = facade.log_of(server)
    if count is not None:
        text = "".join(text.splitlines(keepends=True)[-count:])
    if options.json:
        facts({"name": server.provider.name, "log": text})
    elif text:
        data(visible(text) if is_terminal(sys.stdout) else text)
    elif not options.quiet:
        say(f"{server.provider.name} has no log: haft has not started it yet, or it wrote nothing")


@click.command("read", cls=HaftCommand)
@_name
@click.argument("uri", help="The URI of a resource.")
@click.pass_context
def read_resource(context: click.Context, name: str, uri: str) -> None:
    """Read a resource of an MCP server. haft prints a text as it is, and writes other content to stdout only if stdout
    is not a terminal."""
    from haft.surfaces.cli.person.approver import approve_all

    options: Globals = context.obj
    name = _opened(options).named(name).provider.name

    async def work(service: ToolService) -> Any:
        return await service.call("read_resource", {"server": name, "uri": uri})

    outcome = asyncio.run(_in_service(options, work, approver=approve_all))
    if options.json:
        facts(outcome.to_json())
    elif outcome.error is not None:
        complain(outcome.error.message, outcome.error.hint)
    else:
        _print_contents(outcome.result, options)
    context.exit(outcome.process_exit_code)


def _print_contents(result: Any, options: Globals) -> None:
    contents = result.get("contents") if isinstance(result, dict) else None
    for one in contents if isinstance(contents, list) else ():
        if not isinstance(one, dict):
            continue
        if isinstance(one.get("text"), str):
            data(visible(one["text"]) if is_terminal(sys.stdout) else one["text"])
        elif isinstance(one.get("blob"), str):
            _print_bytes(one["blob"], str(one.get("mimeType") or "bytes"), options)


def _print_bytes(encoded: str, kind: str, options: Globals) -> None:
    try:
        content = base64.b64decode(encoded, validate=True)
    except (ValueError, binascii.Error):
        warn("the server sent content that is not base64")
        return
    if is_terminal(sys.stdout):
        if not options.quiet:
            say(f"{len(content):_} bytes of {one_line(kind)} are not printed on a terminal: redirect stdout to a file")
        return
    sys.stdout.flush()
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()


def _started(name: str, options: Globals, *, is_remote: bool, upgrade: bool = False) -> list[str] | None:
    """Start a server, and print its tools. Returns their names; None if the server could not be started."""
    from haft.service import START_SECONDS

    progress = Progress(quiet=options.quiet)

    async def work(service: ToolService) -> list[str]:
        return await service.providers.restart(name, progress.passing, upgrade=upgrade)

    how = f"connecting to {name}, for at most {START_SECONDS:g} s" if is_remote else f"starting {name}"
    progress.passing(how)
    try:
        tools: list[str] = asyncio.run(_in_service(options, work))
    except HaftError as error:
        progress.clear()
        complain_of(error)
        return None
    progress.clear()
    if not options.json:
        lines([visible(f"{name} has {_count(tools)}")])
        lines(f"  {visible(tool)}" for tool in tools)
    return tools


async def _in_service(options: Globals, work: Callable[[ToolService], Awaitable[Any]], approver: Any = None) -> Any:
    from haft.service import ToolService

    async with ToolService.open(workspace_of(options), approver=approver) as service:
        return await work(service)
