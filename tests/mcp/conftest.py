"""Makes the modules of `conformance/` importable."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent / "conformance"))
