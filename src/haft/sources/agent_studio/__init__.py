"""Agent Studio tool templates: a folder with `tool.py` and `requirements.txt` is one tool."""

from typing import TYPE_CHECKING

from haft.lazy import face

if TYPE_CHECKING:
    from haft.sources.agent_studio.check import check_template
    from haft.sources.agent_studio.discover import (
        ENTRY,
        ENVIRONMENT,
        HASH_FILE,
        REQUIREMENTS,
        ConfiguredInstance,
        TemplateDirectory,
    )
    from haft.sources.agent_studio.manifest import MANIFEST_FILE, Manifest, read_manifest
    from haft.sources.agent_studio.names import (
        check_template_name,
        is_template_name,
        name_of_folder,
        new_folder_name,
        slug_of,
    )
    from haft.sources.agent_studio.requirements import NAME, Requirements, parse_requirements, read_requirements
    from haft.sources.agent_studio.source import Templates
    from haft.sources.agent_studio.template import Parameters, Problem
    from haft.sources.agent_studio.template_reader import read_template
else:
    __getattr__ = face(
        __name__,
        {
            "check": "check_template",
            "discover": "ENTRY ENVIRONMENT HASH_FILE TemplateDirectory REQUIREMENTS ConfiguredInstance",
            "manifest": "MANIFEST_FILE Manifest read_manifest",
            "names": "check_template_name is_template_name name_of_folder new_folder_name slug_of",
            "template_reader": "read_template",
            "requirements": "NAME Requirements read_requirements parse_requirements",
            "source": "Templates",
            "template": "Parameters Problem",
        },
    )
