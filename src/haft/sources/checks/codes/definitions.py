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
        "A name consists of letters, digits, `_` and `-`, and has at most 64 characters, including the prefix `tb__`. "
        "haft puts `_` in place of each forbidden character, and cuts a name that is too long. So callers have to "
        "guess the name.",
        "name: run tests!",
        "name: run_tests",
    ),
    Code(
        "name-differs",
        "note",
        "The name in the description is not the name of the file.",
        "haft uses the name in the description. People who know this name do not find the file. And if you copy the "
        "file under another file name, both copies still give the same name, and only one of them is loaded.",
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
        "The description is still the one that `haft tools make` wrote.",
        "`haft tools make` writes a tool that works at once: it prints the first lines of a file. Your tool still has "
        "the description of that tool, so agents believe that your tool prints the first lines of a file.",
        "name: run_tests\ndescription: Print the first lines of a text file.\n…",
        "name: run_tests\ndescription: Run project tests. Use this instead of a shell for tests of this workspace.",
    ),
    Code(
        "vague-description",
        "warning",
        "The description does not say what the tool is for.",
        "An agent cannot choose a tool by a vague description. A good description begins with a verb and says what the "
        "tool does, and to what; then when or why to use the tool rather than something else; then its constraints and "
        "its safety. The check finds too few words, a bare noun, and words such as `stuff` or `things`. It does not "
        "judge what a sentence means.",
        "Do stuff with the database",
        "Query the development PostgreSQL database. Safer than raw psql commands.",
    ),
    Code(
        "description-without-use",
        "note",
        "The description only says what the tool does.",
        "The description does not say when to use the tool rather than an alternative, and names no constraint and "
        "nothing about safety. A second sentence is usually enough.",
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
        "A parameter has the name of one of haft's own options.",
        "If a tool has a parameter `timeout`, haft refuses `haft tools use NAME --timeout 5`, because `--timeout` is "
        "also haft's own option for the deadline. Callers must write the parameter after a bare `--`, or pass it with "
        "`--args`; haft's option goes before NAME. Another name avoids this. Agents are not affected: they never write "
        "options of haft.",
        "timeout: number seconds to wait for the server",
        "server_timeout: number seconds to wait for the server",
    ),
    Code(
        "duplicate-parameter-names",
        "error",
        "Two parameters have the same name.",
        "haft uses only the last parameter of that name, and drops the other one without a message. Give each "
        "parameter its own name.",
        "path: string the source\npath: string the target",
        "source: string the file to copy\ntarget: string where to copy it",
    ),
    Code(
        "no-type",
        "warning",
        "Parameters have no type.",
        "For a parameter without a type, haft passes any value, or assumes a string. Begin the parameter's description "
        "with `string`, `boolean`, `number`, `integer`, `array` or `object`; in Python, annotate the parameter.",
        "count: how many lines",
        "count: integer how many lines",
    ),
    Code(
        "schema-error",
        "error",
        "The input schema is not valid.",
        "The input schema must be valid JSON Schema of the type `object`. haft cannot validate calls against an "
        "invalid schema, so agents do not get the tool.",
        '{"type": "object", "properties": {"n": {"type": "int"}}}',
        '{"type": "object", "properties": {"n": {"type": "integer"}}}',
    ),
    Code(
        "schema-excess",
        "error",
        "The input schema is too complex.",
        "The schema is nested too deeply, has too many parts, or has references that expand to so many checks that a "
        "call would wait too long. Describe the parameters more simply, and check details inside the tool.",
        '{"$ref": "#/$defs/a"} where a refers twice to b, b twice to c, …',
        '{"type": "object", "properties": {"rows": {"type": "array", "items": {"type": "object"}}}}',
    ),
    Code(
        "text-with-structures",
        "warning",
        "A tool in the text form takes arrays or objects.",
        "A tool in the text form gets one line for each parameter. So an array or an object arrives as a line of JSON, "
        "and the script must parse it. Describe the tool in JSON instead: then it gets all arguments as one JSON "
        "object on stdin.",
        "files: array the files to format",
        '{"name": "format", "args": {"files": ["array", "the files to format"]}, …}',
    ),
    Code(
        "equals-input",
        "note",
        "The script reads `key=value`, which is not the protocol.",
        "The protocol passes parameters as `key: value`. This script splits its input at `=`, so haft sends it "
        "`key=value`; other agents may send `key: value`. Split at the first colon instead: haft then sends `key: "
        "value`, and the script works everywhere. If haft is wrong about the script, the setting `toolbox.separator` "
        "names the separator for a tool or a directory.",
        "while IFS='=' read -r key value; do …",
        "while IFS=': ' read -r key value; do …",
    ),
    Code(
        "separator-unclear",
        "warning",
        "The script does not show whether it reads `key: value` or `key=value`.",
        "The script splits some text at `=`, and haft cannot see whether this text is the script's input. haft sends "
        "`key: value`, as the protocol says. The setting `toolbox.separator`, for this tool or its directory, ends "
        "this warning: set it to `=` if the script reads `key=value`, and to `: ` if it does not.",
        "while IFS=: read -r key value; do …; done\nwhile IFS== read -r key value; do …; done",
        "while IFS=': ' read -r key value; do …; done",
    ),
)
