"""Says whether a call could reach a host, and which grant allows it or would: `haft permissions test --network HOST`.

Nothing connects to the host, and its name is not looked up. So the answer does not say where the name leads: a granted
name that leads to a private address may still be refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from haft.contracts import BadUsage, Decision, HostGrant, Network, ToolSpec, host_grant

if TYPE_CHECKING:
    from haft.service.service import ToolService

HTTPS_PORT = 443

Verdict = Literal["allowed", "asked", "refused"]


@dataclass(frozen=True, slots=True)
class Reach:
    """Whether a call could reach one port of a host."""

    host: str
    port: int
    verdict: Verdict
    """`allowed`: the host is granted. `asked`: it is not, and a person is asked, if there is one. `refused`: nobody is
    asked."""
    reason: str
    grant: str | None = None
    """The grant that covers the host, as it is written; `true` for the whole network."""
    by: str | None = None
    """Where that grant is written."""
    to_allow: str | None = None
    """The smallest grant that would allow it; None if the host is granted already, or no grant would help."""

    def to_json(self) -> dict[str, Any]:
        return {
            "host": self.host,
            "port": self.port,
            "verdict": self.verdict,
            "reason": self.reason,
            "grant": self.grant,
            "by": self.by,
            "toAllow": self.to_allow,
        }


def one_host(text: str) -> HostGrant:
    """The host and port that a person names. Without a port, it is the port of HTTPS. Raises `BadUsage` if this is not
    one port of one host."""
    try:
        bare = host_grant(f"{text}:{HTTPS_PORT}") if not text.startswith("@") else None
    except ValueError:
        bare = None
    try:
        target = bare or host_grant(text)
    except ValueError as error:
        raise BadUsage(f"`--network`: {error}") from error
    if target.wild or target.within or len(target.ports) != 1 or target.ports[0][0] != target.ports[0][1]:
        raise BadUsage(
            f"`--network`: `{text}` is not one host", hint="write HOST or HOST:PORT, for example `registry.example:443`"
        )
    return target


async def network_reach(service: ToolService, decision: Decision, tool: str, host: str) -> Reach:
    """Whether a call of `tool` about which haft decides so could reach a host."""
    target = one_host(host)
    spec = service.catalogue.get(tool, service.thread).spec
    return await _Question(service, decision, spec, target).answer()


@dataclass(frozen=True, slots=True)
class _Question:
    service: ToolService
    decision: Decision
    spec: ToolSpec
    target: HostGrant

    @property
    def _where(self) -> str:
        host = self.target.host
        return f"[{host}]:{self._port}" if ":" in host else f"{host}:{self._port}"

    @property
    def _port(self) -> int:
        return self.target.ports[0][0]

    async def answer(self) -> Reach:
        if self.decision.action == "reject":
            return self._reach("refused", "the call is rejected")
        if self.spec.hosting in ("in-process", "remote"):
            return self._reach("allowed", "no sandbox confines the tool's own code")
        never = self.service.config.never_network
        if never is not None:
            return self._reach("refused", f"`sandbox.network` is `never` ({never}), and no grant opens it")
        granted = self._granted()
        for source, network in granted:
            if network is True:
                return self._reach("allowed", f"the whole network is granted{self._once()}", "true", source)
        return await self._by_host([(source, hosts) for source, hosts in granted if isinstance(hosts, tuple)])

    async def _by_host(self, granted: list[tuple[str, tuple[str, ...]]]) -> Reach:
        sandbox = self.service._host.sandbox
        missing = await sandbox.no_network_by_host()
        if missing is not None and granted:
            return self._reach("refused", f"this machine cannot restrict the network to hosts: {missing}")
        if missing is not None and not (await sandbox.ready()).layers:
            return self._reach("allowed", f"no sandbox confines the call: {missing}")
        for source, hosts in granted:
            for each in (await sandbox.hosts.resolve(hosts))[1]:
                if each.covers(self.target.host, self._port):
                    return self._reach("allowed", f"{self._where} is granted{self._once()}", each.grant, source)
        return self._not_granted()

    def _once(self) -> str:
        return ", once the call is approved" if self.decision.action in ("ask", "delegate") else ""

    def _not_granted(self) -> Reach:
        why = f"{self._where} is not granted"
        if self.decision.action == "try":
            why, verdict = f"{why}, and nobody is asked about the connections of a trial run", "refused"
        elif self.decision.unasked:
            why, verdict = f"{why}, and nobody is asked, because the call runs without approval", "refused"
        elif self.spec.hosting == "session":
            why, verdict = f"{why} to the process of the tool, which outlives its calls", "refused"
        elif not self.service.config.values.get("sandbox.network_ask_seconds", 1):
            why, verdict = f"{why}, and `sandbox.network_ask_seconds` is 0", "refused"
        else:
            why, verdict = f"{why}: the connection waits for the answer of a person, if somebody can be asked", "asked"
        return self._reach(verdict, why, to_allow=self._where)  # type: ignore[arg-type]

    def _granted(self) -> list[tuple[str, Network]]:
        """The grants of the network that the call would have, each with its source."""
        config = self.service.config
        setting = f"`sandbox.network` ({config.sources['sandbox.network']})"
        found: list[tuple[str, Network]] = [(setting, config.sandbox_network)]
        is_session = self.spec.hosting == "session"
        if is_session:
            found.append(("the `grant` of the plugin", self.spec.grants.network))
        if self.decision.action != "try" and not (is_session and self.spec.keeps_state):
            found += [(source, grants.network) for source, grants in self.decision.granted_by]
        return [(source, network) for source, network in found if network]

    def _reach(
        self,
        verdict: Verdict,
        reason: str,
        grant: str | None = None,
        by: str | None = None,
        to_allow: str | None = None,
    ) -> Reach:
        return Reach(self.target.host, self._port, verdict, reason, grant, by, to_allow)
