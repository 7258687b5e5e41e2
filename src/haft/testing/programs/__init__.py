"""Program stubs: executables that stand for real programs while a tool is tested, and that record their calls."""

from typing import TYPE_CHECKING

from haft.lazy import face

if TYPE_CHECKING:
    from haft.testing.programs.stubs import ProgramStubs
else:
    __getattr__ = face(__name__, {"stubs": "ProgramStubs"})

__all__ = ["ProgramStubs"]
