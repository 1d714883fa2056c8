"""The page of profiles that were taken apart, from the records of their runs."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from envkit.cli import measuring

from benchmarks import ablation
from tests import records
from tests.benchmarks.conftest import refusal
from tests.instant_engine import replace_engine
from tests.reports import events_of
from tests.tuning.planted_engine import PlantedEngine


@pytest.fixture
def ablate(cli, simulation, write_profile, tmp_path, monkeypatch):
    """Take a profile apart of which one variable does everything; the run's folder."""
    engine = PlantedEngine(simulation, lambda variables: 0.4 if "OMP_WAIT_POLICY" in variables else 0.0)
    replace_engine(monkeypatch, "local", engine)

    def run(name, variables="OMP_WAIT_POLICY: passive, OMP_STACKSIZE: 4M"):
        path, folder = write_profile(name, f"env: {{{variables}}}\n"), tmp_path / f"20261125-120000-{name}-ablated"
        fixed = ["--python", simulation.python, "--data", "synthetic", "--seed", 7, "--steps", 3, "--blocks", 12]
        result = cli("ablate", path, *fixed, "--output", folder)
        assert result.returncode == 0, result.stderr
        return folder

    return run


def test_each_profile_has_its_settings_and_its_picture(ablate, benchmark_script, page_file):
    result = benchmark_script(ablation, ablate("mine"), ablate("other"), "--page", page_file)
    assert (result.returncode, result.stderr) == (0, "")
    text = page_file.read_text()
    mine, other = (text.split(f"\n## {name}\n")[1].split("\n## ")[0] for name in ("mine", "other"))
    assert "- Why: OMP_WAIT_POLICY gives the speedup alone; OMP_STACKSIZE " in mine
    assert "The run: `envkit ablate " in mine
    row = next(line for line in mine.splitlines() if line.startswith("| OMP_WAIT_POLICY |")).split(" | ")
    assert (row[1][:3], row[3].rstrip(" |")) == ("1.4", "gives the speedup alone")
    assert "**FASTER  other: " in other
    for name in ("mine", "other"):
        assert f'srcset="page-{name}-dark.svg"' in text
        picture = page_file.with_name(f"page-{name}-light.svg").read_text()
        assert "OMP_STACKSIZE alone" in "".join(ElementTree.fromstring(picture).itertext())


def test_the_latest_run_is_taken(ablate, benchmark_script, monkeypatch, page_file):
    monkeypatch.setattr(measuring, "RESULTS", ablate("mine").parent)
    assert benchmark_script(ablation, "--page", page_file).returncode == 0
    assert "\n## mine\n" in page_file.read_text()


def test_what_makes_no_page(ablate, benchmark_script, page_file, tmp_path):
    said = refusal(benchmark_script(ablation, "--page", page_file))
    assert "has no run of a profile that is taken apart yet; make one with: make ablate" in said
    earlier = ablate("mine").rename(tmp_path / "earlier")
    said = refusal(benchmark_script(ablation, earlier, ablate("mine"), "--page", page_file))
    assert "takes mine apart, as another of these runs does; name one" in said
    plain = records.write(tmp_path / "plain", events_of(blocks=12))
    said = refusal(benchmark_script(ablation, plain, "--page", page_file))
    assert "takes no profile apart; runs of make ablate do" in said
    few = records.write(tmp_path / "few", events_of(blocks=2))
    said = refusal(benchmark_script(ablation, few, "--page", page_file))
    assert said.endswith("few: makes no page: no profile has a confidence interval; measure more blocks")
    assert not page_file.exists()
