"""Which program of an installed package of PyPI runs."""

from haft.toolsets.providers.packages.pypi import _programs


def test_a_name_that_leads_out_of_the_installation_is_no_program(tmp_path):
    lines = ["[console_scripts]", "good-name = a:b", "../../../bin/sh = a:b", ".. = a:b", "[other]", "x = a:b"]
    (tmp_path / "entry_points.txt").write_text("\n".join(lines))
    assert _programs(str(tmp_path)) == {"good-name": "a:b"}
