"""What the tests of hooked calls share."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def rules(tmp_path, monkeypatch):
    """The person's own rules: what these tests run may run, unless they say otherwise."""
    config = tmp_path / "config" / "haft"
    config.mkdir(parents=True)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(config.parent))

    def write(*rules):
        (config / "haft.toml").write_text("".join(f'[[permissions]]\ntool = "shell"\n{rule}\n' for rule in rules))

    write('action = "allow"')
    return write
