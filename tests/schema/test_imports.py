"""What these rooms load when they are imported: listing tools must stay cheap."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize("room", ["haft.schema", "haft.registry", "haft.sources", "haft.sources.python"])
def test_importing_a_room_loads_no_heavy_library(room):
    code = (
        f"import sys, {room}; "
        "print([name for name in ('pydantic', 'pydantic_core', 'jsonschema_rs', 'asyncio') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_decorating_a_function_loads_no_heavy_library():
    code = (
        "import sys\nfrom haft.sources.python import tool\n"
        "@tool\ndef add(a: int, b: int) -> int: return a + b\n"
        "assert add(1, 2) == 3\n"
        "print([name for name in ('pydantic', 'jsonschema_rs') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
