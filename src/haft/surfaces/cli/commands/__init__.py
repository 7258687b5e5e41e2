"""The commands, one module each; `permissions/` has several."""
