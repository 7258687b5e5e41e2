"""Codes of single formats: bash plugins, Agent Studio templates, Python functions, skills."""

from __future__ import annotations

from typing import Final

from haft.sources.checks.codes.model import Code

FORMATS: Final = (
    Code(
        "plugin-schema",
        "error",
        "The schema of a bash plugin lacks a field, or a field has the wrong type.",
        "`FILE schema` prints one JSON object with `id`, `version`, `args_mode` and `tools`, where the one tool is "
        '`{"type": "function", "function": {"name": …, "parameters": {…}}}`.',
        '{"id": "my_tool", "tools": [{"name": "my_tool"}]}',
        '{"id": "my_tool", "version": "0.1.0", "args_mode": "flags",\n "tools": [{"type": "function", "function": …}]}',
    ),
    Code(
        "plugin-one-tool",
        "error",
        "A bash plugin must be exactly one tool.",
        "One file is one tool. Write another file for the second tool.",
        '"tools": [{…}, {…}]',
        '"tools": [{…}]',
    ),
    Code(
        "plugin-id",
        "error",
        "The `id` of a bash plugin is not the name of its function.",
        "`id` and the function's name must be the same, because agents find the tool by either of them.",
        '"id": "echo", … "function": {"name": "my_echo"}',
        '"id": "my_echo", … "function": {"name": "my_echo"}',
    ),
    Code(
        "plugin-args-mode",
        "error",
        "The `args_mode` of a bash plugin is not known.",
        "`args_mode` says how `run` gets its arguments. It is `flags`, `positional` or `json`.",
        '"args_mode": "stdin"',
        '"args_mode": "json"',
    ),
    Code(
        "plugin-positional",
        "error",
        "The list `positional` of a bash plugin does not fit its parameters.",
        "If `args_mode` is `positional`, the list `positional` must name every parameter, and nothing else.",
        '"args_mode": "positional", "positional": [{"name": "file"}], … "properties": {"path": …}',
        '"args_mode": "positional", "positional": [{"name": "path"}], … "properties": {"path": …}',
    ),
    Code(
        "plugin-config-keys",
        "error",
        "The `config_keys` of a bash plugin are not a list of names.",
        "`config_keys` is a list. Each key in it names a setting, which the plugin gets as AGENT_TOOL_CONFIG_<KEY>. "
        "The values of the settings do not belong into this list.",
        '"config_keys": {"smtp_user": "me"}',
        '"config_keys": ["smtp_user"]',
    ),
    Code(
        "studio-structure",
        "error",
        "A file of the template is missing.",
        "A template is a directory with `tool.py` and `requirements.txt`.",
        "my_tool/tool.py",
        "my_tool/tool.py\nmy_tool/requirements.txt",
    ),
    Code(
        "python-parse",
        "error",
        "A Python file cannot be parsed.",
        "haft reads the file and never imports or runs it. So haft can check nothing else in the file until it is "
        "valid Python.",
        "def run_tool(config, args:",
        "def run_tool(config, args):",
    ),
    Code(
        "studio-user-parameters",
        "error",
        "The template has no class `UserParameters`.",
        "This class declares the values that are set once, such as keys and addresses. The class may be empty, but it "
        "must exist.",
        "class Config(BaseModel): …",
        "class UserParameters(BaseModel):\n    pass",
    ),
    Code(
        "studio-tool-parameters",
        "error",
        "The template has no class `ToolParameters`.",
        "This class declares the arguments that an agent passes with each call.",
        "class Arguments(BaseModel): …",
        'class ToolParameters(BaseModel):\n    query: str = Field(description="What to look for")',
    ),
    Code(
        "studio-base",
        "error",
        "A parameter class is not a pydantic model.",
        "`UserParameters` and `ToolParameters` must inherit directly from `pydantic.BaseModel`: haft reads the classes "
        "from the source and does not follow other base classes.",
        "class ToolParameters:",
        "class ToolParameters(BaseModel):",
    ),
    Code(
        "studio-run-tool",
        "error",
        "The template has no function `run_tool(config, args)`.",
        "The main block calls `run_tool` with the user parameters and the arguments of the call. `run_tool` must be a "
        "function of the module, or a static method of a class in it. It takes two parameters and is not `async`.",
        "def main(args): …",
        "def run_tool(config: UserParameters, args: ToolParameters) -> Any: …",
    ),
    Code(
        "studio-main",
        "error",
        "The template has no main block.",
        "haft runs `tool.py` as a program, with --user-params and --tool-params. Without a main block, `run_tool` is "
        "never called.",
        "run_tool(…)",
        'if __name__ == "__main__":\n    …',
    ),
    Code(
        "studio-output-key",
        "warning",
        "The template has no `OUTPUT_KEY`.",
        "`OUTPUT_KEY` is a text that the template prints before its answer: the output after this text is the answer. "
        "Without the key, all output is the answer, also log lines.",
        "print(run_tool(config, params))",
        'OUTPUT_KEY = "tool_output"\n…\nprint(OUTPUT_KEY, run_tool(config, params))',
    ),
    Code(
        "studio-pydantic",
        "warning",
        "`requirements.txt` does not name pydantic.",
        "Every template needs pydantic for its parameters, and its environment has only the packages that "
        "`requirements.txt` names.",
        "requests>=2.28.0",
        "pydantic\nrequests>=2.28.0",
    ),
    Code(
        "studio-requirements",
        "warning",
        "haft will refuse a line of `requirements.txt` when it builds the environment.",
        "haft builds environments from packages of the package index, in the sandbox. It refuses files of this "
        "machine, other indexes, and options. A package from a web address needs `templates.allow_builds = true`.",
        "-r more.txt\n./local.whl",
        "pydantic\nrequests>=2.28.0",
    ),
    Code(
        "studio-docstring",
        "warning",
        "The template's module has no docstring.",
        "The docstring is the description by which agents choose a tool. If you pack the template, a missing docstring "
        "is an error.",
        "from pydantic import BaseModel",
        '"""Read a JSON file of this project. Use it for settings only."""\nfrom pydantic import BaseModel',
    ),
    Code(
        "studio-name",
        "warning",
        "The template's name has characters that are not allowed.",
        "The name of a template consists of letters, digits and spaces. haft reads a `_` in the name of the folder as "
        "a space. If you pack the template, a name with other characters is an error.",
        "json-reader/",
        "json_reader/",
    ),
    Code(
        "studio-pack-name",
        "error",
        "You pack the template, and its name has characters that are not allowed.",
        "The name of a template consists of letters, digits and spaces. haft reads a `_` in the name of the folder as "
        "a space. A template with other characters in its name cannot be imported from the archive.",
        "json-reader/",
        "json_reader/",
    ),
    Code(
        "studio-pack-docstring",
        "error",
        "You pack the template, and its module has no docstring.",
        "The docstring is the description by which agents choose a tool. People who import the archive cannot add a "
        "docstring.",
        "from pydantic import BaseModel",
        '"""Read a JSON file of this project. Use it for settings only."""\nfrom pydantic import BaseModel',
    ),
    Code(
        "python-coding",
        "error",
        "A Python file says that it is not written in UTF-8.",
        "The first two lines of a Python file can name an encoding, and Python decodes the file with it. In some "
        "encodings, text that looks like a comment is code. The text that people read must be the code that runs.",
        "# -*- coding: utf-7 -*-",
        "# -*- coding: utf-8 -*-",
    ),
    Code(
        "studio-unread-type",
        "warning",
        "The type or the alias of a template's parameter cannot be read.",
        "haft reads types from `tool.py` alone and does not know types from other files. So agents see no type for "
        "this parameter, and may pass any value; the template itself rejects a value that it cannot use.",
        "from shapes import Box\n…\n    box: Box",
        "class Box(BaseModel):\n    width: int\n…\n    box: Box",
    ),
    Code(
        "studio-optional",
        "warning",
        "A parameter may be None and has no default.",
        "Agents see the parameter as optional, but pydantic rejects a call without it. If an agent leaves the "
        "parameter out, haft sends null for it; other programs may not.",
        "limit: Optional[int]",
        "limit: Optional[int] = None",
    ),
    Code(
        "studio-alias",
        "warning",
        "Two parameters of a template are sent under the same name.",
        "Callers use the alias of a field instead of its name. If an alias is the name or the alias of another field, "
        "one value goes to both fields.",
        'first: str = Field(alias="name")\nname: str',
        'first: str = Field(alias="first_name")\nname: str',
    ),
    Code(
        "studio-duplicate",
        "warning",
        "A class has the same parameter twice.",
        "Python uses the last declaration and does not warn.",
        "limit: int\nlimit: str",
        "limit: int",
    ),
    Code(
        "studio-key-unprinted",
        "warning",
        "The template has an `OUTPUT_KEY` and never uses it.",
        "The output after the key is the answer. If the template does not print the key, all output is the answer, "
        "also log lines.",
        'OUTPUT_KEY = "tool_output"\n…\nprint(run_tool(config, params))',
        'OUTPUT_KEY = "tool_output"\n…\nprint(OUTPUT_KEY, run_tool(config, params))',
    ),
    Code(
        "not-loaded",
        "error",
        "A tool could not be loaded.",
        "haft found the tool, could not load it, and lists it as broken; the finding gives the reason. haft cannot "
        "check anything else about this tool.",
        "an installed package that names a function which it does not have",
        "an installed package whose functions can all be imported",
    ),
    Code(
        "variable-arguments",
        "error",
        "A Python tool takes `*args`.",
        "Callers pass the arguments of a tool by name, and the values in `*args` have no names. Declare one parameter "
        "that is a list.",
        "def add(*numbers: int): …",
        "def add(numbers: list[int]): …",
    ),
    Code(
        "skill-front-matter",
        "error",
        "SKILL.md has no readable front matter.",
        "SKILL.md must begin with a line `---`; then come `name:` and `description:`, and then another line `---`.",
        "# My skill",
        "---\nname: my-skill\ndescription: …\n---\n# My skill",
    ),
    Code(
        "skill-name",
        "error",
        "The name of a skill has a wrong form, or is not the name of its folder.",
        "A name has at most 64 characters of a-z, 0-9 and `-`, and is also the name of the skill's folder.",
        "my-skill/SKILL.md says `name: My Skill`",
        "my-skill/SKILL.md says `name: my-skill`",
    ),
    Code(
        "skill-description",
        "error",
        "The description of a skill is missing or too long.",
        "A description has at most 1024 characters: agents read it to decide whether to activate the skill. Put "
        "everything else into the text of SKILL.md.",
        "description:",
        "description: Make release notes from commits. Use when asked for a changelog.",
    ),
)
