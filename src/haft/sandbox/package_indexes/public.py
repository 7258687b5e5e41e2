"""The public package indexes: the hosts that each tool uses if its configuration names none.

This is the only file of the project that may name package indexes. It does not say that any machine can reach them.
Each list has the index and the hosts that serve its files. Go's public proxy also redirects large downloads to a host
on which everybody can store files. This host is not listed: through it, a call could send data to anyone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from haft.sandbox.package_indexes.configuration import Tool

_PYTHON: Final = ("pypi.org", "files.pythonhosted.org")

PUBLIC: Final[dict[Tool, tuple[str, ...]]] = {
    "pip": _PYTHON,
    "uv": _PYTHON,
    "npm": ("registry.npmjs.org",),
    "yarn": ("registry.yarnpkg.com",),
    "cargo": ("index.crates.io", "static.crates.io", "crates.io"),
    "go": ("proxy.golang.org",),
}
GO_CHECKSUMS: Final = "sum.golang.org"
"""The database with which go compares the checksums of modules."""
