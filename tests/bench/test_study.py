from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import asdict, replace

import pytest
from envkit.bench.arms import Arm, Role, own_ranks
from envkit.bench.requests import of_first, of_sample
from envkit.bench.study import Study, WorkloadSpec
from envkit.worker.modes import Options
from envkit.worker.request import FullTraining, HostFolder, Ranks, RunCommand, Train, UserCommand

from tests.plans import study_of

OWN = UserCommand(("python", "a b.py"), "/home/me", r"(\d+) ms", "ms", 3, r"loss (\S+)")
MODES = Options("bf16-autocast", compile=True, channels_last=True, scale=2)


@pytest.fixture
def study():
    """A plan of three arms and the seed given."""

    def make(seed=1, **fields):
        arms = tuple(Arm(name, name, "local") for name in ("baseline", "a", "b"))
        return study_of(**{"arms": arms, "seed": seed, "warmup_steps": 2, "steps": 5, "data": "synthetic", **fields})

    return make


def test_every_block_has_every_arm_once(study):
    for block in range(20):
        assert sorted(arm.name for arm in study().order(block)) == ["a", "b", "baseline"]


def test_one_seed_gives_one_order_and_another_another(study):
    def orders(seed):
        return [study(seed).order(block) for block in range(20)]

    assert orders(1) == orders(1)
    assert orders(1) != orders(2)


def test_each_arm_comes_first_about_as_often(study):
    first = Counter(study().order(block)[0].name for block in range(600))
    assert all(150 < count < 250 for count in first.values())


@pytest.mark.parametrize(("epochs", "length"), [(0, {"steps": 5}), (10, {"full": FullTraining(10)})])
def test_what_a_worker_is_to_do(study, epochs, length):
    fixed = study(epochs=epochs)
    assert of_sample(fixed, fixed.reference) == Train("cnn", "synthetic", warmup_steps=2, **length)


def test_the_worker_of_a_full_training_is_told_what_to_reach(study):
    fixed = study(epochs=10, until="accuracy=0.85")
    assert of_sample(fixed, fixed.reference) == Train(
        "cnn", "synthetic", warmup_steps=2, full=FullTraining(10, "accuracy=0.85")
    )
    assert Study.from_json(fixed.to_json()) == fixed


@pytest.mark.parametrize(("steps", "epochs", "tested"), [(3, 0, [("baseline", 2)]), (2, 0, []), (3, 10, [])])
def test_what_was_learnt_is_tested_once_and_after_more_than_two_steps(study, steps, epochs, tested):
    fixed = study(steps=steps, epochs=epochs)
    samples = itertools.product(fixed.arms, range(5))
    assert [(arm.name, block) for arm, block in samples if of_sample(fixed, arm, block).tests] == tested


def test_an_arm_may_have_a_workload_of_its_own_and_the_reference_of_all(study):
    arm = Arm("other", "baseline", "local", workload="cnn-nobias")
    fixed = study(arms=(*study().arms, arm))
    assert fixed.workload_of(arm) == "cnn-nobias"
    assert of_sample(fixed, arm).workload == of_first(fixed, arm).workload == "cnn-nobias"
    assert fixed.reference_of(arm) == fixed.reference


@pytest.mark.parametrize(("epochs", "blocks", "once"), [(0, 0, False), (0, 1, False), (10, 0, True), (10, 1, True),
                                                        (10, 8, False)])  # fmt: skip
def test_full_trainings_run_once_each_unless_blocks_are_asked_for(study, epochs, blocks, once):
    assert study(epochs=epochs, blocks=blocks).one_run_each is once


def test_a_command_of_ones_own_is_measured_in_the_place_of_a_workload(study):
    fixed = study(user_command=OWN)
    wanted = RunCommand(OWN, warmup=3)
    assert of_sample(fixed, fixed.reference) == of_first(fixed, fixed.reference) == wanted


def test_a_command_that_is_paced_times_what_its_machine_allows():
    """Its first worker shows the pace; later ones take the steps that were fixed by it."""
    paced = UserCommand(("python", "train.py"), "/home/me", optimizer_steps=0)
    made = study_of([Arm("baseline", "baseline", "local")], user_command=paced, warmup_steps=0, steps=0)
    (arm,), first = made.arms, RunCommand(paced, warmup=1, steps=12, least_s=5.0, first_step_s=60.0)
    assert of_first(made, arm, 12, 5.0) == of_sample(made, arm) == first
    sized = made.with_steps(7).sized({made.workload: 40}, {made.workload: 3})
    assert of_sample(sized, arm) == RunCommand(paced, warmup=3, steps=40, first_step_s=60.0)
    assert UserCommand.from_json(asdict(paced)) == paced


def test_the_first_start_takes_some_steps_and_goes_on_for_some_time(study):
    first = Train("cnn", "synthetic", steps=1, profiles_ranks=False)
    assert of_first(study(), study().reference) == first
    assert of_first(study(), study().reference, 12, 2.0) == replace(first, steps=12, least_s=2.0)


def test_lengths_that_follow_from_the_pace_are_each_workloads_own(study, across):
    sized = study(steps=0, warmup_steps=0).sized({"cnn": 12}, {"cnn": 5})
    assert (sized.training.steps, sized.training.warmup_steps) == (12, 5)
    each = across.sized({"cnn": 12, "loader": 3}, {"cnn": 5, "loader": 6}).workloads
    assert [(one.warmup_steps, one.steps) for one in each.values()] == [(5, 12), (6, 3)]


