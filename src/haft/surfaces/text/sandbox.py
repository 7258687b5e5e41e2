"""Sandbox and limits of a call as text, for the prompt and for `haft show`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from haft.contracts import PROCESS_LIMITS, Confinement, Grants, network_json
from haft.lazy import regex
from haft.surfaces.text.json_text import to_json_text
from haft.surfaces.text.terminal import one_line

MOST_CONNECTIONS: Final = 20
_PLAIN: Final = regex(r"[\w./~@+:=*-]+", re.ASCII)


def sandbox_words(confinement: Confinement, workspace: str) -> str:
    """The sandbox that a call would run in, on one line."""
    known = confinement.to_json()
    openings = [f"{label} {words}" for label, words in _openings(known, workspace)]
    reason = f" ({one_line(confinement.reason)})" if confinement.reason else ""
    if confinement.profile == "none":
        return ", ".join([f"none{reason}", *openings])
    return ", ".join([_profile(known), *openings]) + reason


def sandbox_lines(confinement: Mapping[str, Any], workspace: str) -> Iterator[str]:
    """The sandbox that a call ran in. The records of earlier versions have fewer fields."""
    yield f"sandbox: {_profile(confinement)}"
    for label, words in _openings(confinement, workspace):
        yield f"  {label}: {words}"
    for connection in confinement.get("connections", ())[:MOST_CONNECTIONS]:
        yield f"  {connection_words(connection)}"
    if (more := len(confinement.get("connections", ())) - MOST_CONNECTIONS) > 0:
        yield f"  and {more} more connections: `--json` shows all"
    if confinement.get("scratch") == "thread":
        yield "  /tmp: its thread's, which is not part of undo"
    if confinement.get("layers"):
        yield f"  enforced by: {_listed(confinement['layers'])}"
    if confinement.get("reason"):
        yield f"  why: {one_line(confinement['reason'])}"


def connection_words(connection: Mapping[str, Any]) -> str:
    """A connection of a call on one line: where to, how much was sent and received, and who allowed or refused it."""
    host, port = connection["host"], connection["port"]
    where = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    times = f", {connection['count']} times" if connection["count"] > 1 else ""
    reason = f": {connection['reason']}" if connection["reason"] else ""
    protocol = "" if connection["protocol"] == "tcp" else f" ({connection['protocol'].upper()})"
    if not connection["allowed"]:
        return one_line(f"refused: {where}{protocol}{times}{reason}")
    amounts = f"{connection['sent']:_} bytes sent, {connection['received']:_} received in {connection['seconds']:.3g} s"
    by = f", allowed by {connection['by']}" if connection["by"] else ""
    return one_line(f"connected to: {where}{times}, {amounts}{by}{reason}")


def grant_words(grants: Grants) -> str:
    """The grants, as they are written in a configuration file."""
    lists = [(name, list(getattr(grants, name))) for name in ("env", "path", "read", "write")]
    words = [f"network = {one_line(to_json_text(network_json(grants.network)))}"] if grants.network else []
    words += ["scratch = true"] if grants.scratch else []
    words += [f"{name} = {one_line(to_json_text(found))}" for name, found in lists if found]
    return ", ".join(words) or "nothing"


def limits_lines(limits: Mapping[str, Any]) -> Iterator[str]:
    """The limits of a call, and the mechanism that enforces each limit of its processes."""
    applied: Mapping[str, Any] = limits["applied"]
    enforced: Mapping[str, str] = limits.get("enforced", {})
    own = ", ".join(_limit(name, value) for name, value in applied.items() if name not in enforced)
    hit = f"; hit: {one_line(limits['hit'])}" if limits["hit"] else ""
    yield f"limits: {own or 'none'}{hit}"
    for mechanism in dict.fromkeys(enforced.values()):
        # Zero means that there is no limit, so no mechanism is named.
        held = [
            _limit(name, applied.get(name))
            for name, by in enforced.items()
            if by == mechanism and not (name in PROCESS_LIMITS and applied.get(name) == 0)
        ]
        if held:
            yield f"  by {one_line(mechanism)}: {', '.join(held)}"


def _profile(confinement: Mapping[str, Any]) -> str:
    return f"{one_line(confinement['profile'])}, {_network(confinement)}"


def _network(confinement: Mapping[str, Any]) -> str:
    """The network and the `/tmp` of a call, in words. They are shown together, because a tool with network could send
    away files that another tool left in `/tmp`."""
    network = confinement["network"]
    if not network:
        return "no network"
    shared = {"thread": ", with this thread's /tmp", "call": ", an empty /tmp"}
    return network_words(network) + shared.get(confinement.get("scratch") or "", "")


def network_words(network: bool | Sequence[str]) -> str:
    """An opened network in words."""
    return "the whole network" if isinstance(network, bool) else f"network only to {_listed(network)}"


def _openings(confinement: Mapping[str, Any], workspace: str) -> Iterator[tuple[str, str]]:
    """What the call may reach in addition to its profile: pairs of a name and the paths, variables or programs."""
    written = [path for path in confinement.get("writable", ()) if path not in (workspace, os.path.realpath(workspace))]
    for label, found in (
        ("may write", written),
        ("may read", confinement.get("readable", ())),
        ("gets", confinement.get("env", ())),
        ("on its PATH", confinement.get("path", ())),
    ):
        if found:
            yield label, _listed(found)


def _listed(words: Any) -> str:
    """The words, separated by commas. A word with unusual characters is quoted."""
    return ", ".join(word if _PLAIN.fullmatch(word) else one_line(to_json_text(word)) for word in words)


def _limit(name: str, value: Any) -> str:
    if value is None:
        return one_line(name)
    return one_line(f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}")
