"""The store: contents by digest, what is kept of them, and for how long."""
