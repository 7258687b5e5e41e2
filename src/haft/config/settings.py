"""Every setting there is: its name, its check, its default, and a sentence. The documentation is made from it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal, get_args

from haft.config.values import (
    instance_list,
    network,
    one_of,
    plugin_list,
    provider_tables,
    rule_list,
    seconds,
    seconds_by_tool,
    separator,
    separators,
    table,
    tables,
    text,
    texts,
    truth,
    whole,
)
from haft.contracts import Limits
from haft.values import dataclass

Narrowing = Literal[
    "lower",
    "lower-but-zero-is-none",
    "stricter",
    "close",
    "turn-off",
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
"""What a workspace may do to a setting before it is trusted: make it smaller, choose a stricter word, set it to false,
add to a list that narrows, add what is confined, nothing at all, set it for its own tools, or
set it freely."""

WHY_NOT: Final[dict[Narrowing, str]] = {
    "lower": "a workspace may lower limits, not raise them",
    "lower-but-zero-is-none": "a workspace may lower limits, not raise them",
    "stricter": "a workspace may make the sandbox stricter, not looser",
    "stays-on": "a workspace may not choose a weaker way to know its changes",
    "close": "a workspace may close the network, not open it",
    "turn-off": "a workspace may turn this off, not on",
    "stays-full": "a workspace may not choose a weaker audit log",
    "keeps-less": "a workspace may keep less between calls, not more",
    "inside": "a workspace works inside itself",
    "confined": "a workspace may add tools that are confined, and this would not be",
    "trusted": "a workspace may not set this",
    "own-tools": "it counts for the workspace's own tools, not for yours",
}
"""Why a value of a workspace is set aside, unless it is trusted."""

RULE_ASIDE: Final = "a workspace may reject and ask, not allow, try or delegate"
GRANT_ASIDE: Final = "a workspace may not open the sandbox"
FROM_ENVIRONMENT: Final = "a workspace may not read the environment"

SandboxMode = Literal["off", "auto", "required"]
SANDBOX_MODES: Final[tuple[SandboxMode, ...]] = get_args(SandboxMode)
"""The loosest first."""

SCRATCH_KEPT: Final = ("thread", "call")
"""How long `/tmp` lives."""

ChangesEngine = Literal["auto", "overlay", "snapshot", "off"]
CHANGES_ENGINES: Final[tuple[ChangesEngine, ...]] = get_args(ChangesEngine)
"""A workspace may not turn it off."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting."""

    name: str
    default: Any
    check: Callable[[Any], Any]
    """The value as it is used; `ValueError` with a sentence where it is none."""
    what: str
    narrowing: Narrowing
    variable: bool = True
    """Whether a variable of the environment may set it."""

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
                return _openness(value) > _openness(than)
            case "turn-off":
                return bool(value and not than)
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


def _openness(value: bool | str) -> int:
    return 0 if value == "never" else 1 + bool(value)


_LIMITS: Final = Limits()

