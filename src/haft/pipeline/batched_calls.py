"""The calls of a batch as a caller writes them: reads them, and refuses mistakes before anything runs.

A mistake in the list as a whole (a wrong shape, an id that occurs twice, an `after` that names no earlier call) is an
error of the batch. An unknown tool or wrong arguments are errors of one call, and its run reports them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from haft.contracts import BadUsage, HaftError, InvalidArguments, near_miss, own_copy, read_claim
from haft.values import dataclass

KEYS: Final = ("id", "tool", "args", "after", "timeout", "claim")
SYNONYMS: Final = {"name": "tool", "arguments": "args", "input": "args", "depends_on": "after", "needs": "after"}
"""What other programs call these keys."""
MOST_CALLS: Final = 1_000
LONGEST_ID: Final = 100
SHAPE: Final = '{"id": …, "tool": …, "args": {…}, "after": […], "timeout": …}'


@dataclass(frozen=True, slots=True)
class BatchedCall:
    """One call of a batch."""

    id: str
    """The caller's name for the call; the number of the call in the list, counted from 1, if the caller gave none."""
    tool: str
    arguments: Mapping[str, Any]
    after: tuple[str, ...] = ()
    """The calls that must have ended with success before this call starts."""
    timeout: float | None = None
    claim: str | None = None
    """Why the caller makes the call, in its own words."""
    refusal: HaftError | None = None
    """Why the call fails although the tool may exist: a surface does not offer it."""


def read_calls(given: Iterable[Any]) -> tuple[BatchedCall, ...]:
    """The calls of a batch: each is a table with the keys `KEYS`, or a pair of a tool and its arguments. Raises
    `BadUsage` if the list is wrong."""
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise BadUsage("a batch is a list of calls", hint=f"a call is {SHAPE}; `tool` is required")
    calls: list[BatchedCall] = []
    seen: dict[str, int] = {}
    for number, each in enumerate(given, 1):
        if number > MOST_CALLS:
            raise BadUsage(f"a batch has at most {MOST_CALLS:,} calls", hint="make several batches")
        call = each if isinstance(each, BatchedCall) else _read(number, each)
        if call.id in seen:
            raise BadUsage(
                f"the calls {seen[call.id]} and {number} have the same id `{call.id}`",
                hint="give each call an id of its own; the id of a call without `id` is its number in the list",
            )
        seen[call.id] = number
        calls.append(call)
    for number, call in enumerate(calls, 1):
        for name in call.after:
            _check_after(number, call, name, seen)
    return tuple(calls)


def _read(number: int, given: Any) -> BatchedCall:
    where = f"call {number}"
    if isinstance(given, tuple | list) and len(given) == 2 and isinstance(given[0], str):
        given = {"tool": given[0], "args": given[1]}
    if not isinstance(given, Mapping):
        raise BadUsage(f"{where} is {_kind(given)}, and must be a table", hint=f"a call is {SHAPE}; `tool` is required")
    for key in given:
        if key not in KEYS:
            near = SYNONYMS.get(key) or near_miss(str(key), KEYS)
            hint = f"did you mean `{near}`?" if near else f"the keys are {', '.join(KEYS)}"
            raise BadUsage(f"{where} has an unknown key `{key}`", hint=hint)
    tool, arguments = given.get("tool"), given.get("args")
    if not isinstance(tool, str) or not tool:
        raise BadUsage(f"{where} has no `tool`" if tool is None else f"{where}: `tool` must be the name of a tool")
    if not isinstance(arguments, Mapping | None):
        raise BadUsage(f"{where}: `args` must be a table of names and values, not {_kind(arguments)}")
    try:
        arguments = own_copy(arguments or {})
    except InvalidArguments:
        raise BadUsage(f"{where}: `args` is nested too deeply") from None
    return BatchedCall(
        _id(number, given.get("id")),
        tool,
        arguments,
        _after(where, given.get("after")),
        given.get("timeout"),
        _claim(where, given.get("claim")),
    )


def _claim(where: str, given: Any) -> str | None:
    try:
        return read_claim(given)
    except BadUsage as error:
        raise BadUsage(f"{where}: {error.message}") from None


def _id(number: int, given: Any) -> str:
    if given is None:
        return str(number)
    if isinstance(given, int) and not isinstance(given, bool):
        given = str(given)
    if not isinstance(given, str) or not 0 < len(given) <= LONGEST_ID or not given.isprintable():
        raise BadUsage(f"call {number}: `id` must be a text of 1 to {LONGEST_ID} printable characters")
    return given


def _after(where: str, given: Any) -> tuple[str, ...]:
    if given is None:
        return ()
    listed = [given] if isinstance(given, str | int) and not isinstance(given, bool) else given
    if not isinstance(listed, list | tuple) or not all(
        isinstance(each, str | int) and not isinstance(each, bool) for each in listed
    ):
        raise BadUsage(f"{where}: `after` must be a list of ids of earlier calls")
    return tuple(dict.fromkeys(map(str, listed)))


def _check_after(number: int, call: BatchedCall, name: str, seen: Mapping[str, int]) -> None:
    if name == call.id:
        raise BadUsage(f"call {number}: `after` names the call itself, `{name}`")
    at = seen.get(name)
    if at is None:
        near = near_miss(name, seen)
        raise BadUsage(
            f"call {number}: `after` names `{name}`, and no call has this id",
            hint=f"did you mean `{near}`?" if near else f"the ids are {', '.join([*seen][:10])}",
        )
    if at > number:
        raise BadUsage(
            f"call {number}: `after` names `{name}`, which comes later, as call {at}",
            hint="a call can only wait for calls before it in the list: change their order",
        )


def _kind(value: Any) -> str:
    name = type(value).__name__
    return "null" if value is None else f"an `{name}`" if name[0] in "aeiou" else f"a `{name}`"
