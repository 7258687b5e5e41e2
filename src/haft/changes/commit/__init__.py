"""Committing: from a change set to the tree that it describes, whole or not at all.

`entry` and `manifest` are the change set, `plan` and `steps` what brings it about, `commit` the journal around them."""
