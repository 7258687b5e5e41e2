"""The words of a project, and what they mean. A Python plugin: one class, whose tools share what `init` returns."""

import difflib
import json
from pathlib import Path


class Glossary:
    def init(self, config):
        return {"path": config.get("glossary_file", "glossary.json"), "asked": []}

    def get_tool_schemas(self, state):
        term = {"type": "string", "minLength": 1, "description": "The word or abbreviation."}
        return [
            {
                "name": "explain_term",
                "description": "What a word of this project means. Use this before you guess at an abbreviation.",
                "parameters": {"properties": {"term": term}, "required": ["term"]},
            },
            {
                "name": "list_terms",
                "description": "All words of this project's glossary, in their order, or only those with a prefix.",
                "parameters": {
                    "properties": {"prefix": {"type": "string", "description": "How the words begin. Default: any."}},
                },
            },
        ]

    def execute_tool(self, name, arguments, state):
        path = Path(state["path"])
        if not path.is_file():
            raise FileNotFoundError(f"there is no glossary {path}")
        terms = json.loads(path.read_text())
        if name == "list_terms":
            return sorted(each for each in terms if each.lower().startswith(arguments.get("prefix", "").lower()))
        term = arguments["term"].strip()
        for each, meaning in terms.items():
            if each.lower() == term.lower():
                return {"term": each, "meaning": meaning}
        near = difflib.get_close_matches(term, terms, n=2, cutoff=0.6)
        hint = f"; perhaps {' or '.join(near)}" if near else ""
        raise LookupError(f"the glossary has no {term!r}{hint}")
