"""The variables that a tool names and does not get: by its source files, by its command line, and by its own words."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

from haft.contracts import Call, Confinement, ToolSpec, names_read, names_reported_missing, withheld
from haft.files.tool_source import texts_of


def variables_of(spec: ToolSpec, arguments: Mapping[str, object] | None = None) -> tuple[str, ...]:
    """The variables that a tool reads, as far as its files and the command lines that it is given say so. One that runs
    in this process sees them all, and nothing is withheld from it."""
    if not spec.has_processes:
        return ()
    return tuple(dict.fromkeys(name for text in texts_of(spec, arguments) for name in _read_in(text)))


@functools.lru_cache(maxsize=64)
def _read_in(text: str) -> tuple[str, ...]:
    return names_read(text)


def withheld_from(call: Call, confinement: Confinement, host: Mapping[str, str]) -> tuple[str, ...]:
    """Those that are set here and that this call does not get."""
    assert call.tool is not None
    return withheld(variables_of(call.tool.spec, call.arguments), host, {*confinement.env, *call.env})


def missed_by(
    call: Call, said: str, confinement: Confinement, host: Mapping[str, str], *, failed: bool
) -> tuple[str, ...]:
    """Those that a call seems to have missed: what it complained of; of a call that failed, else what its source
    names."""
    complained = withheld(names_reported_missing(said, host), host, {*confinement.env, *call.env})
    return complained or (withheld_from(call, confinement, host) if failed else ())


def grant_words(names: Sequence[str], tool: str, *, session: bool) -> str:
    """What to type for a tool to get these variables."""
    if session:
        listed = ", ".join(f'"{name}"' for name in names)
        return f"to pass it on: grant = {{env = [{listed}]}} on the plugin's entry in `plugins`"
    options = " ".join(f"--env {name}" for name in names)
    add = (
        f"`haft permissions add allow {tool} {options}` for all calls, without being asked (`add ask`: asked each time)"
    )
    return f"to pass it on: `{options}` with the call, or {add}"


def note(names: Sequence[str], tool: str, *, session: bool, answer: str | None = None) -> str:
    """For the person, about a call that missed them. `answer` is where the remembered answer stands that let it pass
    with grants of its own: rules that do not have these too do not count beside it."""
    told, are = " and ".join(names), "are" if len(names) > 1 else "is"
    how = grant_words(names, tool, session=session)
    if answer is not None:
        how = f"your answer {answer} decides this call, without {told}: `haft permissions remove {answer}`; then, {how}"
    return f"`{tool}` asks for {told}, which {are} set here and {are} withheld from it; {how}"
