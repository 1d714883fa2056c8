"""Every experiment is a valid profile with a prediction, and the page holds one against the other."""

from __future__ import annotations

import os

import pytest
from envkit.common.errors import InputError
from envkit.engines.base import EngineOptions
from envkit.engines.inspect_image import inspect
from envkit.engines.local import LocalEngine
from envkit.profiles import catalogue, profile
from envkit.profiles.messages import DoesNotApply
from envkit.profiles.resolve import resolve
from envkit.rendering import text_of
from envkit.stats.interval import Speedup

from benchmarks import experiments
from benchmarks.experiments import Experiment
from tests.benchmarks.conftest import refusal
from tests.simulation import times

PLANNED, LEFT_OUT = experiments.read()


@pytest.fixture(scope="module")
def inspection():
    """Of this machine, with a processor for which all experiments are."""
    seen = inspect(LocalEngine(EngineOptions()), dict(os.environ), ["nice", "chrt"])
    return {**seen, "facts": {**seen["facts"], "cpu_vendor": "AuthenticAMD"}}


@pytest.mark.parametrize("one", PLANNED, ids=lambda one: one.name)
def test_each_has_a_profile_that_changes_its_reference(one, inspection):
    loaded, reference = experiments.load(one.name), experiments.load(one.against)
    assert experiments._settings(loaded, reference)
    assert len(one.prediction) > 20
    try:
        catalogue.require(resolve(loaded, inspection), inspection, allow_unknown=False)
    except InputError as error:
        if "not installed" not in str(error):
            raise


def test_those_that_have_mkl_take_other_code_do_not_apply_to_intels_processors(inspection):
    there = {**inspection, "facts": {**inspection["facts"], "cpu_vendor": "GenuineIntel"}}
    of_mkl = [one for one in map(experiments.load, (one.name for one in PLANNED)) if "mkl-dispatch" in one.preload]
    assert {one.name for one in of_mkl} >= {"x-everything", "x-mkl-avx2", "x-mkl-native", "x-mkl-native-alone"}
    for one in of_mkl:
        with pytest.raises(InputError, match=DoesNotApply.code):
            resolve(one, there)


def test_each_profile_has_a_prediction():
    files = {path.stem for path in experiments.PROFILES.glob("*.yaml")}
    assert files == {one.name for one in PLANNED}
    assert all(one.what and one.why for one in LEFT_OUT)


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ((1.02, 1.0, 1.04), "yes"),
        ((1.2, 1.15, 1.25), "no"),
        ((0.9, 0.85, 0.95), "no"),
        ((1.02, 0.9, 1.04), "not contradicted"),
        ((1.06, 1.0, 1.1), "not contradicted"),
    ],
)
def test_whether_a_prediction_came_true(found, said):
    assert Experiment("baseline", "", (0.99, 1.05)).hit(Speedup(*found, blocks=16, margin=0.02)) == said


@pytest.fixture
def study(write_profile, monkeypatch, tmp_path):
    """Three experiments with profiles of their own in the place of the real ones."""
    for name in ("better", "same", "wrong"):
        write_profile(name, f"env:\n  SIMULATED: {name}\n")
    write_profile("absent", "preload: [tcmalloc]\n")
    text = "experiments:\n"
    for name in ("better", "same", "wrong", "absent"):
        text += f"  {name}:\n    against: baseline\n    prediction: A guess.\n    expect: [0.99, 1.01]\n"
    path = tmp_path / "experiments.yaml"
    path.write_text(f"{text}left_out:\n  - what: Magic\n    why: There is none.\n")
    monkeypatch.setattr(experiments, "PROFILES", tmp_path)
    monkeypatch.setattr(experiments.read, "__defaults__", (path,))
    return path


@pytest.fixture
def run(study, simulation, instant_bench, benchmark_script, files):
    simulation.worker("better", seconds=times(0.8))
    simulation.worker("wrong", seconds=times(0.8), losses=[2.3, 2.2, 2.1])
    simulation.worker("same", seconds=times(1.0))

    def start(*arguments: object):
        options = ["--python", simulation.python, "--data", "synthetic", "--steps", 3]
        return benchmark_script(experiments, *options, *files, *arguments)

    return start


def row(page: str, name: str) -> list[str]:
    line = next(line for line in page.splitlines() if line.startswith(f"| {name} |"))
    return [cell.strip() for cell in line.split("|")[1:-1]]


def test_what_holds_is_kept_and_the_rest_is_dropped(run, page_file):
    result = run("--blocks", 8)
    assert (result.returncode, result.stderr) == (0, "")
    page = page_file.read_text()
    assert "## Kept\n\n- **better**: A test\n" in page
    assert row(page, "better")[2:4] == ["0.99 to 1.01", "1.250"]
    assert row(page, "better")[5:] == ["8", "no", "kept"]
    assert row(page, "wrong")[7].startswith("dropped: losses differ by")
    assert row(page, "same")[5:] == ["8", "not contradicted", "dropped: no difference larger than 2%"]
    assert "- expected: 0.99 to 1.01. A guess." in page
    assert "A test: `SIMULATED=better`." in page


def test_a_disturbed_run_is_said_to_be_one(run, simulation, page_file):
    simulation.worker("same", seconds=times(1.0), usage={"machine_swapped_bytes": 2**30})
    run("same", "--blocks", 8)
    disturbed = page_file.read_text().partition("## Disturbed from outside")[2]
    assert "8 of 8 blocks were disturbed from outside (most often: it swapped)" in disturbed
    assert "| same | baseline |" in disturbed


def test_what_cannot_be_tried_here_says_why(run, page_file):
    run("--blocks", 1)
    page = page_file.read_text()
    assert "- **absent**: profile 'absent' preloads tcmalloc, which is not installed" in page
    assert "- **Magic**: There is none." in page


def test_some_can_be_chosen(run, simulation):
    run("same", "--blocks", 1)
    assert {start["name"] for start in simulation.starts()} == {"baseline", "same"}
    assert "was measured with other entries: better, wrong" in run("--blocks", 1).stderr
    assert "no experiment 'sane'; there are: better, same, wrong, absent" in refusal(run("sane"))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("[0.99, 1.01]", "[1.01, 0.99]"), "better: 'expect' is a range of ratios"),
        (("    prediction: A guess.\n", ""), "better: Object missing required field `prediction`"),
        (("left_out:", "left:"), "left_out: Expected `array`, got `null`"),
    ],
)
def test_a_plan_that_is_wrong_is_named(study, change, said):
    study.write_text(study.read_text().replace(*change, 1))
    with pytest.raises(InputError) as error:
        experiments.read(study)
    assert "experiments.yaml" in text_of(error.value)
    assert said in text_of(error.value)


def test_what_a_profile_changes_is_told(write_profile):
    write_profile("before", "env:\n  OMP_NUM_THREADS: 2\n  OMP_DYNAMIC: 'true'\n")
    changes = "preload: [jemalloc]\nprefix: [nice]\nenv:\n  OMP_NUM_THREADS: 1\n  OMP_DYNAMIC: null\n"
    after = write_profile("after", f"extends: before\n{changes}")
    loaded, reference = profile.load(str(after)), profile.load(str(after.with_name("before.yaml")))
    assert experiments._settings(loaded, reference) == [
        "OMP_NUM_THREADS=1", "OMP_DYNAMIC not set", "preload jemalloc", "nice",
    ]  # fmt: skip
