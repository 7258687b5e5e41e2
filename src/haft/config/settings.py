"""Every setting: its name, its check, its default, and a description. The documentation is generated from this
module."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal, get_args

from haft.config.server_values import oidc, webhooks
from haft.config.values import (
    agent_types,
    amount,
    days_by_workspace,
    instance_list,
    model_names,
    network,
    one_of,
    plugin_list,
    rule_list,
    seconds,
    seconds_by_tool,
    secret_sources,
    separator,
    separators,
    served_workspaces,
    table,
    tables,
    temperature,
    text,
    text_or_empty,
    texts,
    truth,
    whole,
)
from haft.contracts import Isolation, Limits
from haft.values import dataclass

Narrowing = Literal[
    "lower",
    "lower-but-zero-is-none",
    "stricter",
    "close",
    "turn-off",
    "turn-on",
    "stays-on",
    "stays-full",
    "keeps-less",
    "inside",
    "adds",
    "confined",
    "trusted",
    "own-tools",
    "any",
]
"""What an untrusted workspace may do to a setting: make it smaller, choose a stricter word, set it to false or to true,
add to a list that restricts, add confined tools, nothing at all, set it for its own tools, or set it freely."""

WHY_NOT: Final[dict[Narrowing, str]] = {
    "lower": "a workspace may lower limits, not raise them",
    "lower-but-zero-is-none": "a workspace may lower limits, not raise them",
    "stricter": "a workspace may make the sandbox stricter, not looser",
    "stays-on": "a workspace may not choose a weaker way to record its changes",
    "close": "a workspace may close the network, not open it",
    "turn-off": "a workspace may turn this off, not on",
    "turn-on": "a workspace may turn this on, not off",
    "stays-full": "a workspace may not choose a weaker audit log",
    "keeps-less": "a workspace may keep less between calls, not more",
    "inside": "a workspace may only name paths inside itself",
    "confined": "a workspace may add only tools that run in the sandbox",
    "trusted": "a workspace may not set this without trust",
    "own-tools": "it applies to the workspace's own tools, not to yours",
}
"""Why a value of an untrusted workspace is ignored."""

RULE_ASIDE: Final = "the rules of a workspace may reject and ask, not allow, try or delegate"
GRANT_ASIDE: Final = "a workspace may not open the sandbox"
FROM_ENVIRONMENT: Final = "a workspace may not read the environment"

SandboxMode = Literal["off", "auto", "required"]
SANDBOX_MODES: Final[tuple[SandboxMode, ...]] = get_args(SandboxMode)
"""The values of the setting `sandbox.mode`, from the loosest to the strictest."""

SCRATCH_KEPT: Final = ("thread", "call")
"""The choices for how long a `/tmp` is kept: for all calls of a thread, or for one call."""

ISOLATIONS: Final[tuple[Isolation, ...]] = get_args(Isolation)

ChangesEngine = Literal["auto", "overlay", "snapshot", "off"]
CHANGES_ENGINES: Final[tuple[ChangesEngine, ...]] = get_args(ChangesEngine)
"""The choices for the engine that records changes. An untrusted workspace may not choose `off`."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting."""

    name: str
    default: Any
    check: Callable[[Any], Any]
    """Returns the value in the form that is used; raises `ValueError` with a sentence for a wrong value."""
    what: str
    narrowing: Narrowing
    variable: bool = True
    """Whether an environment variable may set this setting."""

    def widens(self, value: Any, than: Any) -> bool:
        """Whether `value` allows more than `than`."""
        match self.narrowing:
            case "lower":
                return bool(value > than)
            case "lower-but-zero-is-none":
                return bool((value or float("inf")) > (than or float("inf")))
            case "stricter":
                return SANDBOX_MODES.index(value) < SANDBOX_MODES.index(than)
            case "stays-on":
                return bool(value != than and value in ("off", "snapshot"))
            case "close":
                return _opens(value, than)
            case "turn-off" | "turn-on":
                return bool(value != than and value is (self.narrowing == "turn-off"))

            case "stays-full":
                return bool(value == "group" and than == "full")
            case "keeps-less":
                return bool(value == "thread" and than == "call")
            case "inside":
                return str(value).startswith(("/", "~")) or ".." in str(value).split("/")
            case "trusted":
                return bool(value != than)
            case "adds" | "confined" | "own-tools" | "any":
                return False


