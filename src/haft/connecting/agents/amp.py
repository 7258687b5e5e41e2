"""Amp. Written from its documentation."""

from __future__ import annotations

from typing import Final

from haft.connecting.agents.agent import DOCUMENTED, Agent, Place, Replacing

_SETTINGS: Final = Place(
    "~/.config/amp/settings.json", variable="XDG_CONFIG_HOME", replaced="~/.config", others=("settings.jsonc",)
)
_PROJECT: Final = Place(".amp/settings.json", others=("settings.jsonc",))

AMP: Final = Agent(
    id="amp",
    title="Amp",
    executables=("amp",),
    client_names=("amp",),
    servers_key="amp.mcpServers",
    user_servers=_SETTINGS,
    project_servers=_PROJECT,
    folders=(
        Place("~/.config/amp", variable="XDG_CONFIG_HOME", replaced="~/.config"),
        Place("~/.local/share/amp", variable="XDG_DATA_HOME", replaced="~/.local/share"),
        Place("~/.cache/amp", variable="XDG_CACHE_HOME", replaced="~/.cache"),
    ),
    model_hosts=("ampcode.com", "*.ampcode.com"),
    key_variables=("AMP_API_KEY", "AMP_URL"),
    carried=(".local/share/amp/**",),
    not_carried=(".local/share/amp/bin/**",),
    dropped=(".cache/amp/**",),
    replacing=Replacing(
        ("Bash", "create_file", "edit_file", "undo_edit", "Read", "Grep", "glob"), user=_SETTINGS, project=_PROJECT
    ),
    version=DOCUMENTED,
)
