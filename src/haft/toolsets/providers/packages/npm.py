"""Installs packages of npm's registry, with npm or, if there is only bun, with bun.

Install scripts are never run, because they are code of the packages' authors. So the credentials in the person's npm
configuration can be used: no code of a package runs while they are readable.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any, Final

from haft.contracts import PROXY_VARIABLES, ToolFailed
from haft.lazy import regex
from haft.sandbox import NETWORK_VARIABLES, Tool, home_of, is_below
from haft.toolsets.environments.installer import readable_certificates
from haft.toolsets.providers.packages.command_line import PackageCommand, package_name
from haft.toolsets.providers.packages.places import Interpreter
from haft.toolsets.providers.packages.programs import find_node, find_npm, find_program
from haft.toolsets.providers.packages.recipe import FoundProgram, Step, no_program

_PASSED: Final = regex(
    r"npm_config_(?:registry|@[^:]+:registry|ca|cafile|cert|key|strict_ssl|noproxy|before|fetch_.+|//.+)", 2
)
"""Variables of npm that say where packages come from."""
_PROXIES: Final = regex(r"npm_config_(?:https?_)?proxy", 2)
_VARIABLE: Final = regex(r"\$\{(\w+)\??\}")
_CERTIFICATE_LINE: Final = regex(r"\s*cafile\s*=\s*[\"']?(/[^\"'\n]+?)[\"']?\s*")
_MOST_BYTES: Final = 10_000_000
_HINTS: Final = (
    (r"\bE404\b|404 Not Found|not found", "the registry has no such package: check its name in the command"),
    (r"\bETARGET\b|No matching version", "the registry has no such version: check it in the command"),
    (
        r"ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|ConnectionRefused|network",
        "the registry does not answer: is this machine online? The registries of your own npm configuration are used",
    ),
    (r"\bE401\b|\bE403\b", "the registry refuses access: check the credentials in your ~/.npmrc"),
    (r"\bEBADENGINE\b", "the package needs another version of Node.js"),
)


class NpmRecipe:
    """Installs the packages of one command."""

    ground: Final = "npm"
    index_tools: tuple[Tool, ...] = ("npm",)
    index_packages: tuple[str, ...] = ()

    def __init__(self, command: PackageCommand, env: Mapping[str, str], workspace: str) -> None:
        """Raises `ToolFailed` if Node.js is missing."""
        self._command = command
        self._env = env
        self._workspace = workspace
        self._node = find_node(env, workspace)
        self._npm = None if self._node is None else find_npm(self._node, env, workspace)
        self._bun = None
        if self._npm is None:
            bun = find_program("bun", env, workspace)
            self._bun = None if bun is None else os.path.realpath(bun)
        if self._npm is None and self._bun is None:
            missing = "Node.js was not found" if self._node is None else "npm was not found beside Node.js"
            raise ToolFailed(
                f"`{command.runner}` needs Node.js with npm, and {missing}",
                hint="install Node.js so that `node` and `npm` are on the PATH, outside of the workspace",
            )
        self._configuration = self._own_configuration()

    @property
    def readable(self) -> tuple[str, ...]:
        tools = [tool for tool in (self._node, self._bun) if tool is not None]
        if self._npm is not None:
            tools.append(os.path.dirname(os.path.dirname(self._npm)))
        named = [] if self._configuration is None else [self._configuration]
        certificates = [*readable_certificates(self._env), *self._own_certificates()]
        return tuple(dict.fromkeys((*tools, *named, *certificates)))

    def _own_configuration(self) -> str | None:
        """The person's own configuration of npm; None if there is none, or if calls could write it."""
        variables = {name.lower(): value for name, value in self._env.items()}
        path = variables.get("npm_config_userconfig") or os.path.join(home_of(self._env), ".npmrc")
        if not os.path.isfile(path) or is_below(os.path.realpath(path), (self._workspace,)):
            return None
        return os.path.realpath(path)

    def _configured(self) -> str:
        if self._configuration is None:
            return ""
        try:
            with open(self._configuration, encoding="utf-8", errors="replace") as file:
                return file.read(_MOST_BYTES)
        except OSError:
            return ""

    def _own_certificates(self) -> list[str]:
        named = [value for name, value in self._env.items() if name.lower() == "npm_config_cafile"]
        named += [found[1] for line in self._configured().splitlines() if (found := _CERTIFICATE_LINE.fullmatch(line))]
        named.append(self._env.get("NODE_EXTRA_CA_CERTS", ""))
        return [path for path in named if os.path.isabs(path) and os.path.exists(path)]

    def variables(self, cache: str, *, passes_proxies: bool) -> dict[str, str]:
        """The environment of npm. Only the person's own configuration says where packages come from."""
        passed = NETWORK_VARIABLES if passes_proxies else NETWORK_VARIABLES.difference(PROXY_VARIABLES)
        named = set(_VARIABLE.findall(self._configured()))
        told = {
            name: value
            for name, value in self._env.items()
            if name.upper() in passed
            or name in named
            or name == "NODE_EXTRA_CA_CERTS"
            or _PASSED.fullmatch(name)
            or (passes_proxies and _PROXIES.fullmatch(name))
        }
        registry = next((value for name, value in told.items() if name.lower() == "npm_config_registry"), None)
        return {
            **told,
            **({} if registry is None else {"BUN_CONFIG_REGISTRY": registry}),
            "npm_config_cache": cache,
            "npm_config_userconfig": self._configuration or os.devnull,
            "BUN_INSTALL_CACHE_DIR": os.path.join(cache, "bun"),
            "NO_COLOR": "1",
        }

    def begin(self, folder: str) -> None:
        os.mkdir(folder, 0o700)
        with open(os.path.join(folder, "package.json"), "w", encoding="utf-8") as file:
            json.dump({"name": "server", "version": "0.0.0", "private": True}, file)

    def steps(self, folder: str, final: str) -> Sequence[Step]:
        packages = self._command.packages
        if self._npm is None or self._node is None:
            assert self._bun is not None  # `__init__` has made sure of it.
            adding = ("add", "--ignore-scripts", "--no-progress", "--backend=copyfile", "--cwd", folder)
            return [Step((self._bun, *adding, *packages), uses_network=True)]
        words = (
            "install", "--prefix", folder, "--ignore-scripts", "--omit=dev", "--no-audit", "--no-fund",
            "--no-update-notifier", "--no-progress", "--logs-max=0", "--global=false",
            "--fetch-retries=1", "--fetch-retry-mintimeout=1000", "--loglevel=http",
        )  # fmt: skip
        return [Step((self._node, self._npm, *words, "--", *packages), uses_network=True)]

    def program(self, folder: str) -> FoundProgram:
        names = [package_name("npm", spec) for spec in self._command.packages]
        wanted = self._command.program
        for name in names if wanted is not None else names[:1]:
            about = _about(folder, name)
            programs = _programs(name, about)
            chosen = _chosen(name, wanted, programs)
            if chosen is not None:
                path = _inside(folder, name, programs[chosen])
                if path is None:
                    raise ToolFailed(f"the package `{name}` names the program `{programs[chosen]}`, which is not in it")
                version = f"{name} {about.get('version', '')}".strip()
                return FoundProgram(path, self._interpreter(folder, path), version, _with_scripts(folder))
        raise no_program(names[0], wanted, _programs(names[0], _about(folder, names[0])))

    def _interpreter(self, folder: str, path: str) -> Interpreter:
        with open(os.path.join(folder, path), "rb") as file:
            first = file.readline(200).decode("utf-8", "replace")
        if self._command.uses_bun or (first.startswith("#!") and "bun" in first):
            return "bun"
        is_script = path.endswith((".js", ".cjs", ".mjs")) and not first.startswith("#!")
        return "node" if is_script or (first.startswith("#!") and "node" in first) else "none"

    def hint(self, output: str) -> str | None:
        return next((hint for pattern, hint in _HINTS if regex(pattern, 2).search(output)), None)


