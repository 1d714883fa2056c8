"""Every claim has a source and profiles, and the page says what came out, whether it was in effect, and the verdict."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from envkit.common.errors import InputError
from envkit.engines import owner
from envkit.profiles import profile
from envkit.rendering import text_of
from envkit.stats.interval import Speedup

from benchmarks import claims, conditions
from benchmarks.claims import HELD, NOT_CONTRADICTED, NOT_HELD, OPEN, Claim
from tests.processes import gone, until
from tests.simulation import times

PLAN = claims.read()


def test_there_are_claims_enough_each_with_a_source_and_profiles():
    assert len(PLAN.claims) >= 8
    assert len({claim.name for claim in PLAN.claims}) == len(PLAN.claims)
    for claim in PLAN.claims:
        assert claim.source.startswith("https://")
        assert claim.original.endswith(".")
        profile.load(claim.profile)
        profile.load(claim.against)
    assert all(each.source.startswith("https://") and each.why.endswith(".") for each in PLAN.untestable)


def test_each_entry_is_one_way_to_train():
    ways = {}
    for claim in PLAN.claims:
        reference, setting = claim.arms
        assert reference != setting
        shared = (claim.workload, claim.condition)
        assert ways.setdefault(reference, (claim.against, "", *shared)) == (claim.against, "", *shared)
        assert ways.setdefault(setting, (claim.profile, claim.library, *shared)) == (
            claim.profile, claim.library, *shared,
        )  # fmt: skip


@pytest.mark.parametrize(
    ("least", "interval", "verdict"),
    [
        (1.4, (1.45, 1.41, 1.5), HELD),
        (1.4, (1.2, 1.1, 1.3), NOT_HELD),
        (1.4, (0.9, 0.8, 0.95), NOT_HELD),
        (1.4, (1.3, 1.1, 1.5), NOT_CONTRADICTED),
        (1.08, (1.05, 0.98, 1.12), OPEN),
        (1.02, (1.0, 0.99, 1.01), NOT_HELD),
        (0.98, (1.0, 0.99, 1.01), HELD),
        (0.98, (1.0, 0.9, 1.1), OPEN),
        (0.98, (0.97, 0.95, 0.99), NOT_CONTRADICTED),
        (0.98, (0.9, 0.85, 0.95), NOT_HELD),
    ],
)
def test_the_verdict_follows_the_whole_interval(least, interval, verdict):
    claim = Claim("x", "", "", least, "better", "baseline", [], "")
    assert claim.verdict(Speedup(*interval, blocks=11, margin=0.02)) == verdict


def written(*changed: str) -> str:
    """A plan with a claim for each way to measure one; ``changed`` are lines that the first gets besides."""
    text = "claims:\n"
    kinds = {
        "fast": ("better", changed),
        "other-network": ("better", ("workload: translation",)),
        "held-back": ("better", ("condition: quota",)),
        "newer": ("newer", ("library: libnew.so.1",)),
        "absent": ("absent", ()),
        "no-such-processor": ("better", ("cpu_flag: quantum",)),
    }
    for name, (setting, more) in kinds.items():
        lines = [
            f"claim: A {name} claim", "source: https://example.org", "least: 1.4", f"profile: {setting}",
            "against: baseline", "shows: [runtime]", "original: Somebody measured it.", *more,
        ]  # fmt: skip
        text += "".join(f"  {'- ' if not at else '  '}{line}\n" for at, line in enumerate([f"name: {name}", *lines]))
    return f"{text}untestable:\n- {{claim: Magic, source: 'https://example.org', why: No machine has it.}}\n"


@pytest.fixture
def plan(tmp_path, write_profile, monkeypatch):
    """A plan with profiles of its own; the library is in a folder that is searched."""
    write_profile("better", "env:\n  SIMULATED: better\n")
    write_profile("newer", "env:\n  SIMULATED: newer\n")
    write_profile("absent", "preload: [tcmalloc]\n")
    path = tmp_path / "claims.yaml"
    path.write_text(written())
    (tmp_path / "libnew.so.1").write_text("")
    real = profile.load
    written_here = ("better", "newer", "absent")
    monkeypatch.setattr(
        profile, "load", lambda name: real(str(tmp_path / f"{name}.yaml") if name in written_here else name)
    )
    monkeypatch.setattr(claims, "search_folders", lambda: [tmp_path])
    monkeypatch.setattr(claims.read, "__defaults__", (path,))
    return path


@pytest.fixture
def run(plan, simulation, instant_bench, benchmark_script, files):
    library = str(plan.with_name("libnew.so.1"))
    limits = {"cpu_quota": conditions.QUOTA_CPUS}
    simulation.worker("baseline", seconds=times(1.0), evidence={"limits": limits})
    simulation.worker("better", seconds=times(0.6), evidence={"limits": limits})
    simulation.worker("newer", seconds=times(1.0), evidence={"openmp": {"library": library, "runtime": "new"}})

    def start(*arguments: object):
        options = ["--python", simulation.python, "--data", "synthetic", "--steps", 3]
        return benchmark_script(claims, *options, *files, *arguments)

    return start


def row(page: str, name: str) -> list[str]:
    line = next(line for line in page.splitlines() if line.startswith(f"| A {name} claim"))
    return [cell.strip() for cell in line.split("|")[1:-1]]


def test_the_page_has_each_claim_with_its_ratio_its_evidence_and_its_verdict(run, page_file):
    result = run("--blocks", 9)
    assert (result.returncode, result.stderr) == (0, "")
    page = page_file.read_text()
    assert "4 claims were measured: 3 held, 0 not contradicted, 1 not held, 0 can't be told. 3 can't be tested" in page
    _, ratio, in_effect, losses, verdict = row(page, "fast")
    assert ratio.startswith("1.6")
    assert in_effect == "yes, in 9 of 9 processes: runtime gnu (reference: gnu)"
    assert (losses, verdict) == ("equal", "**held**")
    assert row(page, "newer")[2] == "yes, in 9 of 9 processes: runtime new (reference: gnu)"
    assert row(page, "newer")[4].startswith("**not held: ")
    assert "Measured here: `better, translation` against `baseline, translation`." in page
    assert "All 4 intervals of the page hold together at 95%" in " ".join(page.split())
    assert "In its text, no source gives an interval." in page


def test_what_this_machine_cannot_test_says_why(run, page_file):
    run("--blocks", 9)
    listed = page_file.read_text().partition("## Not testable here\n\n")[2].partition("\n\n")[0].splitlines()
    assert [line.partition("]")[0].removeprefix("- ").partition(" (")[0] for line in listed] == [
        "A absent claim", "A no-such-processor claim", "Magic",
    ]  # fmt: skip
    assert "tcmalloc, which is not installed" in listed[0]
    assert listed[1].endswith("this processor has no quantum")


def test_each_entry_trains_what_its_claim_is_about(run, simulation):
    run("--blocks", 9)
    starts = [start for start in simulation.starts() if start["name"] == "better"]
    assert {start["training"]["workload"] for start in starts} == {"cnn", "translation"}
    assert {start["training"]["data"] for start in starts} == {"synthetic", "generated"}


def test_a_quota_that_is_not_in_force_gives_no_verdict(run, simulation, page_file):
    simulation.worker("better", seconds=times(0.6), evidence={"limits": {"cpu_quota": None}})
    assert run("--blocks", 9).returncode == 1
    in_effect, _, verdict = row(page_file.read_text(), "held-back")[2:]
    assert (in_effect, verdict) == ("no", "**can't be told: its CPU quota is None**")


def test_another_library_than_the_one_that_is_preloaded_gives_no_verdict(run, simulation, page_file):
    simulation.worker("newer", seconds=times(0.5), evidence={"openmp": {"library": "/old.so"}})
    assert run("--blocks", 9).returncode == 1
    assert row(page_file.read_text(), "newer")[4] == "**can't be told: its OpenMP library is /old.so**"


def test_what_a_source_gives_is_said(run, plan, page_file):
    plan.write_text(written("interval: 1.3 to 1.5", "evidence: a log of all threads"))
    run("--blocks", 9)
    page = page_file.read_text()
    assert "Its interval: 1.3 to 1.5. Its evidence: a log of all threads." in page
    assert "The other sources give no interval in their text." in page


def test_too_few_blocks_give_no_verdict(run, page_file):
    assert run("--blocks", 2).returncode == 0
    assert row(page_file.read_text(), "fast")[4] == "**can't be told: too few blocks**"


@pytest.mark.parametrize(
    ("line", "part"),
    [("least: many", "`float`"), ("shows: [moods]", "'moods' is unknown"), ("condition: rain", "'rain' is unknown"),
     ("colour: red", "unknown field `colour`")],
)  # fmt: skip
def test_a_plan_that_is_wrong_is_named(plan, line, part):
    first, _, others = written(line).partition("  - name: other")
    replaced = [each for each in first.splitlines() if each.strip().partition(":")[0] != line.partition(":")[0]]
    plan.write_text("\n".join([*replaced, f"    {line}", f"  - name: other{others}"]))
    with pytest.raises(InputError) as error:
        claims.read(plan)
    assert part in text_of(error.value)


@pytest.mark.parametrize(
    ("version", "files"),
    [(1, {"cpu/cpu.cfs_quota_us": "100000", "cpu/cpu.cfs_period_us": "100000"}), (2, {"cpu.max": "100000 100000"})],
)
def test_a_quota_is_set_for_either_version_of_control_groups(tmp_path, version, files):
    if version == 2:
        (tmp_path / "cgroup.controllers").write_text("cpu\n")
    else:
        (tmp_path / "cpu").mkdir()
    with conditions.quota(tmp_path):
        group = f"envkit-claims-{os.getpid()}"
        for file, text in files.items():
            folder, name = os.path.split(file)
            assert (tmp_path / folder / group / name).read_text() == text
        inside = next(tmp_path.glob(f"**/{group}/cgroup.procs"))
        assert inside.read_text() == str(os.getpid())
    assert inside.parent.with_name("cgroup.procs").read_text() == str(os.getpid())


def test_a_command_beside_busy_processes_keeps_its_exit_status_and_ends_them():
    code = "import sys; print('trained'); sys.exit(3)"
    argv = [sys.executable, str(Path(conditions.__file__)), "neighbour", sys.executable, "-c", code]
    result = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
    assert (result.returncode, result.stdout) == (3, "trained\n")


def in_group(group):
    """Return the processes of a process group that run."""
    pids = [int(path.name) for path in Path("/proc").glob("[0-9]*")]
    return [pid for pid in pids if (fields := owner.stat_fields(pid)) and fields[2] == str(group) and not gone(pid)]


def test_a_command_that_is_told_to_end_leaves_no_busy_process():
    code = "import os, time; print(os.getppid(), flush=True); time.sleep(600)"
    argv = [sys.executable, str(Path(conditions.__file__)), "neighbour", sys.executable, "-c", code]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert int(process.stdout.readline()) == process.pid
        process.terminate()
        assert process.wait(timeout=60) == 128 + signal.SIGTERM
    until(lambda: not in_group(process.pid))
