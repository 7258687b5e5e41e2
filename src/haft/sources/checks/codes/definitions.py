"""Codes about what every tool has, whatever its format: a name, a description, parameters."""

from __future__ import annotations

from typing import Final

from haft.sources.checks.codes.model import Code

DEFINITIONS: Final = (
    Code(
        "no-name",
        "error",
        "It says no name.",
        "A tool is called by the name that it describes, not by its file's. Print one.",
        "description: Run the tests.",
        "name: run_tests\ndescription: Run the tests.",
    ),
    Code(
        "bad-name",
        "warning",
        "Its name cannot stand as it is.",
        "Names are made of letters, digits, `_` and `-`, and with the prefix `tb__` have at most 64 characters. Every "
        "other character becomes `_` and the rest is cut, so that callers have to guess the name.",
        "name: run tests!",
        "name: run_tests",
    ),
    Code(
        "name-differs",
        "note",
        "The name it says is not its file's.",
        "The name that it describes counts. People look for the file by that name, and two copies of a file clash "
        "although they are called differently.",
        "run-tests.sh says `name: test_runner`",
        "test_runner says `name: test_runner`",
    ),
    Code(
        "no-description",
        "error",
        "It has no description.",
        "The description is all that an agent knows when it chooses a tool. Say what it does, when to use it, and "
        "what must be minded.",
        "name: run_tests",
        "name: run_tests\ndescription: Run project tests. Use this instead of a shell for tests of this workspace.",
    ),
    Code(
        "unchanged-template",
        "warning",
        "The description is the one of the template.",
        "`haft tools make` writes a tool that works at once: it prints the first lines of a file. Its description was "
        "never changed, so agents are told that the tool does that, whatever it does now.",
        "name: run_tests\ndescription: Print the first lines of a text file.\n…",
        "name: run_tests\ndescription: Run project tests. Use this instead of a shell for tests of this workspace.",
    ),
    Code(
        "vague-description",
        "warning",
        "The description does not say what the tool is for.",
        "An agent cannot choose by it. A good one begins with a verb and says what is done to what, then when or why "
        "to use it rather than something else, then constraints and safety. Too few words, a bare noun, and words "
        "such as `stuff` or `things` are found; what a sentence means is not judged.",
        "Do stuff with the database",
        "Query the development PostgreSQL database. Safer than raw psql commands.",
    ),
    Code(
        "description-without-use",
        "note",
        "The description says what is done, and nothing more.",
        "It is clear what it does; it does not say when to use it over an alternative, nor any constraint or safety "
        "note. A second sentence is mostly enough.",
        "Render the architecture diagrams of this repository as SVG files",
        "Render the architecture diagrams of this repository as SVG files. Use it after every change to docs/diagrams.",
    ),
    Code(
        "parameter-undescribed",
        "warning",
        "Parameters have no description.",
        "A name and a type rarely say which values make sense. Say what it is, its unit or form, and what happens "
        "without it.",
        "path: string",
        "path: string the file to read, relative to the workspace",
    ),
    Code(
        "parameter-hidden",
        "warning",
        "One of haft's own options hides a parameter.",
        "On the command line, `haft tools use NAME --timeout 5` sets haft's deadline and not the tool's parameter. "
        "The parameter can still be given after a bare `--` or with `--args`. Another name is kinder. Agents are not "
        "concerned: they pass arguments by name.",
        "timeout: number seconds to wait for the server",
        "server_timeout: number seconds to wait for the server",
    ),
    Code(
        "duplicate-parameter-names",
        "error",
        "A name is described twice.",
        "Only the last one counts, and the other one is lost without a word. Give each parameter a name of its own.",
        "path: string the source\npath: string the target",
        "source: string the file to copy\ntarget: string where to copy it",
    ),
    Code(
        "no-type",
        "warning",
        "Parameters say no type.",
        "Without a type, anything is passed on, or a string is assumed. Begin with one of string, boolean, number, "
        "integer, array, object; in Python, annotate.",
        "count: how many lines",
        "count: integer how many lines",
    ),
    Code(
        "schema-error",
        "error",
        "The input schema does not hold.",
        "The input schema must be valid JSON Schema of the type `object`. A schema that does not hold can check no "
        "call, so the tool is not offered.",
        '{"type": "object", "properties": {"n": {"type": "int"}}}',
        '{"type": "object", "properties": {"n": {"type": "integer"}}}',
    ),
    Code(
        "schema-excess",
        "error",
        "The input schema is too much to work with.",
        "It is nested too deeply, has too many parts, or its references unfold to more checks than a call can wait "
        "for. Describe the parameters more simply; check details inside the tool.",
        '{"$ref": "#/$defs/a"} where a refers twice to b, b twice to c, …',
        '{"type": "object", "properties": {"rows": {"type": "array", "items": {"type": "object"}}}}',
    ),
    Code(
        "text-with-structures",
        "warning",
        "A tool in the text form takes arrays or objects.",
        "Text tools get one line for each parameter, so an array or object arrives as a line of JSON that the script "
        "has to take apart itself. Describe the tool in JSON: it then gets one JSON object on stdin.",
        "files: array the files to format",
        '{"name": "format", "args": {"files": ["array", "the files to format"]}, …}',
    ),
    Code(
        "equals-input",
        "note",
        "The script reads `key=value`, which is not the protocol.",
        "Parameters come as `key: value`. This script takes its input apart at `=`, so haft sends it "
        "`key=value`; other hosts may not. Split at the first colon, and the tool works everywhere; a separator for a "
        "directory or tool is also a setting.",
        "while IFS='=' read -r key value; do …",
        "while IFS=': ' read -r key value; do …",
    ),
    Code(
        "separator-unclear",
        "warning",
        "The script does not show whether it reads `key: value` or `key=value`.",
        "It takes text apart at `=`, and it cannot be told from the script that this text is something else than its "
        "input. haft sends it `key: value`, as the protocol says. Where that is wrong, the setting `toolbox.separator` "
        "decides, for this tool or its directory; where it is right, the setting ends this warning.",
        "while IFS=: read -r key value; do …; done\nwhile IFS== read -r key value; do …; done",
        "while IFS=': ' read -r key value; do …; done",
    ),
)