SETTINGS: Final[tuple[Setting, ...]] = (
    Setting(
        "limits.max_output_bytes",
        _LIMITS.max_output_bytes,
        whole(0),
        "How much of a call's output its outcome shows: head and tail. The whole is kept.",
        "lower",
    ),
    Setting(
        "limits.max_kept_output_bytes",
        _LIMITS.max_kept_output_bytes,
        whole(1000),
        "How much of a call's output is kept on disk; of more, head and tail.",
        "lower",
    ),
    Setting(
        "limits.max_seconds",
        _LIMITS.max_seconds,
        seconds(0.001),
        "How long a call may be in progress. A value that is set is a cap; the default gives way to a call's own.",
        "lower",
    ),
    Setting(
        "limits.max_idle_seconds",
        _LIMITS.max_idle_seconds,
        seconds(0.001, zero=True),
        "How long a call may go without output or progress; 0: as long as it likes.",
        "lower-but-zero-is-none",
    ),
    Setting(
        "limits.max_concurrent",
        _LIMITS.max_concurrent,
        whole(1),
        "How many calls of one host are in progress at once; others are queued.",
        "lower",
    ),
    Setting(
        "limits.max_file_bytes",
        _LIMITS.max_file_bytes,
        whole(0),
        "The largest file that the built-in file tools read whole or write.",
        "lower",
    ),
    Setting(
        "limits.max_files_per_call",
        _LIMITS.max_files_per_call,
        whole(1, zero=True),
        "How many files one call of a built-in file tool may write; 0: any number.",
        "lower-but-zero-is-none",
    ),
    Setting(
        "limits.memory_bytes",
        _LIMITS.memory_bytes,
        whole(1_000_000, zero=True),
        "How much resident memory a call's processes may use together; 0: as much as there is.",
        "lower-but-zero-is-none",
    ),
    Setting(
        "limits.max_processes",
        _LIMITS.max_processes,
        whole(2, zero=True),
        "How many processes a call may have at one time; 0: any number.",
        "lower-but-zero-is-none",
    ),
    Setting(
        "limits.cpu_seconds",
        _LIMITS.cpu_seconds,
        seconds(0.1, zero=True),
        "How much processor time a call's processes may use together; 0: as much as they like.",
        "lower-but-zero-is-none",
    ),
    Setting(
        "limits.max_written_bytes",
        _LIMITS.max_written_bytes,
        whole(1000, zero=True),
        "How many bytes a call's processes may write to disk; 0: any number.",
        "lower-but-zero-is-none",
    ),
    Setting(
        "limits.max_written_file_bytes",
        _LIMITS.max_written_file_bytes,
        whole(1000, zero=True),
        "The largest file that a call's processes may write; 0: any size.",
        "lower-but-zero-is-none",
    ),
    Setting(
        "limits.max_changed_files",
        _LIMITS.max_changed_files,
        whole(1, zero=True),
        "How many files a call may make or change, where it makes many; 0: any number.",
        "lower-but-zero-is-none",
    ),
    Setting(
        "limits.max_open_files",
        _LIMITS.max_open_files,
        whole(64),
        "How many files one process of a call may hold open.",
        "lower",
    ),
    Setting(
        "sandbox.mode",
        "auto",
        one_of(*SANDBOX_MODES),
        "`auto` confines calls as well as this machine can, `required` refuses those that it cannot confine, "
        "`off` confines none.",
        "stricter",
    ),
    Setting(
        "sandbox.network",
        False,
        network,
        "Whether confined calls may use the network without a grant. `never`: no flag, rule or answer opens it, no "
        "other source loosens it, and where a machine cannot close it, calls are refused. It is not for what haft "
        "itself fetches: plugins, and packages of templates.",
        "close",
    ),
    Setting(
        "sandbox.scratch",
        "thread",
        one_of(*SCRATCH_KEPT),
        "How long `/tmp` lives: `thread` keeps it for the next calls of the same thread, until nobody has used it for "
        "a day; `call` removes it with each call. Calls that pass without approval always have an empty one of their "
        "own, and so have calls with network, unless `scratch` is granted to them too.",
        "keeps-less",
    ),
    Setting(
        "changes.engine",
        "auto",
        one_of(*CHANGES_ENGINES),
        "How changes are known: `overlay` above the workspace, `snapshot` by looking at all of it before and after, "
        "`auto` the first that this machine can, `off` not at all, and nothing can be undone.",
        "stays-on",
    ),
    Setting(
        "changes.store_bytes",
        10_000_000_000,
        whole(1_000_000),
        "How much disk may be used to keep what calls replaced; older runs can then no longer be undone.",
        "lower",
    ),
    Setting(
        "changes.store_days",
        90,
        whole(1),
        "For how many days what calls replaced is kept.",
        "lower",
    ),
    Setting(
        "tools.timeout",
        {},
        seconds_by_tool,
        "Deadlines of single tools in seconds, by name; they stand in for `limits.max_seconds`.",
        "any",
        variable=False,
    ),
    Setting(
        "tools.disable",
        [],
        texts,
        "Tools that cannot be called: names, where `*` is anything, or `KIND:` and a name, such as `mcp:*`. What one "
        "source disables, no other enables.",
        "adds",
    ),
    Setting(
        "tools.enable",
        [],
        texts,
        "A closed list, of the same form: other tools cannot be called. Empty: no such list. A tool must be on the "
        "list of every source that has one.",
        "adds",
    ),
    Setting(
        "subagents.enabled",
        False,
        truth,
        "Not yet: this version has no sub-agents. Whether there is the tool `task`, which gives work to a sub-agent.",
        "turn-off",
    ),
    Setting("subagents.model", "", text, "Not yet: the model of sub-agents.", "trusted"),
    Setting(
        "subagents.base_url",
        "",
        text,
        "Not yet: where the model is reached, for endpoints that speak OpenAI's way.",
        "trusted",
    ),
    Setting(
        "approval.expires_seconds",
        600.0,
        seconds(0.0),
        "How long a call waits for a person; 0: not at all. Then it is rejected.",
        "lower",
    ),
    Setting(
        "approval.without_sandbox",
        False,
        truth,
        "Whether other processes may answer where nothing hides the inbox from tools, which could approve themselves.",
        "close",
    ),
    Setting(
        "permissions",
        [],
        rule_list,
        "Rules, in order: each says of calls whether to allow, ask, reject, try or delegate. A workspace may reject "
        "and ask; the rest of its rules counts when it is trusted. At most 1,000 in one file.",
        "adds",
        variable=False,
    ),
    Setting(
        "working_directory",
        ".",
        text,
        "The directory that tools work in, relative to the file, inside the workspace.",
        "inside",
    ),
    Setting(
        "plugins",
        [],
        plugin_list,
        "Plugins: `bash:` and a path, or a table, with `grant` for a Python plugin's process and `keeps_state = false` "
        "where any process may answer its calls. Those of all sources "
        "count; a workspace's bash plugins at once, its others when it is trusted.",
        "adds",
        variable=False,
    ),
    Setting("disabled_plugins", [], texts, "Names of plugins that are not loaded.", "adds"),
    Setting("plugin_cache_dir", "", text, "Where plugins of other places are kept.", "trusted"),
    Setting(
        "plugin_policy.allow_bash_tools",
        False,
        truth,
        "Whether bash plugins are loaded. They run in the sandbox, and ask.",
        "any",
    ),
    Setting(
        "plugin_policy.bash_timeout_seconds",
        60.0,
        seconds(0.001),
        "How long a bash plugin's `run` may take.",
        "lower",
    ),
    Setting(
        "plugin_policy.stream_stderr",
        False,
        truth,
        "Whether what a bash plugin writes to stderr is part of its output. It is kept in any case.",
        "any",
    ),
    Setting("config", {}, table, "Values that plugins and tools ask for by name.", "trusted", variable=False),
    Setting(
        "toolbox.paths",
        [],
        texts,
        "Directories of toolbox executables, besides AMP_TOOLBOX and `.agents/tools`; relative to the file. Those "
        "of all sources count; a workspace may name its own.",
        "adds",
        variable=False,
    ),
    Setting(
        "toolbox.text_separator",
        ": ",
        separator,
        "What stands between name and value for toolbox executables that take text. A workspace "
        "that is not trusted sets it for its own tools alone.",
        "own-tools",
    ),
    Setting(
        "toolbox.separator",
        {},
        separators,
        "The same for single tools, by name, and for directories, by path. A workspace that is not trusted sets it "
        "for its own tools alone.",
        "own-tools",
        variable=False,
    ),
    Setting(
        "templates.paths",
        [],
        texts,
        "Directories of Agent Studio templates, or templates themselves; relative to the file. Those of all sources "
        "count; a workspace may name its own.",
        "adds",
        variable=False,
    ),
    Setting(
        "templates.instances",
        [],
        instance_list,
        "Tools that are made of templates: a `name`, the folder of the `template`, and its `user_params`. A template "
        "with instances is no tool by itself.",
        "adds",
        variable=False,
    ),
    Setting(
        "templates.cold",
        [],
        texts,
        "Names of templates that are started anew for each call, instead of answering from a process that has loaded "
        "their libraries.",
        "adds",
    ),
    Setting(
        "templates.allow_builds",
        False,
        truth,
        "Whether requirements of templates may be built from source, and fetched from addresses. Where it is not set, "
        "packages without a wheel are built for your own templates, and after a question for those of a workspace; "
        "`false` installs wheels only.",
        "trusted",
    ),
    Setting("cli", {}, tables, "Command lines that are offered as tools, by name.", "trusted", variable=False),
    Setting(
        "providers",
        {},
        provider_tables,
        "Not yet: MCP servers, by name. `grant` says what the process of one may reach, with the keys of a rule's"
        " `grant`. This version checks the tables and starts no server.",
        "trusted",
        variable=False,
    ),
    Setting(
        "audit.durability",
        "group",
        one_of("group", "full"),
        "What power loss may take: `group` up to 200 ms of the audit log, `full` nothing that was answered.",
        "stays-full",
    ),
)

BY_NAME: Final[dict[str, Setting]] = {setting.name: setting for setting in SETTINGS}

RENAMED: Final = {"approval.without_walls": "approval.without_sandbox", "record.durability": "audit.durability"}
"""Names of earlier versions: they are still read, and whoever uses one is told the new one."""
