"""The caches in a home that calls have of their own: what lies there for a call is not what lies there on the host."""

from __future__ import annotations

from typing import Final

CACHES: Final = {"cache": ".cache", "npm": ".npm", "cargo": ".cargo/registry", "go": "go/pkg"}
"""Writable and kept between calls, one set for each workspace; by their name in the state home, the place in a home."""
