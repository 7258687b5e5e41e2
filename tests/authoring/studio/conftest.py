"""Templates to pack, and a directory to install them into."""

import json
import os
import stat
import zipfile

import pytest

SOURCE = '''"""
Read a JSON file of this project. Use it for settings, never for secrets.
"""
from typing import Any
from pydantic import BaseModel, Field

class UserParameters(BaseModel):
    pass

class ToolParameters(BaseModel):
    path: str = Field(description="which file")

def run_tool(config: UserParameters, args: ToolParameters) -> Any:
    return args.path

OUTPUT_KEY = "tool_output"

if __name__ == "__main__":
    print(OUTPUT_KEY, run_tool(UserParameters(), ToolParameters(path="x")))
'''


@pytest.fixture
def make(tmp_path):
    """Makes the folder of a template that has nothing against it."""

    def made(name="json_reader", source=SOURCE, **files):
        folder = tmp_path / "sources" / name
        folder.mkdir(parents=True)
        (folder / "tool.py").write_text(source)
        (folder / "requirements.txt").write_text("pydantic\n")
        for path, content in files.items():
            (folder / path).write_text(content)
        return folder

    return made


@pytest.fixture
def place(tmp_path):
    """An empty directory of templates."""
    directory = tmp_path / "templates"
    directory.mkdir()
    return directory


def entry(name="JSON Reader", folder="studio-data/tool_templates/json_reader_abc123", **other):
    return {
        "id": "d8a1c0de-0000-4000-8000-000000000001",
        "name": name,
        "python_code_file_name": "tool.py",
        "python_requirements_file_name": "requirements.txt",
        "source_folder_path": folder,
        "tool_image_path": "",
        "is_venv_tool": True,
        **other,
    }


def manifest(*entries, **other):
    return json.dumps({"template_version": "0.0.1", "tool_templates": list(entries), **other})


@pytest.fixture
def zip_of(tmp_path):
    """Writes a ZIP by hand: the files of one good template, then others; a text, or a text with a mode."""

    def made(*more, said=None, folder="studio-data/tool_templates/json_reader_abc123", good=True):
        path = tmp_path / "by-hand.zip"
        files = [("workflow_template.json", manifest(entry()) if said is None else said)] if said != "" else []
        files += [(f"{folder}/tool.py", SOURCE), (f"{folder}/requirements.txt", "pydantic\n")] if good else []
        with zipfile.ZipFile(path, "w") as archive:
            for name, content, *mode in [*files, *more]:
                info = zipfile.ZipInfo(name)
                info.compress_type = zipfile.ZIP_DEFLATED
                info.external_attr = (mode[0] if mode else 0o100644) << 16
                archive.writestr(info, content)
        return path

    return made


def tree(folder, but=()):
    """Every path beneath a folder, with what it holds and whether it can be run; None for a directory."""
    found = {}
    for above, directories, files in os.walk(folder):
        for name in directories:
            found[os.path.relpath(os.path.join(above, name), folder)] = None
        for name in files:
            path = os.path.join(above, name)
            with open(path, "rb") as file:
                found[os.path.relpath(path, folder)] = (file.read(), bool(os.stat(path).st_mode & stat.S_IXUSR))
    return {path: what for path, what in found.items() if path not in but}
