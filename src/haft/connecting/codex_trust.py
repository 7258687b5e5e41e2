"""Codex's trust in hooks. Codex skips a hook until the person has trusted it, and keeps the trust in its `config.toml`:

    [hooks.state."HOOKS FILE:EVENT:GROUP:HANDLER"]
    trusted_hash = "sha256:…"

The hash is over the hook's definition, in canonical JSON. `haft connect` shows this entry to the person, like every
other change, and writes it after the yes. A newer Codex that computes the hash in another way shows haft's hooks as
changed, and skips them: `/hooks` in Codex trusts them again, and the tests with the real Codex notice it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any, Final

from haft.connecting.json_text import parse

_EVENTS: Final = {"PreToolUse": "pre_tool_use", "PostToolUse": "post_tool_use"}
_DEFAULT_SECONDS: Final = 600


def trust_entries(file: str, text: str, is_ours: Callable[[Any], bool]) -> dict[str, dict[str, str]]:
    """The key and the value of the trust for each of haft's hooks in the text of a `hooks.json`."""
    found = {}
    hooks = parse(text).value.get("hooks", {})
    for event, label in _EVENTS.items():
        groups = hooks.get(event, [])
        for place, group in enumerate(groups if isinstance(groups, list) else []):
            if isinstance(group, dict) and is_ours(group):
                for number, handler in enumerate(group["hooks"]):
                    found[f"{file}:{label}:{place}:{number}"] = {"trusted_hash": _hash(label, group, handler)}
    return found


def _hash(label: str, group: dict[str, Any], handler: dict[str, Any]) -> str:
    """The hash of a hook as Codex 0.166 computes it. Values that are not given are left out, except for the defaults of
    `async` and `timeout`."""
    shape: dict[str, Any] = {
        "type": "command",
        "command": handler["command"],
        "timeout": handler.get("timeout", _DEFAULT_SECONDS),
        "async": False,
    }
    if handler.get("statusMessage") is not None:
        shape["statusMessage"] = handler["statusMessage"]
    identity: dict[str, Any] = {"event_name": label, "hooks": [shape]}
    if group.get("matcher") is not None:
        identity["matcher"] = group["matcher"]
    canonical = json.dumps(identity, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return f"sha256:{hashlib.sha256(canonical.encode()).hexdigest()}"
