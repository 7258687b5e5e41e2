"""Context-driven development: keeps the working context of a piece of work, a track, as files under `.context/`.

`cli` has the commands and `toolbox` installs their executables. Each subject has its own module: `tracks`, `plan`,
`decisions`, `pack`, `view`, `agents`. These use `workspace`, `files`, `names` and `timestamps`. The package needs only
click, and reads or writes nothing at import.
"""

__version__ = "0.1.0"
