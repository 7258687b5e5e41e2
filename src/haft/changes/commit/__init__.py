"""Committing a change set: either all of its changes are applied to the workspace, or no change is.

`entry` and `manifest` describe the change set, `plan` and `steps` apply it, and `journal` makes that safe against
crashes.
"""
