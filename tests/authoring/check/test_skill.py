"""Skills: their front matter."""

import pytest

from haft.sources.skills.check import check_skill

from .conftest import codes

ABOUT = "Make release notes from commits. Use when asked for a changelog."


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"---\nname: my-skill\ndescription: {ABOUT}\n---\n# Text\n", set()),
        (f"# Text\nname: my-skill\ndescription: {ABOUT}\n", {"skill-front-matter"}),
        (f"---\nname: other\ndescription: {ABOUT}\n---\n", {"skill-name"}),
        (f"---\nname: My Skill\ndescription: {ABOUT}\n---\n", {"skill-name"}),
        (f"---\nname: {'x' * 65}\ndescription: {ABOUT}\n---\n", {"skill-name"}),
        (f"---\ndescription: {ABOUT}\n---\n", {"skill-name"}),
        ("---\nname: my-skill\n---\n", {"skill-description"}),
        ("---\nx: y\n---\n", {"skill-name", "skill-description"}),
        (f"---\nname: my-skill\ndescription: {ABOUT * 20}\n---\n", {"skill-description"}),
        ("---\nname: my-skill\ndescription: Stuff\n---\n", {"vague-description"}),
        (f"---\nname: my-skill\ndescription: {ABOUT}\n---\n\u202e\n", {"hidden-characters"}),
    ],
)
def test_front_matter(tmp_path, text, expected):
    folder = tmp_path / "my-skill"
    folder.mkdir()
    (folder / "SKILL.md").write_text(text)
    report = check_skill(str(folder))
    assert report.kind == "skill"
    assert codes(report) == expected
    assert all(finding.path == str(folder / "SKILL.md") for finding in report.findings)


def test_a_skill_without_a_file_behind_its_link_is_said(tmp_path):
    (tmp_path / "SKILL.md").symlink_to("nowhere")
    assert codes(check_skill(str(tmp_path))) == {"dangling-link"}
