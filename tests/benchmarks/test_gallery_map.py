"""The map of the gallery: its page and picture from records, and what has none is measured; with simulated workers."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from envkit.bench import record
from envkit.engines.base import Outcome
from envkit.engines.messages import ExitStatus
from envkit.worker.request import RunCommand

from benchmarks import gallery_map, gallery_runs
from tests import records
from tests.benchmarks.conftest import refusal
from tests.instant_engine import InstantEngine, replace_engine
from tests.refusals import assert_refused
from tests.reports import events_of
from tests.simulation import times

MODELS = gallery_runs.models()
LOSSES = {"losses": [2.3, 2.2, 2.1]}
ELSEWHERE = "/somewhere/else"


@pytest.fixture
def results(tmp_path):
    return tmp_path / "gallery"


@pytest.fixture
def write(results):
    """Record a model's run on another machine; what profiles do is as for ``events_of``, beside their losses."""

    def write(name, blocks=8, mine=None, other=None, **given):
        study = {"user_command": replace(MODELS[name].command, folder=ELSEWHERE), "blocks": blocks}
        behave = {"mine": {**LOSSES, **(mine or {})}, "others": {"other": {**LOSSES, **(other or {})}}}
        events = events_of(blocks, **behave, baseline=LOSSES, study=study, cwd=ELSEWHERE, **given)
        return records.write(results / name, events)

    return write


@pytest.fixture
def gallery(benchmark_script, results, page_file):
    """Run the script with these two profiles, by their names or files."""

    def run(*options, profiles=("mine", "other")):
        named = [word for profile in profiles for word in ("--profile", profile)]
        return benchmark_script(gallery_map, *named, "--results", results, "--page", page_file, *options)

    return run


@pytest.fixture
def measured(gallery, simulation, write_profile, monkeypatch):
    """Measure the LSTM and the tabular network under profiles whose workers are simulated."""
    profiles = [write_profile(name, f"env:\n  SIMULATED: {name}\n") for name in ("mine", "other")]
    monkeypatch.setattr(gallery_runs, "PYTHON", sys.executable)
    for name, factor in (("baseline", 1), ("mine", 0.5), ("other", 1)):
        simulation.worker(name, seconds=times(factor), **LOSSES)
    return lambda *options: gallery(*options, "--model", "lstm", "--model", "tabular", profiles=profiles)


def kinds(folder):
    return [event["event"] for event in record.read(folder)]


def cells(text, first):
    """The cells of each row of the page that begins with ``first``."""
    lines = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith(f"| {first} |")]
    return [line[1:] for line in lines]


def section(text, title):
    return text.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def test_the_page_says_what_each_training_gains(gallery, write, page_file, tmp_path):
    write("pinn", mine={"seconds": times(1)})
    write("lstm", other={"seconds": times(1.6)})
    result = gallery("--page-only")
    assert (result.returncode, result.stderr) == (0, "")
    text = page_file.read_text()
    short = section(text, "In short")
    assert "For 1 of 2 models a profile is surely faster; its speedup is 2.00x (LSTM lang" in short
    assert "- The best is mine for LSTM language model." in short
    assert re.search(r"Nothing is surely faster for Physics-informed network( \(at most [0-9.]+x\))?\.", short)
    assert re.search(r"- other costs time for LSTM language model \(0\.6\dx\)\.", short)
    assert re.search(r"One profile for all of them would be mine: 1.4.x in the .* for 1 of 2 models and .* 0\.", short)
    assert "No profile changes what is learnt" in short
    mine, other = cells(section(text, "The map"), "LSTM language model")[0]
    assert re.fullmatch(r"\*\*(2|1\.9).* to 2.*\)\*\*", mine)
    assert re.fullmatch(r"\*\*0\.6.* to 0\.6.*\)\*\*", other)
    assert not any("**" in cell for cell in cells(section(text, "The map"), "Physics-informed network")[0])
    of_kind = cells(text, "recurrent network")[0]
    assert (of_kind[:2], of_kind[3:]) == (["LSTM language model", "mine"], ["1", "1"])
    assert cells(section(text, "What each takes"), "LSTM language model")[0][1:] == ["20.0%", "512 MiB", "0 of 8"]
    assert "- LSTM language model: equal within the last printed digit (3 in each sample)" in text
    assert '- command: `make gallery ARGS="--profile mine --profile other"`' in text
    assert "Simulated CPU (model 1), 4 usable CPUs on 2 cores, bare metal; Simulated Linux 1" in text
    assert "torch 2.13.0" in text
    assert "no interference was detected in 16 blocks" in text
    assert "BERT with 6 layers (`bert`)" in section(text, "Not measured yet")
    assert ELSEWHERE not in text
    assert str(tmp_path) not in text


def test_the_picture_has_a_row_for_each_model_in_either_theme(gallery, write, page_file):
    write("lstm", other={"seconds": times(1.6)})
    write("tabular", mine={"seconds": times(1)})
    assert gallery("--page-only").returncode == 0
    for theme, colours in (("light", ("#009e73", "#d55e00")), ("dark", ("#2cc295", "#f08133"))):
        assert f'"page-{theme}.svg"' in page_file.read_text()
        picture = page_file.with_name(f"page-{theme}.svg").read_text()
        words = [text.strip() for text in ElementTree.fromstring(picture).itertext() if text.strip()]
        assert words.index("LSTM language model") < words.index("recurrent network") < words.index("Tabular perceptron")
        assert {"mine", "other", "1.00"} < set(words)
        assert all(colour in picture for colour in colours)


