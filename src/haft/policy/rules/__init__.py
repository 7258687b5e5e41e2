"""The rules: what was written down about who may do what."""
