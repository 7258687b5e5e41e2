"""Backups of a state home while hosts run, their restoration, and the check of a whole state home."""
