"""Cache directories in a home directory for which calls have their own: there, a call sees other files than the
host."""

from __future__ import annotations

from typing import Final

CACHES: Final = {"cache": ".cache", "npm": ".npm", "cargo": ".cargo/registry", "go": "go/pkg"}
"""For each name of a cache in the state home, its path in a home directory. The caches are writable and kept between
calls; each workspace has its own."""
