"""haft: one handle for every agent tool."""

__version__ = "0.1.0"
