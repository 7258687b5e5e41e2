"""Reads which package indexes the configuration of pip, uv, npm, yarn, cargo and go names: environment variables, and
files of the person and the machine.

Files in the workspace are not read, wherever a variable says that the configuration lies. A file that cannot be
understood counts as empty: the tool itself reports the mistake. The URLs may contain credentials.
"""

from __future__ import annotations

import configparser
import os
import shutil
import stat
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, Literal

from haft.lazy import regex
from haft.sandbox.package_indexes.addresses import Address, address_of
from haft.sandbox.package_indexes.public import GO_CHECKSUMS
from haft.sandbox.site import home_of
from haft.sandbox.toolchains import is_below
from haft.values import dataclass, field

Tool = Literal["pip", "uv", "npm", "yarn", "cargo", "go"]
TOOLS: Final[tuple[Tool, ...]] = ("pip", "uv", "npm", "yarn", "cargo", "go")
IndexKind = Literal["python", "npm", "cargo", "files"]
"""How haft asks an index where its files are; `files`: it does not ask."""
MOST_BYTES: Final = 1_000_000
MOST_INDEXES: Final = 50
_READ: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
_PIP_SECTIONS: Final = ("global", "install", "download", "wheel")
_NAMED_URL: Final = regex(r"[A-Za-z0-9_.-]+=(?=[a-z][a-z0-9+.-]*://)")
"""The name in front of a URL in UV_INDEX."""
_INI: Final = regex(r"\s*([^#;=\s][^=]*?)\s*=\s*(.*?)\s*")
_YARN_CLASSIC: Final = regex(r"""\s*["']?((?:@[^:"']+:)?registry)["']?\s+["']?([^\s"']+)["']?\s*""")
_YARN: Final = regex(r"""\s*["']?npmRegistryServer["']?\s*:\s*["']?([^\s"']+)["']?\s*(?:#.*)?""")
_VARIABLE: Final = regex(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::?-([^}]*)|\?)?\}")


@dataclass(frozen=True, slots=True)
class Index:
    """One package index that the configuration names."""

    kind: IndexKind
    url: str = field(repr=False)
    """May contain credentials, so it is never shown."""


@dataclass(frozen=True, slots=True)
class Named:
    """The indexes of one tool."""

    configured: tuple[Index, ...]
    uses_public: bool
    """Whether the tool also uses its public index."""
    others: tuple[Address, ...] = ()
    """Other hosts that the tool asks."""


def indexes(tool: Tool, env: Mapping[str, str], workspace: str) -> Named:
    """The indexes of a tool."""
    return _READERS[tool](_Reader(env, os.path.realpath(workspace)))


class _Reader:
    """Reads the configuration files of a person and of the machine."""

    def __init__(self, env: Mapping[str, str], workspace: str) -> None:
        self.env = env
        self._workspace = workspace
        self.home = home_of(env)
        config = env.get("XDG_CONFIG_HOME", "")
        self.config = config if os.path.isabs(config) else os.path.join(self.home, ".config")
        dirs = env.get("XDG_CONFIG_DIRS", "") or "/etc/xdg"
        self.machine = [each for each in dirs.split(os.pathsep) if os.path.isabs(each)]

    def text(self, path: str) -> str:
        """The content of a file; empty if there is none, it lies in the workspace, or it is too long."""
        if not os.path.isabs(path) or is_below(os.path.realpath(path), (self._workspace,)):
            return ""
        try:
            descriptor = os.open(path, _READ)
        except (OSError, ValueError):
            return ""
        with os.fdopen(descriptor, "rb") as file:
            try:
                found = os.fstat(descriptor)
                if not stat.S_ISREG(found.st_mode) or found.st_size > MOST_BYTES:
                    return ""
                return file.read(MOST_BYTES).decode("utf-8", "replace")
            except OSError:
                return ""

    def toml(self, path: str) -> dict[str, Any]:
        text = self.text(path)
        if not text:
            return {}
        try:
            return tomllib.loads(text)
        except tomllib.TOMLDecodeError:
            return {}

    def ini(self, path: str) -> Iterator[tuple[str, str]]:
        """The lines `name = value` of a file without sections, with the variables that they name."""
        for line in self.text(path).splitlines():
            if (found := _INI.fullmatch(line)) is not None:
                yield found[1], self._with_variables(found[2].strip("\"'"))

    def _with_variables(self, text: str) -> str:
        return _VARIABLE.sub(lambda found: self.env.get(found[1], found[2] or ""), text)

    def words(self, *names: str) -> list[str]:
        """The words of the first of these variables that has any."""
        return next((words for name in names if (words := self.env.get(name, "").split())), [])

    def is_on(self, name: str) -> bool:
        return _is_true(self.env.get(name, ""))