def _about(folder: str, name: str) -> dict[str, Any]:
    """The `package.json` of an installed package, which its authors wrote."""
    try:
        with open(os.path.join(folder, "node_modules", name, "package.json"), encoding="utf-8") as file:
            found = json.loads(file.read(_MOST_BYTES))
    except (OSError, ValueError, RecursionError) as error:
        raise ToolFailed(f"the package `{name}` has no package.json that can be read") from error
    return found if isinstance(found, dict) else {}


def _programs(name: str, about: Mapping[str, Any]) -> dict[str, str]:
    """The programs of a package, by name."""
    bins = about.get("bin")
    if isinstance(bins, str):
        return {name.rpartition("/")[2]: bins}
    if not isinstance(bins, dict):
        return {}
    return {str(each): path for each, path in bins.items() if isinstance(path, str)}


def _chosen(name: str, wanted: str | None, programs: Mapping[str, str]) -> str | None:
    """The program that npx would run."""
    if wanted is not None:
        return wanted if wanted in programs else None
    if len(set(programs.values())) == 1:
        return next(iter(programs))
    own = name.rpartition("/")[2]
    return own if own in programs else None


def _inside(folder: str, name: str, path: str) -> str | None:
    """The path of a program relative to the installation; None if it is no file of its package."""
    package = os.path.realpath(os.path.join(folder, "node_modules", name))
    real = os.path.realpath(os.path.join(package, path))
    if not is_below(real, (package,)) or not os.path.isfile(real):
        return None
    return os.path.relpath(real, os.path.realpath(folder))


def _with_scripts(folder: str) -> tuple[str, ...]:
    """The installed packages that have install scripts, by npm's own list."""
    try:
        with open(os.path.join(folder, "node_modules", ".package-lock.json"), encoding="utf-8") as file:
            packages = json.loads(file.read(_MOST_BYTES)).get("packages", {})
        names = [path for path, about in packages.items() if about.get("hasInstallScript") is True]
    except (OSError, ValueError, AttributeError, RecursionError):
        return ()
    return tuple(name.rpartition("node_modules/")[2] for name in names)
