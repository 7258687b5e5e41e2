"""What of a template is run before its call is known."""

import ast
import subprocess
import sys
import textwrap

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from haft.sources.agent_studio.preload import preloadable_statements

MAIN = '\nif __name__ == "__main__":\n    pass\n'


def quiet(source: str, *own: str) -> bool:
    """Whether all of it can be run ahead."""
    module = ast.parse(textwrap.dedent(source) + MAIN)
    found = preloadable_statements(module, own)
    assert found in (None, len(module.body) - 1)
    return found is not None


EXAMPLE = '''
"""
A simple JSON reader tool.
"""
from pydantic import BaseModel, Field
from typing import Any
import json
import argparse
from pathlib import Path
import sys
import os

ROOT_DIR = Path(__file__).parent
sys.path.append(str(ROOT_DIR))
os.chdir(ROOT_DIR)

class UserParameters(BaseModel):
    pass

class ToolParameters(BaseModel):
    filepath: str = Field(description="The local path.")

def run_tool(config: UserParameters, args: ToolParameters) -> Any:
    return json.dumps(json.load(open(args.filepath)), indent=2)

OUTPUT_KEY = "tool_output"
'''


def test_the_complete_example_is_run_ahead():
    assert quiet(EXAMPLE)


QUIET = [
    "import os\nURL = os.getenv('URL', 'http://localhost').strip()",
    "import os\nURL = os.environ.get('URL')",
    "import re\nWORDS = re.compile('[a-z]+')",
    "import logging\nlog = logging.getLogger(__name__)",
    "from pathlib import Path\nHERE = Path(__file__).resolve().parent\nDATA = HERE / 'data' / 'x.json'",
    "from pathlib import Path\nUP = Path(__file__).parents[1].resolve()",
    "import os\nHERE = os.path.dirname(os.path.realpath(__file__))\nos.chdir(HERE)",
    "from enum import Enum\nclass Kind(str, Enum):\n    A = 'a'\n    B = 'b'",
    "from typing import Optional, List\nclass A:\n    x: Optional[List[int]] = None\n    def __init__(self): print(1)",
    (
        "from pydantic import BaseModel, field_validator\nclass A(BaseModel):\n    x: int = 1\n"
        "    @field_validator('x')\n    @classmethod\n    def check(cls, v): return v"
    ),
    "A: int = 1\nB = [1, {'a': (2, 3)}]\nC = 'a' + 'b'\nD = -1\nasync def f(x: int = 1): open('x')",
    "from __future__ import annotations\nimport numpy as np\nX: np.ndarray",
    "__version__ = '1'\nHEADERS = {'a': 'b'}\nGET = HEADERS.get('a')",
]


@pytest.mark.parametrize("source", QUIET)
def test_what_only_defines_things_is_run_ahead(source):
    assert quiet(source)


