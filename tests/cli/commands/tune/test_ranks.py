"""``envkit tune`` of trainings on several ranks: how many of them, or the environment that each has."""

from __future__ import annotations

import pytest
from envkit.bench import record
from envkit.bench.requirement_messages import HasRanks, StartsRanksItself
from envkit.bench.study import Study
from envkit.messages import from_json

from tests.cli.commands.conftest import words
from tests.cli.commands.tune.conftest import events, written
from tests.tuning.planted_engine import WHERE

SPACE = """\
name: together
title: A test
parameters:
  ranks: {choices: {one: {ranks: 1}, two: {ranks: 2}, sixteen: {ranks: 16}}}
  threads: {variable: OMP_NUM_THREADS, values: [unset, 1, 2]}
  allocator: {choices: {glibc: , jemalloc: {preload: [jemalloc]}}}
"""


@pytest.fixture
def together(tmp_path):
    """The options that choose a space with ranks."""
    path = tmp_path / "together.yaml"
    path.write_text(SPACE)
    return ("--space", path)


def test_ranks_threads_and_allocators_are_searched(tuned, cli, engine, local, together, tmp_path):
    engine.gain = lambda variables: 0.3 * (variables[WHERE] == " on 2 ranks") + 0.2 * ("LD_PRELOAD" in variables)
    result = tuned(*together, "--details").ended(0)
    found = written(local)
    assert (found.ranks, found.preload) == (2, ("jemalloc",))
    assert "Left out ranks=sixteen: trains on 16 ranks, and this process can use 2 cores" in words(result.stdout)
    assert "Waiting tuned's ranks communicate" in words(result.stdout)
    study = Study.from_json(record.read(tmp_path / "tuning/confirmation")[0]["study"])
    assert [arm.ranks for arm in study.arms] == [None, None, 2]
    # what was found is measured as it was found
    shown = cli("show", local / f"{found.name}.yaml", "--engine", "local").stdout
    assert "ranks    2" in shown


def test_a_profile_that_says_how_many_ranks_is_confirmed_on_them(
    tuned, engine, shipped, local, write_profile, tmp_path
):
    write_profile("pair", "preload: [jemalloc]\nranks: 2\n", folder=shipped)
    engine.gain = lambda variables: 0.3 * (variables[WHERE] == " on 2 ranks")
    tuned().ended(0)
    study = Study.from_json(record.read(tmp_path / "tuning/confirmation")[0]["study"])
    assert {arm.name: arm.ranks for arm in study.arms}["pair"] == 2
    assert (written(local).ranks, written(local).preload) == (2, ("jemalloc",))


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--nproc", 2), HasRanks(2, 2)),
        (("--", "python", "train.py"), StartsRanksItself()),
    ],
)
def test_a_profile_that_says_how_many_ranks_is_left_out(cli, arguments, shipped, write_profile, tmp_path, options, why):
    write_profile("pair", "preload: [jemalloc]\nranks: 2\n", folder=shipped)
    (tmp_path / "train.py").touch()
    cli(*(word for word in arguments(*options) if word not in ("--steps", 3, "--data", "synthetic")), cwd=tmp_path)
    left_out = {one["what"]: from_json(one["why"]) for one in events(tmp_path)[0]["left_out_profiles"]}
    assert left_out["profile pair"] == why


def test_every_candidate_can_have_as_many_ranks(tuned, simulation, tmp_path):
    tuned("--nproc", 2).ended(0)
    trained = [one["work"] for one in simulation.starts(all=True) if "training" in one]
    assert {(work["kind"], work["number"]) for work in trained} == {("ranks", 2)}
    assert Study.from_json(events(tmp_path)[0]["study"]).ranks == 2


@pytest.mark.parametrize(
    ("numerics", "reason"),
    [
        ("same", "Left out ranks=two: several ranks give different losses; --numerics any tries them too"),
        ("any", "Left out ranks=sixteen: a batch of segmentation has 12 images, which 16 ranks can't share evenly"),
    ],
)
def test_ranks_that_can_not_train_it_are_left_out(cli, simulation, together, arguments, tmp_path, numerics, reason):
    options = ("--workload", "segmentation", "--steps", 3, "--budget", "100s", "--numerics", numerics, "--details")
    result = cli("tune", *together, *options, "--output", tmp_path / "tuning").ended(0)
    assert reason in words(result.stdout)
    launched = [one["work"]["number"] for one in simulation.starts(all=True) if one["work"]["kind"] == "ranks"]
    assert set(launched) == ({2} if numerics == "any" else set())


OWN = ("--", "python", "train.py")


@pytest.mark.parametrize(
    ("searched", "options", "said"),
    [
        (True, OWN, "has 2 ranks, which your own command must start itself; leave one of them out"),
        (False, ("--nproc", 2, *OWN), "envkit: --nproc 2 has no effect on your own command"),
        (True, ("--nproc", 2), "envkit: --nproc 2: the space 'together' chooses the number of ranks; leave"),
        (False, ("--nproc", 3), "envkit: --nproc 3: a batch of cnn has 64 images, which 3 ranks can't share evenly; "),
    ],
)
def test_ranks_that_can_not_be_searched_or_had(refused, tmp_path, together, local, searched, options, said):
    (tmp_path / "train.py").touch()
    given = ("--output", tmp_path / "tuning", *(together if searched else ()), *options)
    assert said in refused("tune", *given, cwd=tmp_path)
