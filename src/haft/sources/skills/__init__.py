"""Skills: folders with a `SKILL.md` that teach an agent something, and may bring tools.

`Skills` finds and reads them, `Activations` knows which are active, `SkillTool` is how an agent takes one up. What a
skill's own tools are is not known here: those are a format's.
"""

from haft.sources.skills.activations import Activations
from haft.sources.skills.discover import Skills
from haft.sources.skills.invoke import SkillTool
from haft.sources.skills.skill import Skill

__all__ = ["Activations", "Skill", "SkillTool", "Skills"]
