"""Guarding: what would run later on the host does not come in unasked."""
