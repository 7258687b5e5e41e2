"""What a running agent is known by."""

from __future__ import annotations

import pytest

from haft.surfaces.hook.agent_process import AgentProcess

RELEASES = "/place/of/ann/.codex/packages/app-server-daemon/releases"


@pytest.mark.parametrize(
    ("program", "version"),
    [
        ("/place/of/ann/.local/share/claude/versions/2.1.327", "2.1.327"),
        # Codex on a terminal runs a copy of itself.
        (f"{RELEASES}/0.169.0-x86_64-unknown-linux-musl/codex", "0.169.0"),
        (f"{RELEASES}/0.169.0-aarch64-apple-darwin/codex", "0.169.0"),
        (f"{RELEASES}/0.170.0-alpha.2-x86_64-unknown-linux-musl/codex", "0.170.0-alpha.2"),
        ("/usr/bin/codex", None),
    ],
)
def test_the_version_is_in_the_path_of_the_program(program: str, version: str | None) -> None:
    assert AgentProcess(1, ("codex",), program).version() == version
