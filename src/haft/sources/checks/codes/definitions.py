"""Codes about the parts that every tool has, whatever its format: a name, a description, parameters."""

from __future__ import annotations

from typing import Final

from haft.sources.checks.codes.model import Code

DEFINITIONS: Final = (
    Code(
        "no-name",
        "error",
        "The description of the tool contains no name.",
        "Callers use the name in the tool's description, not the name of the file. Print a name.",
        "description: Run the tests.",
        "name: run_tests\ndescription: Run the tests.",
    ),
    Code(
        "bad-name",
        "warning",
        "The name of the tool has forbidden characters or is too long.",
        "A name consists of letters, digits, `_` and `-`. It has at most 64 characters, including the prefix `tb__`. "
        "haft replaces each forbidden character by `_`, and shortens a name that is too long. So callers have to "
        "guess the name.",
        "name: run tests!",
        "name: run_tests",
    ),
    Code(
        "name-differs",
        "note",
        "The name in the description differs from the name of the file.",
        "haft uses the name in the description. A person who knows only this name does not find the file. If you "
        "copy the file, both copies describe themselves with the same name, and haft loads only one of them.",
        "run-tests.sh says `name: test_runner`",
        "test_runner says `name: test_runner`",
    ),
    Code(
        "no-description",
        "error",
        "The tool has no description.",
        "The description is all that an agent knows when it chooses a tool. Say what the tool does, when to use the "
        "tool, and which constraints the tool has.",
        "name: run_tests",
        "name: run_tests\ndescription: Run project tests. Use this instead of a shell for tests of this workspace.",
    ),
    Code(
        "unchanged-template",
        "warning",
        "The description is still the text that `haft tools make` wrote.",
        "`haft tools make` writes an example tool, which prints the first lines of a file. Your tool still has the "
        "description of this example. So agents believe that your tool prints the first lines of a file.",
        "name: run_tests\ndescription: Print the first lines of a text file.\n…",
        "name: run_tests\ndescription: Run project tests. Use this instead of a shell for tests of this workspace.",
    ),
    Code(
        "vague-description",
        "warning",
        "The description does not say what the tool is for.",
        "An agent cannot choose a tool by a vague description. A good description begins with a verb and says what "
        "the tool does. Then it says when to use the tool, and which constraints the tool has. haft reports a "
        "description that has too few words, that is only a noun, or that has words such as `stuff` or `things`. "
        "haft does not judge the meaning of a description.",
        "Do stuff with the database",
        "Query the development PostgreSQL database. Safer than raw psql commands.",
    ),
    Code(
        "description-without-use",
        "note",
        "The description says only what the tool does, not when to use it.",
        "Say when to use this tool instead of another tool, name a constraint, or say something about safety. One "
        "more sentence is usually enough.",
        "Render the architecture diagrams of this repository as SVG files",
        "Render the architecture diagrams of this repository as SVG files. Use it after every change to docs/diagrams.",
    ),
    Code(
        "parameter-undescribed",
        "warning",
        "Parameters have no description.",
        "From a name and a type, an agent rarely knows which values make sense. Say what the parameter means, which "
        "unit or format it has, and what happens without it.",
        "path: string",
        "path: string the file to read, relative to the workspace",
    ),
    Code(
        "parameter-hidden",
        "warning",
        "A parameter has the name of one of haft's own options.",
        "For example, a tool has a parameter `timeout`. haft has an option `--timeout` too, so it refuses `haft "
        "tools use NAME --timeout 5`. Callers must write the parameter after a bare `--`, or pass it with `--args`. "
        "Another name for the parameter avoids this problem. Agents are not affected, because they never write "
        "options of haft.",
        "timeout: number seconds to wait for the server",
        "server_timeout: number seconds to wait for the server",
    ),
    Code(
        "duplicate-parameter-names",
        "error",
        "Two parameters have the same name.",
        "haft uses only the last parameter with this name. Give each parameter its own name.",
        "path: string the source\npath: string the target",
        "source: string the file to copy\ntarget: string where to copy it",
    ),
    Code(
        "no-type",
        "warning",
        "Parameters have no type.",
        "For a parameter without a type, haft accepts any value or assumes a string, depending on the format of the "
        "tool. Begin the parameter's description with `string`, `boolean`, `number`, `integer`, `array` or `object`. "
        "In Python, annotate the parameter.",
        "count: how many lines",
        "count: integer how many lines",
    ),
    Code(
        "schema-error",
        "error",
        "The input schema is not valid.",
        "The input schema must be a valid JSON Schema with the type `object`. haft cannot validate calls against an "
        "invalid schema, so agents do not get the tool.",
        '{"type": "object", "properties": {"n": {"type": "int"}}}',
        '{"type": "object", "properties": {"n": {"type": "integer"}}}',
    ),
    Code(
        "schema-excess",
        "error",
        "The input schema is too complex.",
        "The schema is nested too deeply, has too many parts, or has references that expand to too many checks. The "
        "validation of a call would take too long. Describe the parameters more simply, and check details inside the "
        "tool.",
        '{"$ref": "#/$defs/a"} where a refers twice to b, b twice to c, …',
        '{"type": "object", "properties": {"rows": {"type": "array", "items": {"type": "object"}}}}',
    ),
    Code(
        "text-with-structures",
        "warning",
        "A tool in the text form takes arrays or objects.",
        "A tool in the text form describes itself in lines of `key: value`, and gets its arguments in such lines. So "
        "an array or an object arrives as one line of JSON, and the script must parse this line. Describe the tool "
        "in JSON instead: then the tool gets all arguments as one JSON object on stdin.",
        "files: array the files to format",
        '{"name": "format", "args": {"files": ["array", "the files to format"]}, …}',
    ),
    Code(
        "equals-input",
        "note",
        "The script reads `key=value`, but the protocol is `key: value`.",
        "The protocol passes arguments as `key: value`. This script splits its input at `=`, so haft sends "
        "`key=value` to it. Other agents send `key: value`. Split at the first colon instead: then haft sends "
        "`key: value`, and the script works with all agents. If haft is wrong about the script, set the separator "
        "with `toolbox.separator`.",
        "while IFS='=' read -r key value; do …",
        "while IFS=': ' read -r key value; do …",
    ),
    Code(
        "separator-unclear",
        "warning",
        "The script does not show whether it reads `key: value` or `key=value`.",
        "The script splits some text at `=`, but haft cannot see whether this text is the script's input. haft sends "
        "`key: value`, as the protocol says. To end this warning, set `toolbox.separator` for this tool or for its "
        "directory. Set it to `=` if the script reads `key=value`, or to `: ` if the script reads `key: value`.",
        "while IFS=: read -r key value; do …; done\nwhile IFS== read -r key value; do …; done",
        "while IFS=': ' read -r key value; do …; done",
    ),
)
