"""Binds the words of a line to the parameters of a tool's schema: which parameter is meant, and which words are values.

This module does not validate the values; the pipeline does, so that one error names all invalid arguments, and is
recorded. A value that does not fit the parameter's type is passed on as text. This module refuses only lines from which
no call can be made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from haft.contracts import BadUsage, near_miss
from haft.surfaces.cli.words.definitions import parameters, type_words, types_of
from haft.surfaces.cli.words.json_input import read_arguments
from haft.surfaces.cli.words.parameters import OPTIONS, VALUED, GapToken, Line, NameToken, Token, WordToken

_BOOLEANS: Final = ("true", "false", "yes", "no", "1", "0")


def arguments(line: Line, tool: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of the call. A parameter given by its name wins over the same key in `--args`."""
    from haft.service import coerce

    hidden = hidden_parameter(line, tool, schema)
    if hidden is not None:
        raise hidden
    given = read_arguments(line.value("--args"))
    for name, texts in _Binding(tool, schema).bind(line.tokens).items():
        try:
            given[name] = coerce(schema, name, texts)
        except ValueError as error:
            if len(texts) > 1:
                raise BadUsage(f"`{tool}` cannot be called like this: {error}") from None
            given[name] = texts[0]
    return given


def hidden_parameter(line: Line, tool: str, schema: Mapping[str, Any]) -> BadUsage | None:
    """The error for an option of haft after the tool's name, if the tool has a parameter of the same name: haft cannot
    know whether the option or the parameter is meant. None if there is no such option on the line."""
    for option, written in line.after_name.items():
        name = declared_as(option, schema)
        if name is not None:
            value = " VALUE" if option in (*VALUED, "--cwd", "--batch") else ""
            own = "" if types_of(parameters(schema)[name], schema) == {"boolean"} else " VALUE"
            return BadUsage(
                f"`{written}` after `{tool}` may mean haft's option or the tool's own parameter",
                hint=f"haft's option: `{line.command} {option}{value} {tool}`; "
                f"the tool's parameter: `{line.command} {tool} -- --{name}{own}`",
            )
    return None


def declared_as(option: str, schema: Mapping[str, Any]) -> str | None:
    """The parameter of a tool with the same name as an option of haft; None if there is none."""
    wanted = option.removeprefix("--").replace("-", "_")
    return next((name for name in parameters(schema) if name.replace("-", "_") == wanted), None)


class _Binding:
    """Binds the tokens of one line to the parameters of one schema."""

    def __init__(self, tool: str, schema: Mapping[str, Any]) -> None:
        self._tool = tool
        self._schema = schema
        self._known = parameters(schema)
        extra = schema.get("additionalProperties", not self._known)
        self._open = extra is not False or "patternProperties" in schema
        """Whether the tool takes parameters that its schema does not name."""

    def bind(self, pieces: Sequence[Token]) -> dict[str, list[str]]:
        """The texts that the line gives for each parameter."""
        texts: dict[str, list[str]] = {}
        rest = list(pieces)
        while rest:
            match rest.pop(0):
                case GapToken():
                    continue
                case WordToken(text):
                    raise self._stray(text)
                case NameToken(given, value):
                    name, negated = self._resolve(given)
                    if negated and value is not None:
                        raise BadUsage(f"`--{given}` takes no value", hint=f"write `--{name}=false`")
                    if negated:
                        value = "false"
                    elif value is None:
                        value = self._following(name, given, rest)
                    texts.setdefault(name, []).append(value)
        return texts

    def _following(self, name: str, given: str, rest: list[Token]) -> str:
        """The value of a parameter that was given as `--name` without `=`: the next word, or `true` for a flag."""
        types = types_of(self._known.get(name, {}), self._schema)
        following = rest[0] if rest else None
        if isinstance(following, WordToken):
            only_boolean = bool(types) and types <= {"boolean", "null"}
            if not only_boolean or following.text.lower() in _BOOLEANS:
                rest.pop(0)
                return following.text
        if not types or "boolean" in types:
            return "true"
        wanted = type_words(self._known[name], self._schema)
        hint = f"write `--{given}=VALUE` for a value that begins with dashes" if rest else None
        raise BadUsage(f"`--{given}` needs a value: {wanted}", hint=hint)

    def _resolve(self, given: str) -> tuple[str, bool]:
        """The parameter that the typed name `given` means, and whether it is negated, as in `--no-flag`."""
        found = self._find(given)
        if found is not None:
            return found, False
        if given.startswith(("no-", "no_")):
            found = self._find(given[3:])
            if found is not None:
                types = types_of(self._known[found], self._schema)
                if not types or "boolean" in types:
                    return found, True
        if self._open:
            return given, False
        raise self._unknown(given)

    def _find(self, given: str) -> str | None:
        if given in self._known:
            return given
        alike = [name for name in self._known if name.replace("-", "_") == given.replace("-", "_")]
        if len(alike) > 1:
            raise BadUsage(
                f"`--{given}` may mean {' or '.join(f'`--{name}`' for name in alike)}", hint="write the exact name"
            )
        return alike[0] if alike else None

    def _unknown(self, given: str) -> BadUsage:
        near = near_miss(f"--{given}", [*(f"--{name}" for name in self._known), *OPTIONS])
        if near is not None:
            hint = f"did you mean `{near}`?"
        elif self._known:
            hint = f"its parameters are {', '.join(f'`--{name}`' for name in self._known)}"
        else:
            hint = "it has no parameters"
        return BadUsage(f"`{self._tool}` has no parameter `--{given[:80]}`", hint=hint)

    def _stray(self, text: str) -> BadUsage:
        first = next(iter(self._schema.get("required") or self._known), None)
        hint = f"give parameters by name: `--{first} VALUE`" if first else "it has no parameters"
        return BadUsage(f"`{text[:80]}` belongs to no parameter of `{self._tool}`", hint=hint)
