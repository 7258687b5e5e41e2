"""Check that every import of another package goes through its face. `scripts/faces.py [DIRECTORY]`; exit 1 if one does
not.

A package is a directory of `src/haft`. Its face is its `__init__.py`. `sources`, `authoring` and `testing` hold one
folder for each format or task, and each folder has its own face. The modules of one package may import each other
directly.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

FOLDERS = ("authoring", "sources", "testing")


def face_of(root: Path, module: str) -> str | None:
    """The face through which other packages import `haft.a.b.c`; None if it is not in a package."""
    _, package, *rest = module.split(".")
    if not (root / package).is_dir():
        return None
    if package in FOLDERS and rest and (root / package / rest[0]).is_dir():
        return f"haft.{package}.{rest[0]}"
    return f"haft.{package}"


def is_module(root: Path, name: str) -> bool:
    place = root.joinpath(*name.split(".")[1:])
    return place.is_dir() or place.with_suffix(".py").exists()


def bypassing(root: Path, file: Path) -> Iterator[tuple[int, str, str]]:
    """Line, import and face of each import that bypasses a face."""
    package, *inner = file.relative_to(root).parts
    if not inner:
        return  # The modules of `haft` itself.

    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.Import):
            imports = [(alias.name, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            imports = [(node.module, f"{node.module}.{alias.name}") for alias in node.names]
        else:
            continue
        for module, whole in imports:
            if not module.startswith("haft.") or module.split(".")[1] == package:
                continue
            face = face_of(root, module)
            if face is not None and (module != face or (whole != module and is_module(root, whole))):
                yield node.lineno, whole, face


def main(root: Path) -> int:
    found = [
        f"{file.relative_to(root.parent)}:{line}: {name} is not imported from {face}"
        for file in sorted(root.rglob("*.py"))
        for line, name, face in bypassing(root, file)
    ]
    print("\n".join(found) or "every import of another package goes through its face")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent / "src" / "haft")))
