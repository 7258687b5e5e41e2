"""A terminal of its own for an interactive program: a tmux server that ends with the test.

with Terminal(base, ["claude", prompt], cwd, env) as terminal:
    terminal.until("Do you want to proceed?"); terminal.press("Enter")
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
import time
from pathlib import Path
from typing import Self

import pytest

PATIENCE = 240


class Terminal:
    """A program in tmux, 160 columns wide."""

    def __init__(self, base: Path, command: list[str], cwd: Path, env: dict[str, str]) -> None:
        if shutil.which("tmux") is None:
            pytest.skip("tmux is not installed")
        self._tmux = ["tmux", "-S", str(base / "tmux"), "-f", "/dev/null"]
        self._env = {**env, "TERM": "xterm-256color"}
        line = f"{shlex.join(command)}; echo ended with $?; sleep 600"
        self._start = [*self._tmux, "new-session", "-d", "-x", "160", "-y", "50", "-c", str(cwd), line]

    def __enter__(self) -> Self:
        subprocess.run(self._start, env=self._env, check=True)
        return self

    def __exit__(self, *_) -> None:
        subprocess.run([*self._tmux, "kill-server"], capture_output=True)

    def screen(self) -> str:
        """What the screen shows, with what scrolled away."""
        words = [*self._tmux, "capture-pane", "-p", "-J", "-S", "-500"]
        return subprocess.run(words, capture_output=True, text=True).stdout

    def press(self, *keys: str) -> None:
        """Press keys, by tmux's names."""
        subprocess.run([*self._tmux, "send-keys", *keys], check=True)

    def until(self, *words: str) -> str:
        """Wait until the screen shows one of these words, and return the screen."""
        end = time.monotonic() + PATIENCE
        while not any(word in (screen := self.screen()) for word in words):
            assert time.monotonic() < end, f"waited in vain for {words}:\n{screen}"
            time.sleep(0.3)
        return screen
