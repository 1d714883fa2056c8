"""Each kind of page in a real browser: nothing overflows, all can be read, and nothing is asked of the network."""

from __future__ import annotations

import pytest
from envkit.bench import record
from envkit.checks.doctor.finding import found
from envkit.checks.finding_messages import PowersaveGovernor
from envkit.engines.messages import ExitStatus

from tests import records
from tests.cluster.fleet.nodes import fleet, node
from tests.report import test_epoch_ends, test_grid, test_multi_workload
from tests.report.planted import NOT_IN_EFFECT, OTHER_LOSSES, disturbed, failed
from tests.report.test_pictures import CALIBRATION, trained
from tests.reports import events_of
from tests.simulation import times
from tests.tuning.planted_engine import planted

LONG_NAMES = {
    "jemalloc-retain-hugepages": {"seconds": times(0.6)},
    "glibc-retain": {"seconds": times(0.7)},
    "onednn-bf16": {"seconds": times(0.9), **OTHER_LOSSES},
    "intel-omp": {"seconds": times(1.02)},
    "tcmalloc-retain-with-a-long-name": {"seconds": times(1.2)},
    "kmp-under-libgomp": NOT_IN_EFFECT,
    "mimalloc-retain": {"seconds": times(0.65)},
}
FINDING = found("governor", PowersaveGovernor()).to_json()
RECORDS = {
    "one profile": lambda: disturbed(events_of(10, calibration=CALIBRATION, findings=[FINDING]), 1, 4),
    "several profiles": lambda: disturbed(events_of(12, others=LONG_NAMES), 3),
    "matrix": test_multi_workload.events,
    "calibration": lambda: events_of(mine={"seconds": times(1.001)}, profile="baseline"),
    "loader's grid": test_grid.events,
    "loader's epochs": test_epoch_ends.events,
    "until a target": lambda: trained(others=LONG_NAMES),
    "failed": lambda: failed(events_of(), problem=ExitStatus(3), stderr=f"Error: {'x' * 300}\n"),
    "not in effect": lambda: events_of(mine=NOT_IN_EFFECT),
    "nothing measured": lambda: events_of(blocks=0, ended=None),
    "baseline alone": lambda: records.run_events(records.arm("baseline")),
    "two engines": lambda: records.run_events(
        records.arm("local", "baseline", "local"), records.arm("docker", "baseline", "docker")
    ),
    "synthetic data": lambda: events_of(study={"data": "synthetic"}, profile=f"{'long-' * 30}name"),
}


@pytest.fixture
def written(cli, tmp_path):
    """Write the page of a run's folder; returns its file."""

    def write(folder):
        path = tmp_path / "page.html"
        result = cli("report", folder, "--html", path)
        assert result.returncode == 0, result.stderr
        return path

    return write


@pytest.mark.parametrize("kind", RECORDS)
def test_a_page_of_a_record(faults, written, tmp_path, kind):
    begun, *rest = RECORDS[kind]()
    command = ["/somewhere/__main__.py", "bench", "mine", "--budget", "60s"]
    folder = records.write(tmp_path / "run", [{**begun, "command": command, "runner_version": "0.1.0"}, *rest])
    assert faults(written(folder)) == []


def test_a_page_of_a_profile_that_is_taken_apart(
    faults, written, cli, simulation, monkeypatch, write_profile, run_folder
):
    planted(monkeypatch, simulation, lambda variables: 0.4 if "OMP_WAIT_POLICY" in variables else 0.0)
    mine = write_profile("mine", "env: {OMP_WAIT_POLICY: passive, OMP_STACKSIZE: 4M, OMP_SCHEDULE: static}\n")
    fixed = ["--python", simulation.python, "--data", "synthetic", "--steps", 3, "--blocks", 12]
    assert cli("ablate", mine, *fixed, "--output", run_folder).returncode == 0
    assert faults(written(run_folder)) == []


@pytest.mark.parametrize(
    ("several", "workers"),
    [(("--nproc", 2), {"baseline on 2 ranks": 0.625, "mine on 2 ranks": 0.5, "baseline on 1/2": 1.0}),
     (("--instances", 2), {"baseline x 2": 1.6, "mine": 0.5, "mine x 2": 0.8})],
    ids=["ranks", "instances"],
)  # fmt: skip
def test_a_page_of_several_processes(faults, written, bench, simulation, instant, run_folder, several, workers):
    for name, factor in workers.items():
        simulation.worker(name, seconds=times(factor))
    assert bench("mine", *several, "--blocks", 8).returncode == 0
    assert faults(written(run_folder)) == []


def test_a_page_of_a_fleet(faults, cli, tmp_path):
    place = fleet(tmp_path / "fleet", 40)
    for name in ("n03", "n07", "n11"):
        node(place, name, 0.25, fingerprint={"thp_enabled": "never"})
    node(place, "other", fingerprint={"cpu_model": "Another CPU, whose model has quite a long name"})
    node(place, "broken").joinpath(record.FILE_NAME).write_text("nonsense\n")
    path = tmp_path / "fleet.html"
    assert cli("fleet", "report", place, "--html", path).returncode == 1
    assert faults(path) == []


def test_a_page_of_a_fleet_without_slow_nodes(faults, cli, tmp_path):
    path = tmp_path / "fleet.html"
    assert cli("fleet", "report", fleet(tmp_path / "fleet", 7), "--html", path).returncode == 0
    assert faults(path) == []


@pytest.mark.parametrize(
    ("body", "fault"),
    [("<p style='width: 2000px'>wide</p>", "the page is "),
     ("<div style='width: 90px; overflow: hidden'><p style='width: 200px'>hidden</p></div>", "is cut off"),
     ("<div style='overflow: auto'><p style='width: 3000px'>scrolls</p></div>", "without a name"),
     ("<p style='color: #888'>pale</p>", "color-contrast"),
     ("<svg viewBox='0 0 100 9' width='100'><text y='9' style='fill: #888; font-size: 12px'>pale</text></svg>",
      "'pale' has a contrast of 3.5"),
     ("<svg viewBox='0 0 300 9' width='100'><text y='9' style='font-size: 12px'>small</text></svg>",
      "'small' is 4.0 pixels high"),
     ("<script>console.error('oh')</script>", "console: oh"),
     ("<script>nonsense()</script>", "error: nonsense is not defined"),
     ("<img src='http://192.0.2.1/a.png' alt='none'>", "request: http://192.0.2.1/a.png")],
    ids=["page", "hidden", "scrolls", "pale", "pale picture", "small picture", "console", "script", "request"],
)  # fmt: skip
def test_faults_are_found(faults, tmp_path, body, fault):
    path = tmp_path / "page.html"
    head = "<!DOCTYPE html><html lang='en'><title>x</title><style>body { background: #fff; margin: 0 }</style>"
    path.write_text(f"{head}<main><h1>x</h1>{body}</main></html>")
    found = faults(path)
    assert any(fault in one for one in found), found
    path.write_text(f"{head}<main><h1>x</h1><p>fine</p></main></html>")
    assert faults(path) == []