def _is_true(value: object) -> bool:
    return value is True or str(value).lower() in ("1", "true", "yes", "on")


def _python(urls: Iterable[str], links: Iterable[str] = ()) -> tuple[Index, ...]:
    return tuple(_known("python", urls)) + tuple(_known("files", links))


def _known(kind: IndexKind, urls: Iterable[str]) -> Iterator[Index]:
    for url in list(dict.fromkeys(urls))[:MOST_INDEXES]:
        if address_of(url) is not None:
            yield Index(kind, url)


def _pip(reader: _Reader) -> Named:
    env = reader.env
    user = (os.path.join(reader.home, ".pip", "pip.conf"), os.path.join(reader.config, "pip", "pip.conf"))
    machine = (*(os.path.join(each, "pip", "pip.conf") for each in reader.machine), "/etc/pip.conf")
    own = (os.path.join(env.get("VIRTUAL_ENV", ""), "pip.conf"), env.get("PIP_CONFIG_FILE", ""))
    files = () if env.get("PIP_CONFIG_FILE") == os.devnull else (*machine, *user, *own)
    said: dict[str, list[str]] = {}
    for path in files:
        said |= _pip_file(reader.text(path))
    for name in ("index-url", "extra-index-url", "find-links", "no-index"):
        if words := reader.words(f"PIP_{name.upper().replace('-', '_')}"):
            said[name] = words
    links = said.get("find-links", [])
    if any(map(_is_true, said.get("no-index", ()))):
        return Named(_python((), links), uses_public=False)
    index = said.get("index-url", [])
    return Named(_python((*index, *said.get("extra-index-url", ())), links), uses_public=not index)


def _pip_file(text: str) -> dict[str, list[str]]:
    """The words of each option in the sections that concern the installation of packages."""
    parser = configparser.RawConfigParser(strict=False)
    try:
        parser.read_string(text)
    except configparser.Error:
        return {}
    said: dict[str, list[str]] = {}
    for section in _PIP_SECTIONS:
        for name, value in parser.items(section) if parser.has_section(section) else ():
            said.setdefault(name.replace("_", "-"), []).extend((value or "").split())
    return said


def _uv(reader: _Reader) -> Named:
    env = reader.env
    machine = (*(os.path.join(each, "uv", "uv.toml") for each in reader.machine), "/etc/uv/uv.toml")
    files = [env.get("UV_CONFIG_FILE", "")] if env.get("UV_CONFIG_FILE") else []
    if not files and not reader.is_on("UV_NO_CONFIG"):
        files = [os.path.join(reader.config, "uv", "uv.toml"), *machine]
    default = reader.words("UV_DEFAULT_INDEX", "UV_INDEX_URL")
    more = [_NAMED_URL.sub("", word) for name in ("UV_INDEX", "UV_EXTRA_INDEX_URL") for word in reader.words(name)]
    links = env.get("UV_FIND_LINKS", "").replace(",", " ").split()
    is_offline = reader.is_on("UV_NO_INDEX")
    for said in map(reader.toml, files):
        tables = [said, said["pip"]] if isinstance(said.get("pip"), dict) else [said]
        found = [
            index for table in tables for index in _tables(table.get("index")) if isinstance(index.get("url"), str)
        ]
        own = [index["url"] for index in found if index.get("default") is True]
        own += [url for table in tables for url in _texts(table.get("index-url"))]
        default = default or own
        more += [index["url"] for index in found]
        more += [url for table in tables for url in _texts(table.get("extra-index-url"))]
        links += [url for table in tables for url in _texts(table.get("find-links"))]
        is_offline = is_offline or any(table.get("no-index") is True for table in tables)
    if is_offline:
        return Named(_python((), links), uses_public=False)
    default = [_NAMED_URL.sub("", word) for word in default]
    return Named(_python((*default, *more), links), uses_public=not default)


def _tables(value: object) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _texts(value: object) -> list[str]:
    return [each for each in (value if isinstance(value, list) else [value]) if isinstance(each, str)]


def _npm(reader: _Reader) -> Named:
    env = {name.lower().removeprefix("npm_config_"): value for name, value in _npm_variables(reader.env)}
    user = env.get("userconfig") or os.path.join(reader.home, ".npmrc")
    own = (user, os.path.join(reader.config, "pnpm", "rc"), *_npm_machine_files(reader, env))
    registries = [value for name, value in env.items() if name == "registry"]
    scoped = [value for name, value in env.items() if name.endswith(":registry")]
    for path in own:
        for name, value in reader.ini(path):
            if name == "registry" and not registries:
                registries.append(value)
            elif name.startswith("@") and name.endswith(":registry"):
                scoped.append(value)
    return Named((*_known("npm", registries), *_known("files", scoped)), uses_public=not registries)


