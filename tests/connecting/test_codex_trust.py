"""Codex's trust in hooks, against hashes that Codex 0.169.0 gave (`codex app-server`, `hooks/list`)."""

import json

from haft.connecting.codex_trust import trust_entries

HOOKS = {
    "PreToolUse": [
        {"hooks": [{"type": "command", "command": "true"}]},
        {
            "matcher": "*",
            "hooks": [{"type": "command", "command": "/x/python -I -S '/a b/start.py' codex é", "timeout": 300}],
        },
    ],
    "PostToolUse": [
        {
            "matcher": "*",
            "hooks": [{"type": "command", "command": "y codex", "timeout": 300, "statusMessage": "hm"}],
        }
    ],
}


def test_the_hash_of_a_hook_is_the_one_that_codex_computes():
    assert trust_entries("/c/hooks.json", json.dumps({"hooks": HOOKS}), lambda _group: True) == {
        "/c/hooks.json:pre_tool_use:0:0": {
            "trusted_hash": "sha256:a7de97b60e1412f8e936f33ad7e97c04dfe69190d43e61d14c46265643383835"
        },
        "/c/hooks.json:pre_tool_use:1:0": {
            "trusted_hash": "sha256:cb125a2d1614403ff699b3eeea22c886153d1c8e71fbc00c2237cf65d8d97c71"
        },
        "/c/hooks.json:post_tool_use:0:0": {
            "trusted_hash": "sha256:7c76947e1b58bde3d79b3538066b6d539cf2bee3370ce7428fd8f045893352af"
        },
    }


def test_hooks_of_others_are_not_trusted():
    found = trust_entries("/c/hooks.json", json.dumps({"hooks": HOOKS}), lambda group: "matcher" in group)
    assert "/c/hooks.json:pre_tool_use:0:0" not in found and len(found) == 2
