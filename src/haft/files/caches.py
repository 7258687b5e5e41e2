"""The cache directories in a home directory. In their place, a call sees directories that haft keeps for calls, so it
sees other files there than the host."""

from __future__ import annotations

from typing import Final

CACHES: Final = {"cache": ".cache", "npm": ".npm", "cargo": ".cargo/registry", "go": "go/pkg"}
"""For each name of a cache in the state home, its path in a home directory. The caches are writable and kept between
calls; each workspace has its own."""