def test_padding_is_spread_over_a_page_and_repeats_with_the_seed(study):
    def sizes(seed, name="a"):
        return [study(seed).padding(block, Arm(name, name, "local")) for block in range(1000)]

    assert sizes(1) == sizes(1)
    assert sizes(1) != sizes(2)
    assert sizes(1) != sizes(1, "b")
    assert min(sizes(1)) >= 0
    assert max(sizes(1)) <= 4096
    quarters = Counter(size // 1025 for size in sizes(1))
    assert all(200 < quarters[quarter] < 300 for quarter in range(4))


# --- modes, and several workloads ---

ALL = (Arm("a on cnn", "baseline", "local", "cnn"), Arm("b on cnn", "b", "local", "cnn"),
       Arm("a on loader", "baseline", "local", "loader"), Arm("b on loader", "b", "local", "loader"))  # fmt: skip


@pytest.fixture
def across(study):
    each = {"cnn": WorkloadSpec(20, 200), "loader": WorkloadSpec(10, 90)}
    return study(arms=ALL, workload="all", workloads=each, data="/data", references=("a on loader",))


def test_modes_are_given_to_every_worker(study):
    fixed = study(options=MODES)
    assert of_sample(fixed, fixed.reference) == Train("cnn", "synthetic", 2, 5, MODES)
    assert of_first(fixed, fixed.reference).options == MODES


def test_each_workload_has_its_own_steps_and_data(across):
    assert of_sample(across, ALL[1]) == Train("cnn", HostFolder("/data"), 20, 200)
    assert of_sample(across, ALL[3]) == Train("loader", "generated", 10, 90)


def test_each_workload_has_its_own_reference(across):
    assert across.references == (ALL[0], ALL[2])
    assert across.compared == (ALL[1], ALL[3])
    assert [across.reference_of(arm) for arm in across.compared] == [ALL[0], ALL[2]]
    assert across.sharing == 2


# --- ranks ---

ALONE = (
    Arm("1 process", "baseline", "local", ranks=1, cpu_shares=1),
    Arm("1 process on 1/2", "baseline", "local", ranks=1, cpu_shares=2),
)


@pytest.fixture
def ranked(study):
    """A plan of three arms on two ranks, and two of one process."""
    return lambda **fields: study(arms=(*study().arms, *ALONE), **{"ranks": 2, **fields})


def test_arms_of_one_process_are_not_compared_with_the_reference(ranked):
    fixed = ranked()
    assert [arm.name for arm in fixed.distributed] == ["baseline", "a", "b"]
    assert [arm.name for arm in fixed.compared] == ["a", "b"]
    assert fixed.single_processes == ALONE
    assert [(arm.name, one.name) for arm, one in fixed.pairs] == [
        ("a", "baseline"), ("b", "baseline"), ("baseline", "1 process"), ("baseline", "1 process on 1/2"),
        ("a", "1 process"), ("b", "1 process"),
    ]  # fmt: skip
    assert fixed.sharing == 6


def test_without_ranks_there_are_the_comparisons_alone(study):
    assert study().reference.name == "baseline"
    assert (study().distributed, study().single_processes, study().how) == ((), (), "")
    assert [arm.name for arm in study().compared] == ["a", "b"]
    assert [(arm.name, one.name) for arm, one in study().pairs] == [("a", "baseline"), ("b", "baseline")]


@pytest.mark.parametrize(
    ("nodes", "together"),
    [(1, 2), (3, 6)],
)
def test_ranks_are_started_by_a_launcher(ranked, nodes, together):
    fixed = ranked(nodes=nodes)
    training = Train("cnn", "synthetic", 2, 5)
    assert of_sample(fixed, fixed.reference) == Ranks(2, training, nodes=nodes)
    first = Train("cnn", "synthetic", steps=1, profiles_ranks=False)
    assert of_first(fixed, fixed.reference, 1, 2.0) == Ranks(2, first, nodes=nodes)  # by no rank's own clock
    assert (fixed.ranks_of(fixed.reference), fixed.parts_of(fixed.reference)) == (together, 2)
    assert fixed.how == f"{together} ranks"
    one, half = ALONE
    assert of_sample(fixed, one) == training
    assert of_sample(fixed, half) == Ranks(1, training, cpu_shares=2)
    assert [(fixed.ranks_of(arm), fixed.parts_of(arm)) for arm in ALONE] == [(1, 1), (1, 2)]


def test_in_weak_scaling_the_batch_grows_with_the_ranks_of_all_nodes(ranked):
    fixed = ranked(nodes=3, weak=True, options=Options(scale=2))
    half = fixed.arms[-1]
    assert [fixed.options_of(arm).scale for arm in (fixed.reference, half)] == [12, 2]
    assert of_sample(fixed, half).training.options.scale == 2
    assert (fixed.contrast(fixed.reference, Role.SPEEDUP).reference, fixed.scaling) == (half.name, "weak scaling")
    assert fixed.how == "scale 2, 6 ranks, weak scaling"


def test_an_arm_may_have_ranks_of_its_own(study):
    arm = Arm("c", "c", "local", ranks=4)
    fixed = study(arms=(*study().arms, arm))
    assert of_sample(fixed, arm) == Ranks(4, Train("cnn", "synthetic", 2, 5))
    assert (fixed.ranks_of(arm), fixed.parts_of(arm)) == (4, 4)
    assert fixed.distributed == (arm,)
    assert [one.name for one in fixed.compared] == ["a", "b", "c"]


def test_an_arm_has_ranks_of_its_own_from_two_on():
    assert [own_ranks(ranks) for ranks in (1, 2, 4)] == [None, 2, 4]
