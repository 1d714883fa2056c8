"""What holds for each kind of study: what it compares, that it goes on after Ctrl-C, and that others read its record.

Which workers it starts, with which environments, and its numbers are in tests/replay.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import pytest
from envkit.bench import record
from envkit.bench.arms import Role
from envkit.bench.study import Study
from envkit.worker.workloads import ALL

from tests.replay.cases import STUDIES, Bench
from tests.replay.test_starts import STARTS

SEVERAL = "measured several workloads; measure the one to save a baseline of, by --workload"
RANKS = "was trained on several ranks (--nproc); measure one process to save a baseline of"
WORKLOAD_ARMS = [[f"{name} on {workload}" for name in ("baseline", "mine", "slow")] for workload in ALL]


@dataclass(frozen=True)
class Kind:
    """A kind of study: its arms, its contrasts by role, and what other commands make of its record."""

    arms: list[str]  # the first is the reference of all, unless ``contrasts`` say otherwise
    contrasts: dict[Role, list[tuple[str, str]]] = field(default_factory=dict)
    command: str = "bench"  # by which it can go on, and by which it is said to after Ctrl-C
    printed: str = "bench"
    refusal: str = ""  # why no baseline is saved of it; "" where one is

    def contrasts_by_role(self):
        """Return the (arm, reference) of all contrasts by role; each arm has an effect beside the first by default."""
        effects = [(arm, self.arms[0]) for arm in self.arms[1:]]
        return {Role.EFFECT: effects, **self.contrasts}


KINDS = {
    "bench": Kind(["baseline", "mine"]),
    "bench-profiles": Kind(["baseline", "mine", "slow", "preloads"]),
    "matrix": Kind(["baseline", "mine", "slow", "preloads"], command="matrix"),
    "workloads": Kind(
        [arm for arms in WORKLOAD_ARMS for arm in arms],
        {Role.EFFECT: [(arm, reference) for reference, *arms in WORKLOAD_ARMS for arm in arms]},
        refusal=SEVERAL,
    ),
    "ablate": Kind(
        ["baseline", "parts", "jemalloc alone", "OMP_WAIT_POLICY alone"],
        {
            Role.ALONE: [("jemalloc alone", "baseline"), ("OMP_WAIT_POLICY alone", "baseline")],
            Role.IN_PROFILE: [("parts", "OMP_WAIT_POLICY alone"), ("parts", "jemalloc alone")],
        },
        command="ablate",
        refusal="takes a profile apart; measure the whole of it: envkit bench parts",
    ),
    "instances": Kind(
        ["baseline", "mine", "2 x mine"],
        {Role.INSTANCES: [("2 x mine", "mine")]},
        refusal="trained several at once (--instances); measure one process alone",
    ),
    "ranks": Kind(
        ["baseline", "mine", "1 process", "1 process on 1/2"],
        {
            Role.EFFECT: [("mine", "baseline")],
            Role.SPEEDUP: [("baseline", "1 process"), ("mine", "1 process")],
            Role.EFFICIENCY: [("baseline", "1 process on 1/2")],
        },
        refusal=RANKS,
    ),
    "weak-scaling": Kind(
        ["baseline", "mine", "1 process on 1/2"],
        {
            Role.EFFECT: [("mine", "baseline")],
            Role.SPEEDUP: [("baseline", "1 process on 1/2"), ("mine", "1 process on 1/2")],
            Role.EFFICIENCY: [("baseline", "1 process on 1/2")],
        },
        refusal=RANKS,
    ),
    "images": Kind(["old", "new"], refusal="compares images, and a baseline is of one; measure a profile in it"),
    "engines": Kind(["local", "docker"], command="compare-engines"),
    "loader-grid": Kind(
        ["loader-w0-b16", "loader-w0-b32", "loader-w2-b16-p2", "loader-w2-b32-p2"],
        command="loader-grid", printed="loader-grid", refusal=SEVERAL,
    ),
    "calibrate": Kind(["baseline", "again"], command="plan", printed="plan"),
    "command-metric": Kind(["baseline", "mine"]),
    "full": Kind(
        ["baseline", "mine"], refusal="is a full training (--full), one sample each; measure without --full"
    ),
}  # fmt: skip
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
    kind = KINDS[name]
    study, cli = interrupted(name)
    last = study.stderr.splitlines()[-1]
    assert last == f"envkit: interrupted; continue with: envkit {kind.printed} --resume run"
    resumed = cli(kind.command, "--resume", study.output).ended(0)

    # the samples are those of a run without the interrupt, in the same order
    events = record.read(study.output)
    decisions = [json.loads(line) for line in (STARTS / f"{name}.jsonl").read_text().splitlines()]
    planned = [(event["block"], event["arm"]) for event in decisions if event.get("event") == "sample"]
    assert [(event["block"], event["arm"]) for event in events if event["event"] == "sample"] == planned
    assert (events[-1]["event"], events[-1]["reason"]) == ("end", "complete")

    printed, expected = (result.stdout.split("Details ")[0] for result in (cli("report", study.output), resumed))
    if kind.command == "plan":  # which says how many blocks to measure, too
        printed, expected = printed.partition("\n")[0], expected.partition("\n")[0]
    assert printed == expected
    assert (study.output / "grid.png").exists() == (kind.command == "loader-grid")
    made = Study.from_json(events[0]["study"])
    assert [arm.name for arm in made.arms] == kind.arms
    roles = dict.fromkeys(contrast.role for contrast in made.contrasts)
    found = {role: [(one.arm, one.reference) for one in made.contrasts_of(role)] for role in roles}
    assert found == kind.contrasts_by_role()
    arms = {arm.name: arm.instances or 1 for arm in made.arms}
    rows = json.loads(cli("export", study.output, "--format", "json").stdout)
    assert {row["arm"]: row["instances"] for row in rows} == arms
    (listed,) = json.loads(cli("history", study.output, "--json").stdout)["runs"]
    assert {one["arm"] for one in listed["comparisons"]} <= arms.keys()
    saved = cli("baseline", "save", "old", "--from", study.output, "--folder", tmp_path / "baselines")
    assert saved.stderr == (f"envkit: {study.output}: {kind.refusal}\n" if kind.refusal else "")
