"""Committing a change set: all of it is applied to the workspace, or none of it.

`entry` and `manifest` describe the change set, `plan` and `steps` apply it, and `journal` makes that safe against
crashes.
"""
