"""Committing a change set: all of its changes are applied to the workspace, or none of them.

`entry` and `manifest` describe the change set, `plan` and `steps` apply it, and `journal` makes that safe against
crashes.
"""
