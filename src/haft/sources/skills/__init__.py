"""Skills: folders with a `SKILL.md` that teach an agent something, and may contain tools.

`Skills` finds and reads skills, `Activations` stores which skills are active, and agents read a skill with `SkillTool`.
The tools inside a skill are handled by the source of their format.
"""

from typing import TYPE_CHECKING

from haft.lazy import face

if TYPE_CHECKING:
    from haft.sources.skills.activations import Activations
    from haft.sources.skills.check import check_skill
    from haft.sources.skills.discover import USER_PLACE, WORKSPACE_PLACE, Skills
    from haft.sources.skills.front_matter import (
        LONGEST_DESCRIPTION,
        MOST_BYTES,
        FrontMatter,
        is_skill_name,
        read_front_matter,
    )
    from haft.sources.skills.invoke import SkillTool
    from haft.sources.skills.skill import LARGEST_TEXT, REFERENCES, SKILL_FILE, TOOL_FOLDERS, Skill, lies_in
    from haft.sources.skills.texts import server_names
else:
    __getattr__ = face(
        __name__,
        {
            "activations": "Activations",
            "check": "check_skill",
            "discover": "Skills USER_PLACE WORKSPACE_PLACE",
            "front_matter": "FrontMatter LONGEST_DESCRIPTION MOST_BYTES is_skill_name read_front_matter",
            "invoke": "SkillTool",
            "texts": "server_names",
            "skill": "LARGEST_TEXT REFERENCES SKILL_FILE Skill TOOL_FOLDERS lies_in",
        },
    )
