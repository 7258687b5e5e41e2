"""Package managers. They only read if they list what is installed. All of them read settings of the workspace."""

from __future__ import annotations

from typing import Final

from haft.policy.analysis.program import Invocation, Program
from haft.policy.analysis.programs.shared_checks import Check, no_dashed_values

_NETWORK: Final = "uses the network"
_ELSEWHERE: Final = "writes to a path from its arguments"


def _only_after(what: str) -> Check:
    """A check that refuses a package manager without a subcommand, unless the package manager prints its version or
    help."""

    def check(invocation: Invocation) -> str | None:
        is_asked = invocation.has("--version", "-v", "-V", "--help", "-h")
        return None if is_asked else f"`{invocation.name}` alone {what}"

    return check


_NPM_COMMON: Final = """
    --json --no-json -l --long --no-long -p --parseable -g --global --no-global -s --silent -q --quiet -d --verbose
    --loglevel=word --color[=word] --no-color --unicode --no-unicode -w=word --workspace=word --workspaces
    --no-workspaces --include-workspace-root --prefix=path --offline --no-update-notifier --no-audit --no-fund
"""
_NPM_LIST: Final = Program(
    options=_NPM_COMMON
    + """-a --all --depth=word --omit=word --include=word --prod --production --dev --only=word --link
    --package-lock-only --no-package-lock --install-links""",
    operands="words",
    check=no_dashed_values,
)
_NPM_PLACE: Final = Program(options=_NPM_COMMON, operands="none", check=no_dashed_values)
_NPM: Final = Program(
    options="-v --version --silent -s --no-color --no-update-notifier --loglevel=word --prefix=path -g --global",
    operands="words",
    starts_others=True,
    harmful={
        **dict.fromkeys(("--cache", "--logs-dir"), _ELSEWHERE),
        **dict.fromkeys(
            ("--script-shell", "--node-options", "--userconfig", "--globalconfig"),
            "uses the program or the settings that it names",
        ),
    },
    subcommands={
        **dict.fromkeys(("list", "ls", "ll", "la", "explain", "why"), _NPM_LIST),
        **dict.fromkeys(("root", "prefix"), _NPM_PLACE),
        "pkg": Program(subcommands={"get": Program(options=_NPM_COMMON, operands="words", check=no_dashed_values)}),
    },
    check=_only_after("only prints its usage"),
)

_PNPM_LIST: Final = Program(
    options="""--depth=word --json --long --parseable -g --global -P --prod -D --dev --no-optional --only-projects
        -r --recursive --filter=word -F=word --lockfile-only --exclude-peers --color --no-color -C=path --dir=path""",
    operands="words",
    check=no_dashed_values,
)
_YARN_LIST: Final = Program(
    options="""--depth=word --pattern=word --prod --production[=word] --json --silent -s --no-progress --flat --verbose
        --offline --non-interactive --emoji[=word] --no-color --color""",
    operands="words",
    check=no_dashed_values,
)

_PIP_COMMON: Final = """
    -v --verbose -q --quiet -V --version -h --help --no-color --no-input --disable-pip-version-check --isolated
    --require-virtualenv --no-python-version-warning --no-cache-dir
"""
_PIP_HARMFUL: Final = {
    "--python": "runs an interpreter from its arguments",
    **dict.fromkeys(("--log", "--log-file", "--cache-dir"), _ELSEWHERE),
    **dict.fromkeys(("-o", "--outdated", "-u", "--uptodate", "-i", "--index-url", "--extra-index-url"), _NETWORK),
    **dict.fromkeys(("-f", "--find-links", "--proxy"), _NETWORK),
}
_PIP_CHOICE: Final = "-l --local --user --path=path --exclude=word"


def _pip(options: str, *, takes_words: bool = False) -> Program:
    refused = {name: why for name, why in _PIP_HARMFUL.items() if name not in options.split()}
    return Program(options=_PIP_COMMON + options, operands="words" if takes_words else "none", harmful=refused)


_PIP: Final = Program(
    options=_PIP_COMMON,
    operands="words",
    starts_others=True,
    harmful=_PIP_HARMFUL,
    subcommands={
        "list": _pip(
            f"""{_PIP_CHOICE} -e --editable --pre --format=word --not-required --exclude-editable --include-editable""",
            takes_words=True,
        ),
        "freeze": _pip(f"{_PIP_CHOICE} -r=path --requirement=path --all --exclude-editable"),
        "show": _pip("-f --files", takes_words=True),
        "check": _pip(""),
        "inspect": _pip("--local --user --path=path"),
        "debug": _pip(""),
        "help": _pip("", takes_words=True),
    },
)

PACKAGES: Final[dict[str, Program]] = {
    "npm": _NPM,
    "pnpm": Program(
        single_dash=True,
        starts_others=True,
        subcommands={
            **dict.fromkeys(("list", "ls", "ll", "la", "why"), _PNPM_LIST),
            "root": Program(options="-g --global", operands="none"),
        },
        check=_only_after("only prints its usage"),
    ),
    "yarn": Program(
        options="--silent -s --json --no-progress --offline --non-interactive",
        single_dash=True,
        starts_others=True,
        subcommands={"list": _YARN_LIST, "versions": Program(options="--json -s --silent", operands="none")},
        check=_only_after("installs packages"),
    ),
    "pip": _PIP,
    "pip3": _PIP,
}
