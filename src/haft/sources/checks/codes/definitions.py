"""Codes about the parts that every tool has, whatever its format: a name, a description, parameters."""

from __future__ import annotations

from typing import Final

from haft.sources.checks.codes.model import Code

DEFINITIONS: Final = (
    Code(
        "no-name",
        "error",
        "The description has no name.",
        "A tool is called by the name in its description, not by the name of its file. Print a name.",
        "description: Run the tests.",
        "name: run_tests\ndescription: Run the tests.",
    ),
    Code(
        "bad-name",
        "warning",
        "The name cannot be used unchanged.",
        "Names are made of letters, digits, `_` and `-`, and with the prefix `tb__` have at most 64 characters. haft "
        "replaces every other character by `_` and cuts the rest, so callers have to guess the name.",
        "name: run tests!",
        "name: run_tests",
    ),
    Code(
        "name-differs",
        "note",
        "The name in the description is not the name of the file.",
        "haft uses the name in the description. People look for the file by that name, and two copies of a file clash "
        "although their file names differ.",
        "run-tests.sh says `name: test_runner`",
        "test_runner says `name: test_runner`",
    ),
    Code(
        "no-description",
        "error",
        "The tool has no description.",
        "The description is all that an agent knows when it chooses a tool. Say what the tool does, when to use it, "
        "and which constraints it has.",
        "name: run_tests",
        "name: run_tests\ndescription: Run project tests. Use this instead of a shell for tests of this workspace.",
    ),
    Code(
        "unchanged-template",
        "warning",
        "The description is still the one of the template.",
        "`haft tools make` writes a tool that works at once: it prints the first lines of a file. The description was "
        "not changed, so agents believe that the tool prints the first lines of a file.",
        "name: run_tests\ndescription: Print the first lines of a text file.\n…",
        "name: run_tests\ndescription: Run project tests. Use this instead of a shell for tests of this workspace.",
    ),
    Code(
        "vague-description",
        "warning",
        "The description does not say what the tool is for.",
        "An agent cannot choose a tool by it. A good description begins with a verb and says what the tool does to "
        "what, then when or why to use it rather than something else, then constraints and safety. The check finds "
        "too few words, a bare noun, and words such as `stuff` or `things`; it does not judge what a sentence means.",
        "Do stuff with the database",
        "Query the development PostgreSQL database. Safer than raw psql commands.",
    ),
    Code(
        "description-without-use",
        "note",
        "The description only says what the tool does.",
        "It does not say when to use the tool rather than an alternative, and has no constraint or safety "
        "note. A second sentence is usually enough.",
        "Render the architecture diagrams of this repository as SVG files",
        "Render the architecture diagrams of this repository as SVG files. Use it after every change to docs/diagrams.",
    ),
    Code(
        "parameter-undescribed",
        "warning",
        "Parameters have no description.",
        "A name and a type rarely tell which values make sense. Say what the parameter is, its unit or form, and what "
        "happens without it.",
        "path: string",
        "path: string the file to read, relative to the workspace",
    ),
    Code(
        "parameter-hidden",
        "warning",
        "One of haft's own options hides a parameter.",
        "On the command line, `haft tools use NAME --timeout 5` sets haft's deadline and not the tool's parameter. "
        "The parameter can still be given after a bare `--` or with `--args`. Another name avoids this. Agents are not "
        "affected: they pass arguments by name.",
        "timeout: number seconds to wait for the server",
        "server_timeout: number seconds to wait for the server",
    ),
    Code(
        "duplicate-parameter-names",
        "error",
        "Two parameters have the same name.",
        "Only the last one counts; the other is lost without a message. Give each parameter its own name.",
        "path: string the source\npath: string the target",
        "source: string the file to copy\ntarget: string where to copy it",
    ),
    Code(
        "no-type",
        "warning",
        "Parameters have no type.",
        "Without a type, haft passes any value, or assumes a string. Begin with one of string, boolean, number, "
        "integer, array, object; in Python, annotate.",
        "count: how many lines",
        "count: integer how many lines",
    ),
    Code(
        "schema-error",
        "error",
        "The input schema is not valid.",
        "The input schema must be valid JSON Schema of the type `object`. haft cannot check calls by an invalid "
        "schema, so the tool is not offered.",
        '{"type": "object", "properties": {"n": {"type": "int"}}}',
        '{"type": "object", "properties": {"n": {"type": "integer"}}}',
    ),
    Code(
        "schema-excess",
        "error",
        "The input schema is too complex.",
        "It is nested too deeply, has too many parts, or its references expand to more checks than a call can wait "
        "for. Describe the parameters more simply; check details inside the tool.",
        '{"$ref": "#/$defs/a"} where a refers twice to b, b twice to c, …',
        '{"type": "object", "properties": {"rows": {"type": "array", "items": {"type": "object"}}}}',
    ),
    Code(
        "text-with-structures",
        "warning",
        "A tool in the text form takes arrays or objects.",
        "Text tools get one line for each parameter, so an array or object arrives as a line of JSON that the script "
        "must parse itself. Describe the tool in JSON: it then gets one JSON object on stdin.",
        "files: array the files to format",
        '{"name": "format", "args": {"files": ["array", "the files to format"]}, …}',
    ),
    Code(
        "equals-input",
        "note",
        "The script reads `key=value`, which is not the protocol.",
        "Parameters come as `key: value`. This script splits its input at `=`, so haft sends it "
        "`key=value`; other hosts may not. If the script splits at the first colon, it works everywhere. The setting "
        "`toolbox.separator` also sets the separator of a tool or directory.",
        "while IFS='=' read -r key value; do …",
        "while IFS=': ' read -r key value; do …",
    ),
    Code(
        "separator-unclear",
        "warning",
        "The script does not show whether it reads `key: value` or `key=value`.",
        "It splits text at `=`, and haft cannot tell whether this text is its input. haft sends it `key: value`, as "
        "the protocol says. If that is wrong, set `toolbox.separator` for this tool or its directory; if it is right, "
        "the same setting ends this warning.",
        "while IFS=: read -r key value; do …; done\nwhile IFS== read -r key value; do …; done",
        "while IFS=': ' read -r key value; do …; done",
    ),
)
