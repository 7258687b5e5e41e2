"""Agent Studio templates on their way: packed into a ZIP, installed from one, listed and removed.

`places` knows the directories that templates lie in, `gathering` reads a template's folder, `manifest` is the file that
says what a ZIP holds, `packing`, `unpacking`, `installing` and `removing` do what they are called. Nothing of a
template is ever imported or run here.
"""
