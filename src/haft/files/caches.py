"""The cache directories in a home directory. A call does not see these directories, but others in their place, which
haft keeps for calls."""

from __future__ import annotations

from typing import Final

CACHES: Final = {"cache": ".cache", "npm": ".npm", "cargo": ".cargo/registry", "go": "go/pkg"}
"""For each name of a cache in the state home, its path in a home directory. The caches are writable and kept between
calls; each workspace has its own."""
