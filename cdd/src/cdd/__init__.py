"""Context-driven development: the working context of a piece of work, a track, kept as files under `.context/`.

`cli` has the commands and `toolbox` places their executables; what they do lies in modules named for the thing inside:
`tracks`, `plan`, `decisions`, `pack`, `view`, `agents`. Below them are `workspace`, `files`, `names` and `moments`.
Nothing but click is needed, and nothing is read or written at import.
"""

__version__ = "0.1.0"
