"""A catalogue as people have it who connect everything: about 2,000 tools of 50 MCP servers.

Names, descriptions and parameters are written as such servers write them: most are operations on the objects of a
service, in the words and the spelling of that server; some tools are peculiar to a server. The same verbs and nouns
come again and again, so that finding one tool needs more than one common word. `many_tools/` has the objects of the
servers, the tools that are peculiar to one, and queries with the tools that answer them.
"""

from pathlib import Path

from haft.contracts import Listing, ToolSpec

VERBS = [
    ("list", "List {items} in {service}. Supports paging and filters.", {"limit": "How many to return"}),
    ("get", "Get one {item} of {service} by its id, with all its fields.", {"{id}": "The id of the {item}"}),
    ("create", "Create a new {item} in {service}.", {"name": "The name of the {item}", "fields": "Further fields"}),
    ("update", "Change fields of an existing {item} in {service}.", {"{id}": "Which {item}", "fields": "The changes"}),
    ("delete", "Delete a {item} from {service}. This cannot be undone.", {"{id}": "Which {item} to delete"}),
    ("search", "Find {items} in {service} by a text query.", {"query": "What to look for", "limit": "How many"}),
    ("export", "Export {items} of {service} as CSV or JSON.", {"format": "csv or json"}),
]


def listings() -> list[Listing]:
    """All tools."""
    made = []
    for line in _lines("servers"):
        head, _, objects = line.partition(" | ")
        server, service, style = head.split()
        service = service.replace("_", " ")
        for thing in objects.split(", "):
            item = _spaced(thing)
            for verb, description, properties in VERBS:
                many = verb in ("list", "search", "export")
                words = [*verb.split(), *(_plural(item) if many else item).split()]
                fill = {"item": item, "items": _plural(item), "service": service, "id": f"{thing}_id"}
                made.append(
                    _listing(
                        server,
                        _spelled(words, style),
                        description.format(**fill),
                        {name.format(**fill): text.format(**fill) for name, text in properties.items()},
                    )
                )
    for line in _lines("tools"):
        head, description, properties = (part.strip() for part in line.split("|"))
        server, name = head.split()
        pairs = (one.split(": ", 1) for one in properties.split("; ") if one)
        made.append(_listing(server, name, description, dict(pairs)))
    return made


def queries() -> list[tuple[str, set[str]]]:
    """What someone types or a model asks for, and the tools that answer it."""
    rows = (line.split(" | ") for line in _lines("queries"))
    return [(query, {f"mcp__{name}" for name in right.split(", ")}) for query, right in rows]


def _lines(name: str) -> list[str]:
    return (Path(__file__).parent / "many_tools" / f"{name}.txt").read_text().splitlines()


def _listing(server: str, name: str, description: str, properties: dict[str, str]) -> Listing:
    schema = {
        "type": "object",
        "properties": {one: {"type": "string", "description": text} for one, text in properties.items()},
    }
    return Listing(ToolSpec(f"mcp__{server}__{name}", "mcp", f"[MCP server {server}] {description}", schema))


def _spaced(name: str) -> str:
    return "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in name).replace("_", " ").strip()


def _plural(words: str) -> str:
    if words.endswith(("s", "x", "ch")):
        return f"{words}es"
    return f"{words[:-1]}ies" if words.endswith("y") and words[-2] not in "aeo" else f"{words}s"


def _spelled(words: list[str], style: str) -> str:
    if style == "camel":
        return words[0] + "".join(word.capitalize() for word in words[1:])
    return ("_" if style == "snake" else "-").join(words)
