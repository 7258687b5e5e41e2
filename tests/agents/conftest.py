"""Makes the modules beside it importable. Tests that start real agents run only with `make test-agents`."""

import os
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))

collect_ignore_glob = [] if os.environ.get("HAFT_AGENTS") else ["test_real_*.py"]