def _opens(value: bool | str | list[str], than: bool | str | list[str]) -> bool:
    """Whether one value of `sandbox.network` opens something that the other does not. Hosts are compared as they are
    written."""
    if isinstance(value, list) and isinstance(than, list):
        return not set(value) <= set(than)
    return _openness(value) > _openness(than)


def _openness(value: bool | str | list[str]) -> int:
    return 0 if value == "never" else 2 if isinstance(value, list) else 3 if value else 1


_LIMITS: Final = Limits()

SETTINGS: Final[tuple[Setting, ...]] = (
    Setting(
        "limits.max_output_bytes",
        _LIMITS.max_output_bytes,
        whole(0),
        "The maximum size of the output in an outcome. If the output is larger, the outcome contains the beginning "
        "and the end of the output. haft keeps more of the output on disk: see `limits.max_kept_output_bytes`.",
        "lower",
    ),
    Setting(
        "limits.max_kept_output_bytes",
        _LIMITS.max_kept_output_bytes,
        whole(1000),
        "The maximum size of the output that haft keeps on disk for one call. If the output is larger, haft keeps "
        "the beginning and the end of the output.",
        "lower",
    ),
    Setting(
        "limits.max_seconds",
        _LIMITS.max_seconds,
        seconds(0.001),
        "How many seconds a call can run. If you set a value, tools and calls can set only shorter deadlines. If you "
        "set no value, a tool or a call can set a shorter or a longer deadline, which replaces the default. "
        "`tools.timeout` replaces this setting for single tools.",
        "lower",
    ),
    Setting(
        "limits.max_idle_seconds",
        _LIMITS.max_idle_seconds,
        seconds(0.001, zero=True),
        "How many seconds a call can run without output or progress. 0 means no limit.",
        "lower-but-zero-is-none",
    ),
    Setting(
        "limits.max_concurrent",
        _LIMITS.max_concurrent,
        whole(1),
        "How many calls one host (the process that opened haft) runs at the same time. Further calls wait.",
        "lower",
    ),
    Setting(
        "limits.max_concurrent_per_user",
        _LIMITS.max_concurrent_per_user,
        whole(1, zero=True),
        "How many calls of one user one host runs at the same time. 0 means no limit except `limits.max_concurrent`.",
        "lower-but-zero-is-none",
    ),
    Setting(
        "limits.max_queued",
        _LIMITS.max_queued,
        whole(1),
        "How many calls can wait in one host. A further call ends at once with the error `busy`.",
        "lower",
    ),
    Setting(
        "limits.max_open_per_user",
        _LIMITS.max_open_per_user,
        whole(1, zero=True),
        "How many calls of one user can be open in one host, whether they run or wait. A further call ends at once "
        "with the error `busy`. 0 means no limit except `limits.max_queued`.",
        "lower-but-zero-is-none",
    ),
    Setting(
        "limits.max_file_bytes",
        _LIMITS.max_file_bytes,
        whole(0),
        "The size of the largest file that a built-in file tool can write, or read as a whole.",
        "lower",
    ),
    Setting(
        "limits.max_files_per_call",
        _LIMITS.max_files_per_call,
        whole(1, zero=True),
        "How many files one call of a built-in file tool can write. 0 means no limit.",
        "lower-but-zero-is-none",
    ),
    Setting(
        "limits.memory_bytes",
        _LIMITS.memory_bytes,
        whole(1_000_000, zero=True),
        "How much resident memory all processes of one call together can use. 0 means no limit.",
        "lower-but-zero-is-none",
    ),
    Setting(
        "limits.max_processes",
        _LIMITS.max_processes,
        whole(2, zero=True),
        "How many processes one call can have at the same time. 0 means no limit.",
        "lower-but-zero-is-none",
    ),
    Setting(
        "limits.cpu_seconds",
        _LIMITS.cpu_seconds,
        seconds(0.1, zero=True),
        "How many seconds of processor time all processes of one call together can use. 0 means no limit.",
        "lower-but-zero-is-none",
    ),
    Setting(
        "limits.max_written_bytes",
        _LIMITS.max_written_bytes,
        whole(1000, zero=True),
        "How many bytes all processes of one call together can write to disk. 0 means no limit.",
        "lower-but-zero-is-none",
    ),
    Setting(
        "limits.max_written_file_bytes",
        _LIMITS.max_written_file_bytes,
        whole(1000, zero=True),
        "The size of the largest file that the processes of a call can write. 0 means no limit.",
        "lower-but-zero-is-none",
    ),
    Setting(
        "limits.max_changed_files",
        _LIMITS.max_changed_files,
        whole(1, zero=True),
        "How many files one call can create or change. 0 means no limit.",
        "lower-but-zero-is-none",
    ),
    Setting(
        "limits.max_open_files",
        _LIMITS.max_open_files,
        whole(64),
        "How many open files each process of a call can have.",
        "lower",
    ),
    Setting(
        "sandbox.mode",
        "auto",
        one_of(*SANDBOX_MODES),
        "`auto`: haft confines calls as far as this machine supports it. `required`: haft starts no process for a "
        "call if this machine lacks any part of the sandbox. `off`: haft confines no call.",
        "stricter",
    ),
    Setting(
        "sandbox.network",
        False,
        network,
        "`true`: confined calls can use the whole network. `false`: confined calls can use the network only with a "
        "grant. A list of hosts: without a grant, confined calls can reach only these hosts, such as "
        "`registry.example` (ports 80 and 443), `db.internal:5432`, `*.example.org:443` (all names below "
        "`example.org`), `build.example:*` (all ports) or `@package-indexes`. `never`: no option, rule or answer can "
        "grant the network, and no other place can change this setting. If this machine cannot block the network, "
        "`never` makes calls fail. This setting does not apply to downloads by haft itself (plugins, and packages of "
        "templates), nor to remote MCP servers, to which haft itself connects.",
        "close",
    ),
    Setting(
        "sandbox.network_ask_seconds",
        60.0,
        seconds(0.0),
        "How long a connection to a host that was not granted waits for the answer of a person, before it is refused. "
        "haft asks only for approved calls, and only if somebody can answer. 0: such a connection is refused at once.",
        "lower",
    ),
    Setting(
        "sandbox.scratch",
        "thread",
        one_of(*SCRATCH_KEPT),
        "How long haft keeps the `/tmp` of a call. `thread`: later calls of the same thread use the same `/tmp`. If "
        "the caller named the thread, haft deletes this `/tmp` when no call has used it for a day. If not, haft "
        "deletes it when the host (the process that runs the calls) ends. `call`: haft deletes `/tmp` after the call. "
        "Even with `thread`, some calls have their own empty `/tmp`, such as calls that run without approval, and "
        "calls with network that do not have the grant `scratch`.",
        "keeps-less",
    ),
    Setting(
        "sandbox.neighbours",
        "hidden",
        one_of("hidden", "visible"),
        "Whether a call in one workspace of a server sees the server's other workspaces. `hidden`: never, whatever a "
        "person approves. If this machine cannot hide them, the server does not start. `visible`: calls can read them.",
        "trusted",
    ),
    Setting(
        "changes.engine",
        "auto",
        one_of(*CHANGES_ENGINES),
        "How haft finds the changes of a call. `overlay`: the call runs in a layer above the workspace, and its "
        "writes go to this layer. `snapshot`: haft compares the whole workspace before and after the call. `auto`: "
        "haft uses `overlay` if this machine supports it, and `snapshot` if not. `off`: haft records no changes, so "
        "nothing can be undone.",
        "stays-on",
    ),
    Setting(
        "changes.isolation",
        "snapshot",
        one_of(*ISOLATIONS),
        "How calls of different callers are kept apart. `snapshot`: a call sees one committed state of the workspace, "
        "as of its start, and no update is lost. `serial`: besides, the outcomes are those that the calls would have "
        "one after another. A call that cannot have such an outcome ends with the error `conflict`.",
        "any",
    ),
    Setting(
        "changes.flush_seconds",
        2.0,
        seconds(0.0),
        "How long committed changes stay out of the workspace's own files while calls still run that began before "
        "the commit. Calls of haft see the changes at once; your editor sees them after this time. Then the running "
        "calls may see old and new files mixed, and their outcomes say so. 0: no limit.",
        "any",
    ),
    Setting(
        "cache.entries",
        1000,
        whole(1, zero=True),
        "How many answers of calls haft keeps, to give them again. 0 turns the cache off.",
        "lower",
    ),
    Setting(
        "cache.seconds",
        300.0,
        seconds(0.0),
        "For how many seconds haft gives a kept answer again, if the files that it depends on are unchanged.",
        "lower",
    ),
    Setting(
        "cache.bytes",
        100_000_000,
        whole(0),
        "How much disk space the kept answers can use.",
        "lower",
    ),
    Setting(
        "cache.verify",
        "identity",
        one_of("identity", "content"),
        "How haft finds out that a file is unchanged. `identity`: by its inode, size and times. `content`: by its "
        "content, which also finds writes through a shared memory mapping.",
        "any",
    ),
    Setting(
        "changes.store_bytes",
        10_000_000_000,
        whole(1_000_000),
        "How much disk space the earlier contents of changed files can use. If they need more, haft deletes the "
        "oldest contents. The runs that changed these files can then no longer be undone.",
        "lower",
    ),
    Setting(
        "changes.store_days",
        90,
        whole(1),
        "For how many days haft keeps the earlier contents of changed files. After this time, the runs that changed "
        "these files can no longer be undone.",
        "lower",
    ),
    Setting(
        "tools.timeout",
        {},
        seconds_by_tool,
        "Deadlines for single tools: a table with the names of tools and seconds. For a tool in this table, haft "
        "ignores `limits.max_seconds`.",
        "any",
        variable=False,
    ),
    Setting(
        "tools.disable",
        [],
        texts,
        "Tools that cannot be called. An entry is the name of a tool, or a kind and a name, such as `bash-plugin:*`. "
        "In an entry, `*` matches any text. If one place disables a tool, no other place can enable it.",
        "adds",
    ),
    Setting(
        "tools.enable",
        [],
        texts,
        "If this list is not empty, only the tools in the list can be called. Entries have the same form as in "
        "`tools.disable`. If several places have such a list, a tool must be on all of these lists.",
        "adds",
    ),
    Setting(
        "subagents.enabled",
        False,
        truth,
        "Whether the tool `task` can start sub-agents, and `haft agent run`, too.",
        "turn-off",
    ),
    Setting(
        "subagents.model",
        "",
        text_or_empty,
        "The model of sub-agents, as pydantic-ai names it, such as `anthropic:claude-sonnet-4-5` or "
        "`openai-chat:gpt-5-mini`. A type of sub-agent can name another model.",
        "trusted",
    ),
    Setting(
        "subagents.base_url",
        "",
        text_or_empty,
        "The address of the model of sub-agents, if it is not the address of the provider: an OpenAI-compatible "
        "endpoint, such as `http://127.0.0.1:1234/v1`.",
        "trusted",
    ),
    Setting(
        "subagents.models",
        {},
        model_names,
        "Short names of models: a table from the names that types of sub-agents use, such as `sonnet`, to the names of "
        "models, in the form of `subagents.model`. A short name without an entry stands for `subagents.model`. "
        "The tables of all files count together.",
        "trusted",
        variable=False,
    ),
    Setting(
        "subagents.cycles",
        10,
        whole(1),
        "How many requests a sub-agent can make to its model. A type of sub-agent can set another number for this and "
        "the other limits.",
        "lower",
    ),
    Setting(
        "subagents.tokens",
        200_000,
        whole(1),
        "How many tokens a sub-agent can use, counted as its model counts them, input and output together.",
        "lower",
    ),
    Setting(
        "subagents.calls",
        100,
        whole(1),
        "How many calls of tools a sub-agent can make.",
        "lower",
    ),
    Setting(
        "subagents.seconds",
        900.0,
        seconds(1.0),
        "How many seconds a sub-agent can work. Time in which it waits for a person does not count, and "
        "`limits.max_seconds` does not apply.",
        "lower",
    ),
    Setting(
        "subagents.depth",
        2,
        whole(1),
        "How deep sub-agents can start sub-agents. With 1, a sub-agent can start none.",
        "lower",
    ),
    Setting(
        "subagents.children",
        5,
        whole(1),
        "How many sub-agents one caller can have at the same time.",
        "lower",
    ),
    Setting(
        "subagents.cost",
        0.0,
        amount,
        "How many US dollars a sub-agent can cost, at the prices that pydantic-ai knows. 0 means no limit.",
        "lower-but-zero-is-none",
    ),
    Setting(
        "subagents.temperature",
        0.2,
        temperature,
        "The temperature of the model: how much its answers vary. Not sent to a model that takes none.",
        "lower",
    ),
    Setting(
        "subagents.output_tokens",
        4000,
        whole(1),
        "How many tokens one answer of the model can have.",
        "lower",
    ),
    Setting(
        "subagents.isolation",
        "workspace",
        one_of("workspace", "layer"),
        "Where a sub-agent works. `workspace`: its changes are in the workspace at once. `layer`: it works in a layer "
        "of its own, and a person applies or drops its changes at the end.",
        "trusted",
    ),
    Setting(
        "subagents.types",
        {},
        agent_types,
        "Types of sub-agents, one table `[subagents.types.NAME]` for each: see "
        "[sub-agents](../guides/sub-agents.md). The types of all places count together.",
        "trusted",
        variable=False,
    ),
    Setting(
        "approval.expires_seconds",
        600.0,
        seconds(0.0),
        "How many seconds a call waits for an answer. After this time, haft rejects the call. 0: haft rejects the "
        "call at once.",
        "lower",
    ),
    Setting(
        "approval.four_eyes",
        False,
        truth,
        "Whether somebody else must approve the calls of a person, and those of agents that act for the person. "
        "Remembered answers of a person do not count for the person's own calls, either.",
        "turn-on",
    ),
    Setting(
        "approval.without_sandbox",
        False,
        truth,
        "Whether other processes are allowed to answer prompts on a machine without a sandbox. If you set `true`, "
        "tools on such a machine can approve their own calls.",
        "close",
    ),
    Setting(
        "approval.trusted_clients",
        [],
        texts,
        "Names of MCP clients: over HTTP the names of their tokens, over stdio the names that the clients give "
        "themselves. Through any MCP client, a person can approve a call once. Through a client in this list, a person "
        "can also approve dangerous calls, and calls of tools whose definition has changed.",
        "trusted",
    ),
    Setting(
        "permissions",
        [],
        rule_list,
        "Rules about calls. In each file, the first matching rule applies. A rule has an action for the calls that "
        "it matches: allow, ask, reject, try or delegate. In the file of an untrusted workspace, only rules with "
        "`reject` or `ask` count. A file can have at most 1,000 rules.",
        "adds",
        variable=False,
    ),
    Setting(
        "working_directory",
        ".",
        text,
        "The directory in which tools work. The path is relative to the file with this setting. The directory must "
        "be inside the workspace.",
        "inside",
    ),
    Setting(
        "plugins",
        [],
        plugin_list,
        "The plugins that haft loads. An entry is a text: `bash:PATH`, `bash+git:URL#REF`, `path:PATH`, `python:FILE` "
        "or `MODULE:CLASS`. Or an entry is a table. In the table of a Python plugin, `grant` opens the sandbox of the "
        "plugin's process. `keeps_state = false` says that the plugin keeps no state between calls. Then haft "
        "starts a new process for each call with grants. From the file of an untrusted workspace, haft loads only bash "
        "plugins, and none from git.",
        "adds",
        variable=False,
    ),
    Setting("disabled_plugins", [], texts, "Names of plugins that haft does not load.", "adds"),
    Setting(
        "plugin_cache_dir",
        "",
        text,
        "The directory for downloaded plugins. If this setting is empty, haft uses `~/.local/share/haft/plugins`. If "
        "XDG_CACHE_HOME is set and is not `~/.cache`, haft uses `haft/plugins` in that directory instead.",
        "trusted",
    ),
    Setting(
        "plugin_policy.allow_bash_tools",
        False,
        truth,
        "Whether haft loads bash plugins. Calls of bash plugins run in the sandbox and need approval.",
        "any",
    ),
    Setting(
        "plugin_policy.bash_timeout_seconds",
        60.0,
        seconds(0.001),
        "How many seconds a call of a bash plugin can run.",
        "lower",
    ),
    Setting(
        "plugin_policy.stream_stderr",
        False,
        truth,
        "Whether the output of a bash plugin includes its stderr. haft stores the stderr in both cases.",
        "any",
    ),
    Setting("config", {}, table, "Values that plugins and tools can read by name.", "trusted", variable=False),
    Setting(
        "secrets",
        {},
        secret_sources,
        "Where the values of `${secret:NAME}` come from: a table `[secrets.NAME]` with one of `env` (a variable of the "
        "host), `file` and `command` (a program and its arguments, whose stdout counts), or a list of such tables. "
        "`users` names the people for whom a table counts. Only `[config]` may contain `${secret:NAME}`.",
        "trusted",
        variable=False,
    ),
    Setting(
        "toolbox.paths",
        [],
        texts,
        "Directories of toolbox executables, in addition to `AMP_TOOLBOX` and `.agents/tools`. Paths are relative to "
        "the file with this setting. An untrusted workspace can name only directories inside itself.",
        "adds",
        variable=False,
    ),
    Setting(
        "toolbox.text_separator",
        ": ",
        separator,
        "The text between the name and the value of an argument. haft uses it for toolbox executables that read "
        "their arguments as lines of text. If the setting is `: `, haft detects the separator of each script, and uses "
        "`: ` for a script without a detected separator. If the setting is another text, haft uses this text and "
        "detects nothing. An untrusted workspace can set it only for its own tools.",
        "own-tools",
    ),
    Setting(
        "toolbox.separator",
        {},
        separators,
        "Like `toolbox.text_separator`, but for single tools (by name) or directories (by path). An untrusted "
        "workspace can set it only for its own tools.",
        "own-tools",
        variable=False,
    ),
    Setting(
        "templates.paths",
        [],
        texts,
        "Agent Studio templates, or directories of templates. Paths are relative to the file with this setting. An "
        "untrusted workspace can name only paths inside itself.",
        "adds",
        variable=False,
    ),
    Setting(
        "templates.instances",
        [],
        instance_list,
        "Tools that are made from templates. Each entry has a `name`, the folder of a `template`, and `user_params` "
        "(values that are set once, such as keys). `readonly = true` says that the tool only reads, `cacheable = true` "
        "that equal calls have equal answers. Both count only for templates outside of the workspace. If a template "
        "has such entries, the template itself is not a tool.",
        "adds",
        variable=False,
    ),
    Setting(
        "templates.cold",
        [],
        texts,
        "Names of templates that start a new process for each call. Other templates start faster: haft keeps a "
        "process in which their libraries are already loaded.",
        "adds",
    ),
    Setting(
        "templates.allow_builds",
        False,
        truth,
        "Whether haft is allowed to build packages that have no wheel. Such a build runs code of the package's "
        "authors. `true`: haft builds them for all templates without asking, and `requirements.txt` can also name web "
        "addresses. "
        "`false`: haft builds nothing, and installs only wheels. Not set: for templates outside the workspace, haft "
        "builds them without asking. For templates in the workspace, a build needs approval.",
        "trusted",
    ),
    Setting(
        "cli",
        {},
        tables,
        "Programs that become tools: one table `[cli.NAME]` for each program.",
        "trusted",
        variable=False,
    ),
    Setting(
        "providers",
        {},
        table,
        "MCP servers, one table `[providers.NAME]` for each: see [MCP servers](../guides/mcp-servers.md). Unlike other "
        "settings, the servers of all files count together. `mcpServers` and `external.toolProviders` are other names "
        "of this setting.",
        "trusted",
        variable=False,
    ),
    Setting(
        "server.oidc",
        {},
        oidc,
        "The identity provider with which people sign in to `haft serve http`: `issuer`, `client_id`, `client_secret` "
        'and `groups`, which gives groups their roles, such as `{staff = ["caller"], admins = ["operator"]}`. '
        "`groups_claim` names the claim with the groups, if it is not `groups`. `scopes` is what haft asks for, if it "
        "is not `openid`, `profile` and `email`. A server reads this setting only from your own file. See [people]("
        "../guides/people.md).",
        "trusted",
        variable=False,
    ),
    Setting(
        "server.url",
        "",
        text_or_empty,
        "The address under which people reach `haft serve http`, such as `https://haft.example`, for links in "
        "messages. Without it, links have the address on which the server listens.",
        "trusted",
    ),
    Setting(
        "server.webhooks",
        [],
        webhooks,
        "Programs that `haft serve http` tells what happens: one table `[[server.webhooks]]` for each, with `url`, "
        "`secret`, and, if you want, `name`, `events`, `arguments` and `private`. A server reads this setting only "
        "from your own file. See [webhooks](../guides/webhooks.md).",
        "trusted",
        variable=False,
    ),
    Setting(
        "audit.durability",
        "group",
        one_of("group", "full"),
        "Which records of the audit log a power failure can destroy. `group`: the records of the last 200 ms. "
        "`full`: no records of calls that had ended.",
        "stays-full",
    ),
    Setting(
        "workspaces",
        [],
        served_workspaces,
        "The workspaces of `haft serve http`, one table `[[workspaces]]` for each: `name` and `path`; `users`, the "
        "names of those who may enter it (without it, everyone whose roles allow it); and `limits`, a table of limits "
        "for its calls. Without any, the server has the workspace in which it was started, under the name `default`.",
        "trusted",
        variable=False,
    ),
    Setting(
        "server.drain_seconds",
        30.0,
        seconds(0),
        "How long `haft serve http` lets running calls go on when it is told to end. Then it cancels them.",
        "trusted",
    ),
    Setting(
        "retention.runs_days",
        0,
        whole(0),
        "For how many days haft keeps runs, with their outputs. 0: for ever. Runs that can be undone stay, and so does "
        "the audit log. Only your own configuration file counts.",
        "trusted",
    ),
    Setting(
        "retention.workspaces",
        {},
        days_by_workspace,
        "For how many days haft keeps the runs of single workspaces, by their paths. 0: for ever. Only your own "
        "configuration file counts.",
        "trusted",
        variable=False,
    ),
    Setting(
        "telemetry.traces",
        "auto",
        one_of("auto", "on", "off"),
        "Whether haft sends traces with OpenTelemetry. `auto`: if `telemetry.endpoint` or the variable "
        "`OTEL_EXPORTER_OTLP_ENDPOINT` is set, or if the program that embeds haft has set up OpenTelemetry.",
        "trusted",
    ),
    Setting(
        "telemetry.endpoint",
        "",
        text_or_empty,
        "The address of the OpenTelemetry collector that gets the traces, over OTLP on HTTP, such as "
        "`http://127.0.0.1:4318`. Without it, the variable `OTEL_EXPORTER_OTLP_ENDPOINT` counts.",
        "trusted",
    ),
    Setting(
        "telemetry.content",
        False,
        truth,
        "Whether traces contain arguments and outputs of calls. Secrets are masked in them as in the audit log.",
        "trusted",
    ),
)

BY_NAME: Final[dict[str, Setting]] = {setting.name: setting for setting in SETTINGS}

RENAMED: Final = {"approval.without_walls": "approval.without_sandbox", "record.durability": "audit.durability"}
"""The old names of settings, each with its new name. haft still reads an old name, and logs the new one."""

SYNONYMS: Final = {"mcpServers": "providers", "external.toolProviders": "providers"}
"""Names that other programs use for a setting, each with haft's name."""