def test_a_profile_whose_losses_differ_is_not_the_best(gallery, write, page_file):
    write("lstm", mine={"losses": [2.3, 2.2, 4.1]})
    assert gallery("--page-only").returncode == 0
    text = page_file.read_text()
    assert "- Losses differ where they should not: mine on LSTM language model." in text
    assert cells(section(text, "The map"), "LSTM language model")[0][0].endswith(" LOSSES DIFFER")
    assert "Nothing is surely faster for LSTM language model" in text
    assert "for mine, not counted as faster: results change" in text
    assert "its losses differ" in page_file.with_name("page-light.svg").read_text()


def test_what_disturbed_it_is_told(gallery, write, page_file):
    write("lstm", mine={"usage": {"worker_cpus_busy_s": 9.0}})
    write("pinn")
    write("tabular")
    assert gallery("--page-only").returncode == 0
    quiet = section(page_file.read_text(), "How quiet the host was")
    assert "8 of 24 blocks were disturbed from outside (most often: other programs used its CPUs)" in quiet
    assert "- LSTM language model: 8 of 8 blocks disturbed (e.g. mine: others used " in quiet
    assert "Most blocks were disturbed" not in quiet


def test_it_measures_what_has_no_whole_record_and_goes_on_where_it_stopped(
    measured, simulation, instant, results, page_file
):
    simulation.worker("other", does="interrupt", seconds=times(1), **LOSSES, **{"from": 11})
    first = measured()
    assert (first.returncode, first.stderr.splitlines()[-1]) == (130, "envkit: interrupted; start it again")
    assert [kinds(results / name)[-1] for name in ("lstm", "tabular")] == ["end", "end"]
    assert not page_file.exists()
    simulation.worker("other", seconds=times(1), **LOSSES)
    second = measured()
    assert second.returncode == 0, second.stderr
    assert "tabular: FASTER  1 of 2 profiles, best mine: " in second.stdout
    assert [kinds(results / name).count("resume") for name in ("lstm", "tabular")] == [0, 1]
    assert [kinds(results / name).count("sample") for name in ("lstm", "tabular")] == [24, 24]
    assert "For 2 of 2 models a profile is surely faster" in page_file.read_text()
    started = len(simulation.starts(all=True))
    assert measured().returncode == 0
    assert len(simulation.starts(all=True)) == started


def test_a_model_that_fails_is_on_the_page_and_the_others_go_on(measured, simulation, results, page_file, monkeypatch):
    class Failing(InstantEngine):
        def run(self, launch):
            if isinstance(launch.work, RunCommand) and "benchmarks/gallery/lstm.py" in launch.work.command.argv:
                said = "can't open file '/somewhere/else/lstm.py'"
                return Outcome("", said, 1.0, ExitStatus(2))
            return super().run(launch)

    replace_engine(monkeypatch, "local", Failing(simulation))
    assert measured().returncode == 1
    text = page_file.read_text()
    failed = section(text, "Failed")
    assert "the worker of baseline ended with exit status 2 (warming up): can't open file '…/lstm.py'" in failed
    assert cells(section(text, "The map"), "Tabular perceptron")
    replace_engine(monkeypatch, "local", InstantEngine(simulation))
    assert measured().returncode == 0
    assert "## Failed" not in page_file.read_text()
    assert kinds(results / "tabular").count("resume") == 0


def test_where_all_failed_the_reasons_are_all_there_is(gallery, write, page_file):
    write("lstm", mine={"evidence": {"openmp": {"runtime": "intel"}}}, blocks=8, ended="not in effect")
    result = gallery("--page-only")
    said = (
        "gallery_map: lstm: NOT IN EFFECT  mine: no speedup is reported; openmp.runtime: expected gnu, observed intel\n"
    )
    assert (result.returncode, result.stderr) == (1, said)
    assert not page_file.exists()


def test_a_run_that_has_not_ended_is_not_on_the_page(gallery, write, page_file):
    write("lstm")
    write("pinn", ended=None)
    assert gallery("--page-only").returncode == 0
    text = page_file.read_text()
    assert "Physics-informed network (`pinn`)" in section(text, "Not measured yet")
    assert not cells(text, "Physics-informed network")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--model", "lstmm"], "--model lstmm: there is no such model (did you mean 'lstm'?); there are: resnet50, "),
        (["--blocks", "3"], "--blocks 3: is too few, as intervals of 2 comparisons take 7 blocks; give --blocks 7"),
        ([], "there is no no/python yet, which the trainings run in; make it with: make gallery-setup"),
        (["--page-only"], "gallery: has no whole record of a model yet; make some with: make gallery"),
    ],
)
def test_what_is_refused_before_anything_is_measured(gallery, monkeypatch, results, options, said):
    monkeypatch.setattr(gallery_runs, "PYTHON", "no/python")
    assert said in refusal(gallery(*options))
    assert not results.exists()


def test_the_baseline_alone_is_nothing_to_compare(gallery):
    said = refusal(gallery(profiles=["baseline"]))
    assert said == "gallery_map: --profile baseline: is what profiles are compared with; name another"


def test_records_of_other_settings_are_not_mixed_in(gallery, write, results):
    write("pinn")
    write("lstm", blocks=9)
    mend = "; move it away, or give another with --results"
    assert refusal(gallery()) == f"gallery_map: {results}/lstm: was measured with blocks 9, and now it is 8{mend}"
    said = refusal(gallery("--blocks", 9, profiles=["mine"]))
    assert f"{results}/lstm: was measured with profiles mine, other, and now it is mine{mend}" in said


def test_a_line_of_the_list_that_lacks_something_is_named(tmp_path):
    path = tmp_path / "models.yaml"
    path.write_text("good: {title: A, kind: b, steps: 3, packages: [torch]}\nbad: {title: A, kind: b, steps: 0}\n")
    assert_refused(gallery_runs.models, path, 2, "'bad' needs 'steps', a whole number above 0")
