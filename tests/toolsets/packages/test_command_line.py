"""The command lines that people paste to start a packaged server."""

import shlex

import pytest

from haft.toolsets.providers.packages.command_line import PackageCommand, UnsupportedCommand, parse_command


def parsed(line):
    command, *args = shlex.split(line)
    return parse_command(command, args)


NPM = [
    ("npx -y @modelcontextprotocol/server-memory", ("@modelcontextprotocol/server-memory",), None, ()),
    ("npx -y pkg@1.2.3 --flag -y", ("pkg@1.2.3",), None, ("--flag", "-y")),
    ("npx pkg@latest", ("pkg",), None, ()),
    ("npx -y pkg@^1.2", ("pkg@^1.2",), None, ()),
    ("npx --yes --package=p@1 cmd a -b", ("p@1",), "cmd", ("a", "-b")),
    ("npx -p a -p b -- cmd", ("a", "b"), "cmd", ()),
    ("/opt/node/bin/npx -y pkg", ("pkg",), None, ()),
    ("cmd /c npx -y pkg", ("pkg",), None, ()),
    ("npm exec -y pkg -- -v a", ("pkg",), None, ("-v", "a")),
    ("npm --yes exec --package=p cmd", ("p",), "cmd", ()),
    ("npm x pkg word", ("pkg",), None, ("word",)),
    ("pnpm dlx pkg", ("pkg",), None, ()),
    ("pnpm --package=p dlx cmd", ("p",), "cmd", ()),
    ("pnpx pkg", ("pkg",), None, ()),
    ("yarn dlx -q pkg x", ("pkg",), None, ("x",)),
    ("bunx pkg", ("pkg",), None, ()),
    ("bun x pkg -a", ("pkg",), None, ("-a",)),
]


@pytest.mark.parametrize(("line", "packages", "program", "args"), NPM, ids=[line for line, *_ in NPM])
def test_a_command_of_npm_names_its_package_program_and_arguments(line, packages, program, args):
    found = parsed(line)
    assert (found.registry, found.packages, found.program, found.args) == ("npm", packages, program, args)


PYPI = [
    ("uvx mcp-server-time --local-timezone=UTC", ("mcp-server-time",), None, ("--local-timezone=UTC",), None),
    ("uvx --from 'pkg==1' cmd", ("pkg==1",), "cmd", (), None),
    ("uvx '--from=pkg[cli]>=1,<2' cmd", ("pkg[cli]>=1,<2",), "cmd", (), None),
    ("uvx pkg@latest", ("pkg",), None, (), None),
    ("uvx pkg[x]@1.2", ("pkg[x]==1.2",), None, (), None),
    ("uvx -q --with a,b --with 'c>=1,<2' pkg", ("pkg", "a", "b", "c>=1,<2"), None, (), None),
    ("uvx --python 3.12 pkg", ("pkg",), None, (), "3.12"),
    ("uv tool run pkg -x", ("pkg",), None, ("-x",), None),
    ("uv --quiet tool run --from p cmd", ("p",), "cmd", (), None),
    ("pipx run pkg==1 arg", ("pkg==1",), None, ("arg",), None),
    ("pipx run --spec 'p[x]==2' cmd", ("p[x]==2",), "cmd", (), None),
]


@pytest.mark.parametrize(("line", "packages", "program", "args", "python"), PYPI, ids=[line for line, *_ in PYPI])
def test_a_command_of_pypi_names_its_package_program_and_arguments(line, packages, program, args, python):
    found = parsed(line)
    assert found == PackageCommand(found.runner, "PyPI", packages, program, args, python)


def test_bun_runs_the_program_only_if_the_command_says_so():
    assert parsed("bunx --bun pkg").uses_bun and not parsed("bunx pkg").uses_bun


@pytest.mark.parametrize(
    "line",
    ["node server.js", "npm run start", "uv --directory /x run server.py", "uv run server.py", "./npx pkg", "pipx list",
     "yarn start", "bun server.ts", "python -m server", "cmd /c dir"],
)  # fmt: skip
def test_other_commands_run_no_package(line):
    assert parsed(line) is None


UNSUPPORTED = [
    ("npx --frob pkg", "`--frob`"),
    ("npx", "names no package"),
    ("npx -p", "`-p` has no value"),
    ("npx -c 'a && b'", "line of shell"),
    ("npx --registry=https://r.example pkg", "~/.npmrc"),
    ("npx user/repo", "`user/repo`, which is no package of npm"),
    ("npx ./server", "`./server`, which is no package of npm"),
    ("npx pkg@https://r.example/x.tgz", "which is no package of npm"),
    ("npx pkg@npm:other@1", "which is no package of npm"),
    ("npx -p pkg ../cmd", "no name of a program"),
    ("npm exec pkg --port 1", "`--port` of `npm exec`: remove it, or write it after `--`"),
    ("uvx --from git+https://g.example/a/b cmd", "which is no package of PyPI"),
    ("uvx --default-index https://i.example pkg", "UV_DEFAULT_INDEX"),
    ("uvx --with-editable . pkg", "`--with-editable`"),
    ("pipx run https://p.example/server.py", "which is no package of PyPI"),
    ("pipx run --pip-args=-v pkg", "--pip-args"),
    ("bunx --hot pkg", "`--hot` of `bunx`"),
]


@pytest.mark.parametrize(("line", "words"), UNSUPPORTED, ids=[line for line, _ in UNSUPPORTED])
def test_a_word_that_haft_does_not_understand_is_an_error_that_names_it(line, words):
    with pytest.raises(UnsupportedCommand) as error:
        parsed(line)
    assert words in str(error.value)
