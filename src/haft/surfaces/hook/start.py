"""The program that agents start: `python -I -S start.py AGENT`, and `start.py shell TICKET COMMAND`.

`start_hook.py` has what it does. Python compiles this file at every start, and keeps the other one compiled.
"""

import _frozen_importlib_external as loading
import posix
import sys


def load(name: str):  # type: ignore[no-untyped-def]  # noqa: ANN201  only modules know `ModuleType`
    """A module in the directory of this file."""
    path = __file__[: -len("start.py")] + name + ".py"
    module = type(sys)(name)
    module.__file__ = path
    sys.modules[name] = module
    code = loading.SourceFileLoader(name, path).get_code(name)
    exec(code, module.__dict__)  # type: ignore[arg-type]  # noqa: S102  haft's own code; it raises if there is none
    return module


if __name__ == "__main__":
    try:
        main = load("start_hook").main
    except BaseException:  # Whatever it is: an agent lets the call pass if its hook ends with another code than 2.
        posix.write(2, b"haft denied this call, because its hook could not be loaded. `haft doctor` says more.\n")
        posix._exit(2)
    main()
