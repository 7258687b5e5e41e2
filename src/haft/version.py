"""The version of haft."""

__version__ = "0.1.0"
