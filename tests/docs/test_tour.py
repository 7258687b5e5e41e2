"""`make tour`: with HAFT_MORE all of it; each time the steps that depend on how tools and options are named."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from sampling import IS_WHOLE

TOUR = Path(__file__).resolve().parents[2] / "scripts" / "tour.py"


@pytest.fixture
def tour(tmp_path, monkeypatch):
    for name in ("HAFT_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.setenv("AMP_TOOLBOX", "")
    (tmp_path / "workspace").mkdir()
    monkeypatch.chdir(tmp_path / "workspace")
    read = importlib.util.spec_from_file_location("haft_tour", TOUR)
    module = importlib.util.module_from_spec(read)
    read.loader.exec_module(module)
    return module


def test_the_template_of_the_tour_is_found_by_the_name_that_the_tour_calls_it_by(tour, monkeypatch, capsys):
    haft = tour.haft

    def not_called(*words, **more):
        """A call would make an environment first: here its tool is only looked for."""
        if words[:2] != ("tools", "use"):
            return haft(*words, **more)
        haft("tools", "show", words[2])
        return ""

    monkeypatch.setattr(tour, "haft", not_called)
    tour.template()
    assert "the tour goes on without it" in capsys.readouterr().out


def test_the_deadline_of_the_tour_ends_its_call(tour, capsys):
    tour.deadline()
    assert "`shell` did not end within 0.5 s" in capsys.readouterr().out


@pytest.mark.skipif(not IS_WHOLE, reason="it takes most of a minute")
def test_the_tour_runs_to_its_end():
    done = subprocess.run([sys.executable, str(TOUR)], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "That was haft" in done.stdout, done.stdout[-3000:] + done.stderr