LOUD = {
    "arguments": "import sys\nX = sys.argv[1]",
    "arguments by name": "from sys import argv\nX = argv",
    "arguments by another name": "import sys as s\nX = s.argv",
    "arguments through another module": "import os\nX = os.sys.argv",
    "arguments through a dictionary": "import sys\nX = sys.__dict__['argv']",
    "stdin": "import sys\nX = sys.stdin.read()",
    "a stream that is kept": "import sys\nOUT = sys.stdout",
    "input": "X = input()",
    "a file": "X = open('x')",
    "a file by path": "from pathlib import Path\nX = Path('x').read_text()",
    "a link of the workspace": "from pathlib import Path\nX = Path('x').resolve()",
    "a link of the workspace by name": "import os\nX = os.path.realpath('x')",
    "a directory of the workspace": "import os\nos.chdir('x')",
    "the directory": "import os\nX = os.getcwd()",
    "the time": "import time\nX = time.time()",
    "chance": "import random\nX = random.random()",
    "a sibling": "import beside",
    "a part of a sibling": "from beside.part import x",
    "a module of nobody knows where": "import sys\nsys.path.append('lib')\nimport anything",
    "a relative module": "from . import x",
    "all names": "from os.path import *",
    "words": "print('x')",
    "a decorator": "from library import tool\n@tool\ndef f(): pass",
    "a decorator of this file": "def property(f): print(f)\n@property\ndef f(): pass",
    "a decorated class": "from dataclasses import dataclass\n@dataclass\nclass A: pass",
    "a name of this file": "def str(x): print(x)\nX = str(1)",
    "a name of a library": "from library import Field\nX = Field()",
    "a name of another name": "from library import x as Path\nX = Path('x')",
    "a module of another name": "import library as os\nX = os.getenv('x')",
    "a request": "import requests\nX = requests.get('http://localhost')",
    "a request through a name": "import requests\nR = requests\nX = R.get('http://localhost')",
    "a file that is moved": "import os\nos.replace('a', 'b')\n",
    "a file that is moved and kept": "import os\nX = os.replace('a', 'b')",
    "a loop": "for x in range(3): pass",
    "a condition": "import os\nif os.getenv('x'):\n    X = 1",
    "a try": "try:\n    import x\nexcept ImportError:\n    x = None",
    "a block": "with open('x') as f: pass",
    "a comprehension": "X = [open(x) for x in 'ab']",
    "a formatted text": "import os\nX = f'{os.getpid()}'",
    "a call of its own": "def f(): return 1\nX = f()",
    "an instance": "class A:\n    def __init__(self): print(1)\nX = A()",
    "a subclass that is told of": "class A:\n    def __init_subclass__(cls): print(1)\nclass B(A): pass",
    "a metaclass": "class M(type):\n    def x(cls): pass\nclass A(metaclass=M): pass",
    "members that are made": "from enum import Enum\nclass A(Enum):\n    X = 1\n    def __init__(self, x): print(x)",
    "a hook that is assigned": "class A:\n    __init_subclass__ = lambda cls: print(1)\nclass B(A): pass",
    "a default": "def f(x=open('x')): pass",
    "a default of a function without name": "F = lambda x=open('x'): x",
    "an annotation": "def f(x: print('x')): pass",
    "an attribute": "import os\nos.environ = {}",
    "an element": "import os\nos.environ['x'] = 'y'",
    "several names": "A, B = 1, 2",
    "a deletion": "X = 1\ndel X",
    "a walrus": "X = (Y := open('x'))",
    "an assertion": "assert print('x')",
    "a raise": "raise SystemExit(1)",
}


@pytest.mark.parametrize("what", LOUD)
def test_whatever_else_waits_for_the_call(what):
    assert not quiet(LOUD[what], "beside")


def test_only_what_ends_with_one_main_block_is_run_ahead():
    assert preloadable_statements(ast.parse("X = 1"), ()) is None
    assert preloadable_statements(ast.parse(MAIN + MAIN), ()) is None
    assert preloadable_statements(ast.parse(MAIN + "X = 1"), ()) is None
    assert preloadable_statements(ast.parse(MAIN), ()) == 0


def test_what_is_nested_too_deeply_waits_for_the_call():
    node: ast.expr = ast.Constant(1)
    for _ in range(20_000):
        node = ast.UnaryOp(ast.USub(), node)
    module = ast.parse("X = 1" + MAIN)
    module.body[0].value = node
    assert preloadable_statements(module, ()) is None


WATCH = """
import os, sys
def state(): return sorted(os.listdir("/proc/self/fd")), sorted(os.listdir(".")), os.environ.copy()
start = os.getcwd()
for source in sys.stdin.read().split("\\0"):
    before = state()
    try:
        exec(compile(source, "/usr/tool.py", "exec"), {"__name__": "x", "__file__": "/usr/tool.py"})
    except Exception:
        pass
    os.chdir(start)
    assert state() == before, source
"""
PARTS = [*QUIET, *LOUD.values()]


@settings(max_examples=12)
@given(st.lists(st.lists(st.sampled_from(PARTS), min_size=1, max_size=4), min_size=30, max_size=60))
def test_what_is_accepted_prints_nothing_and_leaves_nothing(tmp_path_factory, pieces):
    """Parts are put together in any order: what one binds, another uses."""
    sources = ["\n".join(part) for part in pieces]
    accepted = [source for source in sources if _is_accepted(source)]
    done = subprocess.run(
        [sys.executable, "-I", "-c", WATCH],
        input="\0".join(accepted or ["pass"]),
        capture_output=True,
        text=True,
        cwd=tmp_path_factory.getbasetemp(),
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def _is_accepted(source: str) -> bool:
    try:
        return quiet(source, "beside")
    except SyntaxError:
        return False
