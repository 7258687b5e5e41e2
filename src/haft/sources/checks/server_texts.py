"""Finds texts of an MCP server that speak to the model instead of describing a tool.

A server's descriptions reach the model before any call. So a server can try to steer the model with them: to use other
tools than the model would, to hide something from the person, to fetch secrets. The check looks for English phrases and
for names of other servers' tools. It finds the usual attempts, not every possible one: it is no protection.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from haft.contracts import Listing, ToolSpec
from haft.lazy import regex
from haft.schema import shortened
from haft.sources.checks.findings import Finding
from haft.sources.checks.hidden import hidden_in, texts_of

MOST_READ: Final = 20_000
"""How many characters of one text are checked."""
MOST_FOUND: Final = 3
"""How many findings of one kind a tool gets."""
LONGEST_SHOWN: Final = 100

_PERSON: Final = r"(?:the |your |any |this )?(?:user|human|person|people|operator|developer)s?"
_OTHER_ORDERS: Final = (
    r"\b(?:ignore|disregard|forget|override|bypass)\b[^.]{0,30}\b(?:previous|prior|above|earlier|other|all|any|system"
    r"|safety|your)\b[^.]{0,30}\b(?:instruction|prompt|rule|message|guideline|polic|direction|context)"
    r"|\byou are (?:now|no longer)\b"
)
_SECRECY: Final = (
    r"(?:\b(?:do not|don['’]t|never|must not|should not|avoid)\b[^.]{0,40}\b(?:tell|telling|inform|informing|mention"
    r"|mentioning|notify|notifying|reveal|revealing|show|showing|warn|alert|ask|asking)\b[^.]{0,40}\b"
    r"|\bwithout (?:telling|informing|asking|notifying|mentioning|the (?:knowledge|approval) of)\b[^.]{0,30}\b"
    r"|\b(?:hide|conceal|keep|secret)\b[^.]{0,30}\bfrom )" + _PERSON
)
_ORDER_OF_TOOLS: Final = (
    r"\b(?:always|must|first|before (?:anything|any|every|all|using))\b[^.]{0,30}\b(?:call|use|invoke|run)\b"
    r"[^.]{0,40}\b(?:first|before (?:any|every|all|using|calling|you|answering|responding)|beforehand)\b"
    r"|\b(?:before|after|instead of) (?:using |calling |running |invoking )?(?:any|every|all)(?: of the)?"
    r"(?: other)? tools?\b"
)
_SECRETS: Final = (
    r"\b(?:read|send|pass|include|provide|attach|copy|put|append)\b[^.]{0,60}(?:~/\.|\.ssh\b|\bid_rsa\b|\.env\b"
    r"|/etc/passwd|\bprivate keys?\b|\bsystem prompt\b|\b(?:whole|entire|full|complete) (?:conversation|chat)\b"
    r"|\bconversation history\b|\bchat history\b)"
)
_OTHER_SPEAKERS: Final = (
    r"</?(?:important|system|instructions?|assistant|user|admin|secret|tool_result|function_results?)\b[^>]{0,20}>"
    r"|\[/?(?:system|inst|assistant|admin)\]|<\|[a-z_]{2,20}\|>|^\W{0,4}(?:system|assistant) ?(?:message|prompt)?:"
)
_INSTRUCTS: Final = regex(
    "|".join((_OTHER_ORDERS, _SECRECY, _ORDER_OF_TOOLS, _SECRETS, _OTHER_SPEAKERS)), re.IGNORECASE | re.MULTILINE
)
_NAME: Final = regex(r"(?<![\w./@-])[A-Za-z][\w-]{2,120}(?![\w/-])")
_ESCAPE: Final = regex(r"\\x([0-9a-f]{2})|\\u([0-9a-f]{4})|\\U(000[0-9a-f]{5})")
_QUOTED: Final = regex(r"[`'\"“]([A-Za-z][\w-]{2,120})[`'\"”]")


def check_server_texts(spec: ToolSpec, others: Iterable[Listing]) -> Iterator[Finding]:
    """Check the texts of one tool of an MCP server. `others` are all listed tools; those of the same server may be
    named."""
    texts = list(_texts(spec))
    yield from islice(_instructions(texts), MOST_FOUND)
    yield from islice(_other_tools(spec, texts, others), MOST_FOUND)
    yield from islice(_hidden(texts), MOST_FOUND)


def _texts(spec: ToolSpec) -> Iterator[tuple[str, str]]:
    own = f"[MCP server {server_of(spec)}] "
    yield "the description", spec.description.removeprefix(own)[:MOST_READ]
    for where, value in (("the parameters", spec.input_schema), ("the output schema", spec.output_schema or {})):
        for place, text in texts_of(where, value):
            yield place, text[:MOST_READ]
    facts: Any = spec.meta.get("mcp")
    definition: Any = facts.get("definition") if isinstance(facts, Mapping) else None
    instructions: Any = definition.get("instructions") if isinstance(definition, Mapping) else None
    if isinstance(instructions, str):
        yield "the instructions of its server", instructions[:MOST_READ]


def _instructions(texts: Sequence[tuple[str, str]]) -> Iterator[Finding]:
    for where, text in texts:
        for match in islice(_INSTRUCTS.finditer(text), 1):
            words = shortened(" ".join(match[0].split()), LONGEST_SHOWN)
            yield Finding(
                "instructs-model",
                f"{where} {_have(where)} words that instruct the model: “{words}”",
                "read the whole text with `haft tools show`; use the server only if you want the model to follow it",
            )


def _hidden(texts: Sequence[tuple[str, str]]) -> Iterator[Finding]:
    """Hidden characters, which haft has replaced by escapes before anyone reads the text."""
    for where, text in texts:
        for match in _ESCAPE.finditer(text):
            for _at, what in hidden_in(chr(int(match[1] or match[2] or match[3], 16))):
                yield Finding(
                    "hidden-characters",
                    f"{where} {_have(where)} {what}, which haft shows as `{match[0]}`",
                    "read the whole text with `haft tools show`: people do not see such a character, and models do",
                )
                break
            else:
                continue
            break


def _other_tools(spec: ToolSpec, texts: Sequence[tuple[str, str]], others: Iterable[Listing]) -> Iterator[Finding]:
    foreign = _foreign_names(spec, others)
    told: set[str] = set()
    for where, text in texts:
        quoted = {match[1] for match in _QUOTED.finditer(text)}
        for match in _NAME.finditer(text):
            word = match[0]
            # A plain word such as `search` is a name only where it is quoted.
            if word in foreign and word not in told and (word in quoted or not word.isalpha() or not word.islower()):
                told.add(word)
                yield Finding(
                    "names-other-tool",
                    f"{where} {_have(where)} the name of a tool of {foreign[word]}: `{shortened(word, LONGEST_SHOWN)}`",
                    "read the whole text with `haft tools show`: a server has no reason to speak about another's tools",
                )


def _foreign_names(spec: ToolSpec, others: Iterable[Listing]) -> Mapping[str, str]:
    """The names of tools that are not of this server, each with whose it is; without the server's own names."""
    own: set[str] = set()
    foreign: dict[str, str] = {}
    server = server_of(spec)
    for listing in others:
        other = listing.spec
        names = {str(other.name), str(other.meta.get("tool", other.name)), str(other.name).rpartition("__")[2]}
        if other.kind == "mcp" and server_of(other) == server:
            own |= names
        elif other.kind == "mcp":
            foreign |= dict.fromkeys(names, f"the MCP server `{server_of(other)}`")
        else:
            foreign[other.name] = "haft" if other.kind == "builtin" else f"another format ({other.kind})"
    return {name: whose for name, whose in foreign.items() if name not in own}


def server_of(spec: ToolSpec) -> str:
    """The name of the MCP server that a tool is of."""
    parts = spec.name.split("__", 2)
    return parts[1] if len(parts) > 1 else ""


def _have(where: str) -> str:
    return "has" if where in ("the description", "the output schema") else "have"
