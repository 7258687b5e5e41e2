"""The environment variables that a tool needs but does not get: found in its source files, its command line, and its
output."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

from haft.contracts import Call, Confinement, ToolSpec, names_read, names_reported_missing, withheld, written_grant
from haft.files.tool_source import texts_of


def variables_of(spec: ToolSpec, arguments: Mapping[str, object] | None = None) -> tuple[str, ...]:
    """The variables that a tool reads, as far as its files and its command lines show. Empty for a tool in the process
    of the host: such a tool sees all variables, so no variable is withheld."""
    if not spec.has_processes:
        return ()
    return tuple(dict.fromkeys(name for text in texts_of(spec, arguments) for name in _read_in(text)))


@functools.lru_cache(maxsize=64)
def _read_in(text: str) -> tuple[str, ...]:
    return names_read(text)


def withheld_from(call: Call, confinement: Confinement, host: Mapping[str, str]) -> tuple[str, ...]:
    """The variables that the call reads, and that are set on the host, but that the call does not get."""
    assert call.tool is not None
    return withheld(variables_of(call.tool.spec, call.arguments), host, {*confinement.env, *call.env})


def missed_by(
    call: Call, said: str, confinement: Confinement, host: Mapping[str, str], *, failed: bool
) -> tuple[str, ...]:
    """The withheld variables that a call seems to have needed: the variables that its output reports as missing. If the
    output reports no variable, and the call failed: the variables that the tool's source reads."""
    complained = withheld(names_reported_missing(said, host), host, {*confinement.env, *call.env})
    return complained or (withheld_from(call, confinement, host) if failed else ())


def grant_words(names: Sequence[str], tool: str, *, entry: str | None) -> str:
    """The hint that tells a person how to pass these variables to a tool. `entry` says where grants are written for a
    process that outlives its calls; None if the tool has no such process."""
    if entry is not None:
        listed = ", ".join(f'"{name}"' for name in names)
        return f"to pass it on: {written_grant('env', f'[{listed}]', entry)}"
    options = " ".join(f"--env {name}" for name in names)
    add = f"`haft permissions add allow {tool} {options}` for all calls, without approval (`add ask`: with approval)"
    return f"to pass it on: `{options}` with the call, or {add}"


def note(names: Sequence[str], tool: str, *, entry: str | None, answer: str | None = None) -> str:
    """The note for the person about a call that did not get the variables it needs. `answer` names the remembered
    answer that allowed the call, if this answer has grants; otherwise it is None. While such an answer exists, a rule
    without these grants has no effect, so the note says how to remove the answer."""
    listed, are = " and ".join(names), "are" if len(names) > 1 else "is"
    how = grant_words(names, tool, entry=entry)
    if answer is not None:
        how = (
            f"your remembered answer {answer} decides this call, without {listed}: "
            f"`haft permissions remove {answer}`; then, {how}"
        )
    return f"`{tool}` needs {listed}, which {are} set here but not passed to it; {how}"
