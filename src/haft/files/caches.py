"""The caches in a home of which calls have their own: a call sees other files there than the host has."""

from __future__ import annotations

from typing import Final

CACHES: Final = {"cache": ".cache", "npm": ".npm", "cargo": ".cargo/registry", "go": "go/pkg"}
"""By the cache's name in the state home, its path in a home. The caches are writable and kept between calls; each
workspace has its own."""
