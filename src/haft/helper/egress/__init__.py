"""The egress process: the only process that connects calls with the network, if their connections are decided by host.

Each host process has one. It runs outside all sandboxes, so it confines itself (`confine`) and treats every byte from a
call as hostile. For each call (`call`) it answers look-ups of names (`names`), accepts connections on sockets of the
call's namespace, decides by the call's grants (`grants`), checks the first bytes (`first_bytes`) and copies (`link`).
"""

from __future__ import annotations

from haft.helper.egress.server import main as main
