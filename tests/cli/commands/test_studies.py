"""What holds for each kind of study: it goes on after Ctrl-C, and other commands read its record or refuse it."""

from __future__ import annotations

import json

import pytest
from envkit.bench import record
from envkit.bench.study import Study

from tests.replay.cases import STUDIES, Bench
from tests.replay.test_starts import STARTS

SEVERAL = "measured several workloads; measure the one to save a baseline of, by --workload"
RANKS = "was trained on several ranks (--nproc); measure one process to save a baseline of"
# By what command each kind can go on, which one is printed after Ctrl-C, and why no baseline is saved of it; "" where
# one is.
KINDS = {
    "bench": ("bench", "bench", ""),
    "bench-profiles": ("bench", "bench", ""),
    "matrix": ("matrix", "bench", ""),
    "workloads": ("bench", "bench", SEVERAL),
    "ablate": ("ablate", "bench", "takes a profile apart; measure the whole of it: envkit bench parts"),
    "instances": ("bench", "bench", "trained several at once (--instances); measure one process alone"),
    "ranks": ("bench", "bench", RANKS),
    "weak-scaling": ("bench", "bench", RANKS),
    "images": ("bench", "bench", "compares images, and a baseline is of one; measure a profile in it"),
    "engines": ("compare-engines", "bench", ""),
    "loader-grid": ("loader-grid", "loader-grid", SEVERAL),
    "calibrate": ("plan", "plan", ""),
    "command-metric": ("bench", "bench", ""),
    "full": ("bench", "bench", "is a full training (--full), one sample each; measure without --full"),
}
# Studies of the replay that are no kinds of their own, and why.
NO_KINDS = {
    "bench-budget": "a bench that ends by its budget",
    "bench-failed": "a bench that ends at a worker that fails: it has no end to go on to",
    "bench-not-in-effect": "a bench that ends at a setting that is not in effect",
    "command-optimizer-steps": "a command-metric whose samples have another length",
    "full-until": "a full whose trainings have a target",
    "tune": "a search with a record of its own form: tests/cli/commands/tune",
}
INTERRUPTED = 9


@pytest.fixture
def interrupted(cli, tmp_path, monkeypatch, write_profile, undrawn):
    """Interrupt a study of this name at its ninth start; return what measures it, and its command line."""

    def run(name):
        study = Bench(cli, tmp_path, monkeypatch, write_profile)
        study.run(STUDIES[name], interrupt_at=INTERRUPTED)
        return study, lambda *arguments: cli(*arguments, cwd=tmp_path)

    return run


def test_every_study_of_the_replay_is_of_a_kind_or_says_why_not():
    assert sorted([*KINDS, *NO_KINDS]) == sorted(STUDIES)


@pytest.mark.parametrize("name", KINDS)
def test_each_kind_of_study_goes_on_after_ctrl_c_and_is_read_by_all(interrupted, tmp_path, name):
    command, printed_command, refusal = KINDS[name]
    study, cli = interrupted(name)
    last = study.stderr.splitlines()[-1]
    assert last == f"envkit: interrupted; continue with: envkit {printed_command} --resume run"
    resumed = cli(command, "--resume", study.output)
    assert resumed.returncode == 0, resumed

    # the samples are those of a run without the interrupt, in the same order
    events = record.read(study.output)
    decisions = [json.loads(line) for line in (STARTS / f"{name}.jsonl").read_text().splitlines()]
    planned = [(event["block"], event["arm"]) for event in decisions if event.get("event") == "sample"]
    assert [(event["block"], event["arm"]) for event in events if event["event"] == "sample"] == planned
    assert (events[-1]["event"], events[-1]["reason"]) == ("end", "complete")

    printed, expected = (result.stdout.split("Details ")[0] for result in (cli("report", study.output), resumed))
    if command == "plan":  # which says how many blocks to measure, too
        printed, expected = printed.partition("\n")[0], expected.partition("\n")[0]
    assert printed == expected
    assert (study.output / "grid.png").exists() == (command == "loader-grid")
    arms = {arm.name: arm.instances or 1 for arm in Study.from_json(events[0]["study"]).arms}
    rows = json.loads(cli("export", study.output, "--format", "json").stdout)
    assert {row["arm"]: row["instances"] for row in rows} == arms
    (listed,) = json.loads(cli("history", study.output, "--json").stdout)["runs"]
    assert {one["arm"] for one in listed["comparisons"]} <= arms.keys()
    saved = cli("baseline", "save", "old", "--from", study.output, "--folder", tmp_path / "baselines")
    assert saved.stderr == (f"envkit: {study.output}: {refusal}\n" if refusal else "")
