"""What `haft doctor` says about agents that use haft now, and about the protection of answers against them."""

from __future__ import annotations

from haft.service.approval_secret import ApprovalSecret
from haft.service.checks import Check
from haft.service.living_clients import belongs_to, clients_alive
from haft.service.process_tree import has_process_tree
from haft.storage import StateHome

_HINT = "`haft approval secret` sets a passphrase that answers then need"


def client_checks(home: StateHome) -> list[Check]:
    """Which agents use haft now, whether this machine can tell their processes from yours, and whether answers need a
    passphrase."""
    names = ", ".join(client.words() for client in clients_alive(home))
    using = f"these use haft now: {names}" if names else "no agent uses haft now"
    own = next((f"; this process may belong to {client.words()}: {why}" for client, why in belongs_to(home)), "")
    if has_process_tree():
        agents = Check("agents", "ok", f"{using}{own}")
    else:
        lack = "this machine does not show the parents of processes: haft recognizes an agent's commands only in the "
        agents = Check(
            "agents", "warn", f"{using}; {lack}agent's own session, or if the agent itself starts them", _HINT
        )
    is_set = ApprovalSecret(home).verifier() is not None
    words = "a passphrase is set: answers from other processes need it" if is_set else "no passphrase is set"
    return [agents, Check("approval", "ok", words)]
