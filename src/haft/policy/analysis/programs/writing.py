"""Programs that write files, and only files that their operands name.

Policy treats these programs as not safe, so they are not in the table of `programs`. `line_footprint` uses this table:
it says which operands a program writes, so that calls which touch other files need not wait. An option that an entry
does not list makes the footprint of the whole line unknown.
"""

from __future__ import annotations

from typing import Final, Literal

from haft.policy.analysis.program import Program
from haft.policy.analysis.programs.filters import FILTERS
from haft.values import dataclass, replace

Writes = Literal["operands", "last", "all-but-first", "moved"]
"""Which operands a program writes. `operands`: all. `last`: the last one, or a file of the same name in it if it is a
directory; the others are read. `moved`: like `last`, and the others are deleted. `all-but-first`: the first one is no
path."""


@dataclass(frozen=True, slots=True)
class WritingProgram:
    """Which files one program writes."""

    program: Program
    writes: Writes = "operands"


_COPY: Final = "-f --force -n --no-clobber -v --verbose -T --no-target-directory -p --preserve -u --update --help"
_SED: Final = FILTERS["sed"]

WRITING: Final[dict[str, WritingProgram]] = {
    "cp": WritingProgram(Program(f"{_COPY} -r -R --recursive -a --archive"), "last"),
    "mv": WritingProgram(Program(_COPY), "moved"),
    "rm": WritingProgram(Program("-f --force -r -R --recursive -d --dir -v --verbose --help")),
    "rmdir": WritingProgram(Program("-v --verbose --help")),
    "mkdir": WritingProgram(Program("-p --parents -v --verbose -m=word --mode=word --help")),
    "touch": WritingProgram(Program("-a -m -c --no-create -d=word --date=word -t=word --time=word --help")),
    "truncate": WritingProgram(Program("-c --no-create -s=word --size=word --help")),
    "tee": WritingProgram(Program("-a --append --help")),
    "chmod": WritingProgram(
        Program("-c --changes -f --silent --quiet -v --verbose --help", operands="words"), "all-but-first"
    ),
    # Only without a suffix: `-i.old` also writes a copy of each file under another name.
    "sed": WritingProgram(replace(_SED, options=f"{_SED.options} -i[=word] --in-place[=word]", harmful={})),
}
