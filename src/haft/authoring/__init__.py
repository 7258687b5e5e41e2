"""The tool writer's bench: making tools that work at once, and checking those that there are.

`making` writes fresh tools from the `templates` beside it; `check` says what is wrong with a tool and how to mend it.
The surfaces call them; below are the sources, whose reading of each format is the one that counts here too. Nothing is
imported until it is used.
"""