def _npm_variables(env: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    return ((name, value) for name, value in env.items() if name.lower().startswith("npm_config_") and value)


def _npm_machine_files(reader: _Reader, env: Mapping[str, str]) -> Iterator[str]:
    if env.get("globalconfig"):
        yield env["globalconfig"]
        return
    node = shutil.which("node", path=reader.env.get("PATH", os.defpath))
    prefixes = [env.get("prefix", ""), "/usr/local", "/usr", "/"]
    if node is not None:
        prefixes.append(os.path.dirname(os.path.dirname(os.path.realpath(node))))
    yield from dict.fromkeys(os.path.join(each, "etc", "npmrc") for each in prefixes if each)


def _yarn(reader: _Reader) -> Named:
    registries = reader.words("YARN_NPM_REGISTRY_SERVER", "YARN_REGISTRY")
    scoped: list[str] = []
    for line in reader.text(os.path.join(reader.home, ".yarnrc")).splitlines():
        if (found := _YARN_CLASSIC.fullmatch(line)) is not None:
            (registries if found[1] == "registry" else scoped).append(found[2])
    for line in reader.text(os.path.join(reader.home, ".yarnrc.yml")).splitlines():
        if (found := _YARN.fullmatch(line)) is not None:
            (scoped if line[:1].isspace() else registries).append(found[1])
    return Named((*_known("npm", registries), *_known("files", scoped)), uses_public=not registries)


def _cargo(reader: _Reader) -> Named:
    env = reader.env
    home = env.get("CARGO_HOME") or os.path.join(reader.home, ".cargo")
    said = reader.toml(os.path.join(home, "config.toml")) or reader.toml(os.path.join(home, "config"))
    urls = [
        value
        for name, value in env.items()
        if (name.startswith("CARGO_REGISTRIES_") and name.endswith("_INDEX")) or name == "CARGO_REGISTRY_INDEX"
    ]
    for table in _values(said.get("registries")):
        urls += _texts(table.get("index"))
    sources = said.get("source") if isinstance(said.get("source"), dict) else {}
    assert isinstance(sources, dict)
    for table in _values(sources):
        urls += [*_texts(table.get("registry")), *_texts(table.get("git"))]
    official = sources.get("crates-io")
    is_replaced = isinstance(official, dict) and "replace-with" in official
    return Named(tuple(_cargo_indexes(urls)), uses_public=not is_replaced)


def _cargo_indexes(urls: Iterable[str]) -> Iterator[Index]:
    for url in urls:
        scheme, plus, rest = url.partition("+")
        is_sparse = bool(plus) and scheme == "sparse"
        yield from _known(
            "cargo" if is_sparse else "files", [rest if plus and scheme in ("sparse", "registry") else url]
        )


def _values(value: object) -> list[dict[str, Any]]:
    return _tables(list(value.values())) if isinstance(value, dict) else []


def _go(reader: _Reader) -> Named:
    env = reader.env
    folder = os.path.join(reader.home, "Library", "Application Support") if sys.platform == "darwin" else reader.config
    path = env.get("GOENV") or os.path.join(folder, "go", "env")
    said = {} if path == "off" else dict(line.split("=", 1) for line in reader.text(path).splitlines() if "=" in line)
    said |= {name: env[name] for name in ("GOPROXY", "GOSUMDB") if env.get(name)}
    proxies = said.get("GOPROXY", "").replace("|", ",").split(",")
    proxies = [each for word in proxies if (each := word.strip())]
    if "off" in proxies[:1]:
        return Named((), uses_public=False)
    database = _checksum_database(said.get("GOSUMDB", "").strip() or GO_CHECKSUMS)
    others = () if database is None else (database,)
    return Named(tuple(_known("files", proxies)), uses_public=not proxies, others=others)


def _checksum_database(words: str) -> Address | None:
    """The host of the database in GOSUMDB: `NAME`, `NAME+KEY` or `NAME+KEY URL`."""
    if words == "off":
        return None
    name, _blank, url = words.partition(" ")
    url = url.strip() or name.partition("+")[0]
    return address_of(url if "://" in url else f"https://{url}")


_READERS: Final[dict[Tool, Callable[[_Reader], Named]]] = {
    "pip": _pip,
    "uv": _uv,
    "npm": _npm,
    "yarn": _yarn,
    "cargo": _cargo,
    "go": _go,
}
