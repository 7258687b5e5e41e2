"""Amp toolbox executables: any program that answers TOOLBOX_ACTION=describe and does TOOLBOX_ACTION=execute.

`finding` looks at directories, `asking` and `reading` learn what a file is, `describing` does that for many at once,
`source` keeps what is known, `tool` and `wire` run it. Importing this room is cheap: what asks and runs is
imported on use.
"""

from haft.sources.amp_toolbox.finding import Candidate, Place, candidate, standard_places
from haft.sources.amp_toolbox.source import Separators, Toolboxes, as_found

__all__ = ["Candidate", "Place", "Separators", "Toolboxes", "as_found", "candidate", "standard_places"]
