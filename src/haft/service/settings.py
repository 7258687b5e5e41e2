"""Every setting there is: its name, its check, its default, and a sentence. The documentation is made from it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from haft.contracts import Limits

Narrowing = Literal["lower", "lower-but-zero-is-none", "stricter", "close", "stays-on", "any"]
"""What a workspace may do to a setting before it is trusted: make it smaller, choose a stricter word, set it to false,
or set it freely."""

WHY_NOT: Final[dict[Narrowing, str]] = {
    "lower": "a workspace may lower limits, not raise them",
    "lower-but-zero-is-none": "a workspace may lower limits, not raise them",
    "stricter": "a workspace may make the sandbox stricter, not looser",
    "stays-on": "a workspace may not choose a weaker way to know its changes",
    "close": "a workspace may close the network, not open it",
}
"""Why a value of a workspace is set aside."""

SandboxMode = Literal["off", "auto", "required"]
SANDBOX_MODES: Final[tuple[SandboxMode, ...]] = get_args(SandboxMode)
"""The loosest first."""

ChangesEngine = Literal["auto", "overlay", "snapshot", "off"]
CHANGES_ENGINES: Final[tuple[ChangesEngine, ...]] = get_args(ChangesEngine)
"""A workspace may not turn it off."""

MOST_WHOLE: Final = 10**18
MOST_SECONDS: Final = 10**9


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting."""

    name: str
    default: Any
    check: Callable[[Any], Any]
    """The value as it is used; `ValueError` with a sentence where it is none."""
    what: str
    narrowing: Narrowing

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
                return bool(value and not than)
            case "any":
                return False


def whole(least: int, *, zero: bool = False) -> Callable[[Any], int]:
    """A whole number, at least `least`; `zero` where 0 means none."""

    def check(value: Any) -> int:
        if isinstance(value, str):
            try:
                value = int(value)
            except ValueError:
                value = None
        none = zero and value == 0
        if not isinstance(value, int) or isinstance(value, bool) or (value < least and not none):
            raise ValueError(f"must be a whole number, at least {least:_}" + (", or 0 for none" if zero else ""))
        if value > MOST_WHOLE:
            raise ValueError(f"must be at most {MOST_WHOLE:_}")
        return value

    return check


def seconds(least: float, *, zero: bool = False) -> Callable[[Any], float]:
    """A number of seconds; `zero` where 0 means none."""

    def check(value: Any) -> float:
        if isinstance(value, str):
            try:
                value = float(value)
            except ValueError:
                value = None
        if not isinstance(value, int | float) or isinstance(value, bool) or not value < float("inf"):
            raise ValueError("must be a number of seconds")
        if value < least and not (zero and value == 0):
            raise ValueError(f"must be at least {least:g} seconds" + (", or 0 for none" if zero else ""))
        if value > MOST_SECONDS:
            raise ValueError(f"must be at most {MOST_SECONDS:_} seconds")
        return float(value)

    return check


def one_of(*choices: str) -> Callable[[Any], str]:
    """One of a few words."""

    def check(value: Any) -> str:
        if value not in choices:
            raise ValueError(f"must be one of {', '.join(choices)}")
        return str(value)

    return check


def truth(value: Any) -> bool:
    """True or false, also as a word."""
    words = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
    if isinstance(value, str) and value.lower() in words:
        return words[value.lower()]
    if not isinstance(value, bool):
        raise ValueError("must be true or false")  # noqa: TRY004  all checks raise the same
    return value


def seconds_by_tool(value: Any) -> dict[str, float]:
    """A table from tool names to seconds."""
    if not isinstance(value, dict):
        raise ValueError("must be a table of tool names and seconds")  # noqa: TRY004  all checks raise the same
    check = seconds(0.001)
    checked = {}
    for name, number in value.items():
        try:
            checked[name] = check(number)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    return checked


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
        truth,
        "Whether confined calls may use the network without a grant.",
        "close",
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
    ),
    Setting(
        "record.durability",
        "group",
        one_of("group", "full"),
        "What power loss may take: `group` up to 200 ms of the record, `full` nothing that was answered.",
        "any",
    ),
)

BY_NAME: Final[dict[str, Setting]] = {setting.name: setting for setting in SETTINGS}
