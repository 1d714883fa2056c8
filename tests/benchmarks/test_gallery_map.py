"""The map of the gallery: sessions with simulated workers, the file that only grows, its page and its pictures."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from envkit.advice.machine import Machine
from envkit.advice.symptoms import Symptoms
from envkit.engines.base import Outcome
from envkit.engines.messages import ExitStatus
from envkit.stats.interval import ERROR_RATE, speedup
from envkit.worker.request import RunCommand

from benchmarks import gallery_atlas, gallery_map, gallery_page, gallery_runs, results
from benchmarks.errors import ScriptError
from benchmarks.gallery_atlas import Agreement, Published, Session, Watched
from tests import records
from tests.benchmarks.conftest import refusal
from tests.instant_engine import InstantEngine, replace_engine
from tests.refusals import assert_refused
from tests.reports import events_of
from tests.simulation import times

MODELS = gallery_runs.models()
LOSSES = {"losses": [2.3, 2.2, 2.1]}
ELSEWHERE = "/somewhere/else"
ZEN, XEON = Machine("AuthenticAMD", 26, 2, "AMD EPYC", 2, 2), Machine("GenuineIntel", 6, 143, "Intel Xeon", 2, 1)
NAMES = ["baseline", "mine", "other"]
EQUAL = {"mine": Agreement(0.0, True), "other": Agreement(0.0, True)}
SEEN = Watched(Symptoms(10.0, 2.0, 0.1, 5.0, steps=20, step_s=0.5, generic_matrix_code=True), 2.5e-7)


def session(training="lstm", mine=0.5, other=1.0, blocks=8, began=1.0, **fields):
    """A session of which every block took a second of the baseline, and so much of the profiles, nearly."""
    seconds = [[1.0 + n / 1000, mine * (1.01 + n / 500), other * (1 + n / 300)] for n in range(-3, blocks - 3)]
    usual = {"machine": ZEN, "system": "Linux", "seconds": 24.0 * blocks, "names": NAMES, "losses": EQUAL}
    made = {**usual, "blocks": seconds, "disturbed": [[]] * blocks, **fields}
    return Session(training, began, "0123abcd", **made)


@pytest.fixture
def stored(tmp_path):
    return tmp_path / "records"


@pytest.fixture
def write(stored):
    """Leave a session's record of another machine; ``mine`` and ``other`` are as for ``events_of``, with losses."""

    def write(name, blocks=8, mine=None, other=None, **options):
        study = {
            "title": name, "user_command": replace(MODELS[name].command("python"), folder=ELSEWHERE), "blocks": blocks,
        }  # fmt: skip
        behave = {"mine": {**LOSSES, **(mine or {})}, "others": {"other": {**LOSSES, **(other or {})}}}
        events = events_of(blocks, **behave, baseline=LOSSES, study=study, cwd=ELSEWHERE, **options)
        return records.write(stored / f"20261129-070000-{name}-0123abcd", events)

    return write


@pytest.fixture
def gallery(benchmark_script, files, stored):
    """Run the script."""
    return lambda *options: benchmark_script(gallery_map, *files, "--records", stored, *options)


@pytest.fixture
def measured(gallery, simulation, instant, write_profile):
    """Measure the LSTM and the tabular network under profiles whose workers are simulated."""
    profiles = [write_profile(name, f"env:\n  SIMULATED: {name}\n") for name in ("mine", "other")]
    for name, factor in (("baseline", 1), ("mine", 0.5), ("other", 1)):
        simulation.worker(name, seconds=times(factor), **LOSSES)
    named = [word for profile in profiles for word in ("--profile", profile)]
    fixed = (*named, "--python", sys.executable, "--model", "lstm", "--model", "tabular", "--for", "1h")
    return lambda *options: gallery(*fixed, *options)


@pytest.fixture
def once(monkeypatch):
    """Have a call measure each training once, although simulated ones take no time."""
    fits = gallery_runs.fitting_blocks
    left = [4]  # it is asked twice for each

    def fitting(*arguments):
        left[0] -= 1
        return fits(*arguments) if left[0] >= 0 else 0

    monkeypatch.setattr(gallery_runs, "fitting_blocks", fitting)
    return left


def cells(text, first):
    """The cells of each row of the page that begins with ``first``."""
    lines = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith(f"| {first} |")]
    return [line[1:] for line in lines]


def section(text, title, marks="##"):
    return text.partition(f"\n{marks} {title}\n")[2].partition(f"\n{marks} ")[0]


def page_of(*sessions):
    made = gallery_atlas.charts(sessions)
    return "\n\n".join(gallery_page.parts(made, gallery_atlas.failures(sessions), MODELS, "page"))


def test_the_page_says_what_each_training_gains(gallery, write, page_file, tmp_path):
    write("pinn", mine={"seconds": times(1)})
    write("lstm", other={"seconds": times(1.6)})
    result = gallery("--page-only")
    assert (result.returncode, result.stderr) == (0, "")
    text = page_file.read_text()
    short = section(text, "In short")
    assert "On AMD Simulated CPU, 4 CPUs on 2 cores:" in short
    assert "For 1 of 2 models a profile is surely faster; its speedup is 2.00x (LSTM lang" in short
    assert "- The best is mine for LSTM language model." in short
    assert re.search(r"Nothing is surely faster for Physics-informed network( \(at most [0-9.]+x\))?\.", short)
    assert re.search(r"- other costs time for LSTM language model \(0\.6\dx\)\.", short)
    assert re.search(r"One profile for all of them would be mine: 1.4.x in the .* for 1 of 2 models and .* 0\.", short)
    assert "No profile changes what is learnt" in short
    mine, other = cells(section(text, "The map", "###"), "LSTM language model")[0]
    assert re.fullmatch(r"\*\*(2|1\.9).* to 2.*\)\*\*", mine)
    assert re.fullmatch(r"\*\*0\.6.* to 0\.6.*\)\*\*", other)
    assert not any("**" in cell for cell in cells(section(text, "The map", "###"), "Physics-informed network")[0])
    of_kind = cells(text, "recurrent network")[0]
    assert (of_kind[:2], of_kind[3:]) == (["LSTM language model", "mine"], ["1", "1"])
    takes = cells(section(text, "What each takes", "###"), "LSTM language model")[0]
    assert takes[1:] == ["20.0%", "512 MiB", "0 of 8"]
    assert "- LSTM language model: equal within the last printed digit: all 2 profiles" in text
    assert "- command: `make gallery`" in text
    assert "Simulated CPU (model 1), 4 usable CPUs on 2 cores, bare metal; Simulated Linux 1" in text
    assert "torch 2.13.0" in text
    assert "2 sessions with 16 blocks, " in text
    assert "at commits 0123abcd" in text
    assert "no interference was detected in 16 blocks" in text
    assert "BERT with 6 layers (`bert`)" in section(text, "Not measured yet", "###")
    assert "All sessions are of one machine" in section(text, "Machines side by side")
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
    assert cells(section(text, "The map", "###"), "LSTM language model")[0][0].endswith(" LOSSES DIFFER")
    assert "Nothing is surely faster for LSTM language model" in text
    assert re.search(r"LOSSES DIFFER by up to \d+\.\d%: mine", text)
    assert "its losses differ" in page_file.with_name("page-light.svg").read_text()


def test_disturbed_blocks_are_counted(gallery, write, page_file):
    write("lstm", mine={"usage": {"worker_cpus_busy_s": 9.0}})
    write("pinn")
    write("tabular")
    assert gallery("--page-only").returncode == 0
    quiet = section(page_file.read_text(), "How quiet the host was", "###")
    assert "8 of 24 blocks were disturbed from outside" in quiet
    assert "- LSTM language model: 8 of 8" in quiet
    assert "Most blocks were disturbed" not in quiet


def test_each_session_is_a_line_with_its_machine_its_samples_and_its_symptoms(measured, results_file, page_file, once):
    result = measured()
    assert (result.returncode, result.stderr) == (0, "")
    lines = [json.loads(line) for line in results_file.read_text().splitlines()]
    assert [line["training"] for line in lines] == ["lstm", "tabular"]
    first = lines[0]
    assert first["names"] == ["baseline", "mine", "other"]
    assert {len(block) for block in first["blocks"]} == {3}
    assert len(first["blocks"]) == gallery_runs.BLOCKS
    assert first["machine"]["usable_cpus"] == 4
    assert first["losses"]["mine"] == {"difference": 0.0, "agrees": True}
    assert 0 < first["watched"]["fault_s"] < 1e-3
    assert first["watched"]["symptoms"]["steps"] > 0
    assert "For 2 of 2 models a profile is surely faster" in page_file.read_text()
    before = results_file.read_bytes()
    once[0] = 4
    assert measured().returncode == 0
    assert results_file.read_bytes().startswith(before)
    assert "4 sessions with 36 blocks" in page_file.read_text()


def test_the_least_measured_training_is_first(measured, results_file, once):
    once[0] = 2
    assert measured().returncode == 0
    once[0] = 2
    assert measured().returncode == 0
    assert [json.loads(line)["training"] for line in results_file.read_text().splitlines()] == ["lstm", "tabular"]


def test_blocks_of_an_interrupted_session_are_added(measured, simulation, results_file, page_file):
    simulation.worker("other", does="interrupt", seconds=times(1), **LOSSES, **{"from": 4})
    result = measured("--no-watch")
    assert result.returncode == 130
    (line,) = [json.loads(line) for line in results_file.read_text().splitlines()]
    assert 2 <= len(line["blocks"]) < gallery_runs.BLOCKS
    assert "(too few blocks: " in page_file.read_text()


def test_a_training_that_fails_is_on_the_page_and_the_others_go_on(
    measured, simulation, results_file, page_file, monkeypatch, once
):
    class Failing(InstantEngine):
        def run(self, launch):
            if isinstance(launch.work, RunCommand) and "benchmarks/gallery/lstm.py" in launch.work.command.argv:
                said = "can't open file '/somewhere/else/lstm.py'"
                return Outcome("", said, 1.0, ExitStatus(2))
            return super().run(launch)

    replace_engine(monkeypatch, "local", Failing(simulation))
    result = measured()
    assert result.returncode == 1
    assert "lstm: can't be watched: the worker ended with exit status 2" in result.stdout
    text = page_file.read_text()
    failed = section(text, "Failed")
    assert "the worker of baseline ended with exit status 2 (warming up): can't open file '…/lstm.py'" in failed
    assert cells(section(text, "The map", "###"), "Tabular perceptron")
    replace_engine(monkeypatch, "local", InstantEngine(simulation))
    once[0] = 4
    assert measured().returncode == 0
    assert "## Failed" not in page_file.read_text()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--model", "lstmm"], "--model lstmm: there is no such model (did you mean 'lstm'?); there are: resnet50, "),
        (
            ["--python", "no/python"],
            "there is no no/python yet, which the trainings run in; make it with: make gallery",
        ),
        (["--page-only"], "the atlas has no session of the gallery yet; make some with: make gallery"),
        (["--profile", "baseline"], "--profile baseline: is what profiles are compared with; name another"),
    ],
)
def test_what_is_refused_before_anything_is_measured(gallery, stored, options, said):
    assert said in refusal(gallery(*options))
    assert not stored.exists()


def test_a_time_that_is_too_short_for_a_training_is_refused(measured):
    assert "--for: too short for 2 blocks of lstm; give --for 10m" in refusal(measured("--for", "20s"))


def test_a_line_of_the_list_that_lacks_something_is_named(tmp_path):
    path = tmp_path / "models.yaml"
    path.write_text("good: {title: A, kind: b, steps: 3, packages: [torch]}\nbad: {title: A, kind: b, steps: 0}\n")
    assert_refused(gallery_runs.models, path, 2, "bad: Expected `int` >= 1 - at `$.steps`")


def test_sessions_come_back_as_they_were_written(tmp_path):
    path = tmp_path / "gallery.jsonl"
    written = [session(watched=SEEN), session("pinn", blocks=0, failure="the worker ended with exit status 1")]
    for each in written:
        results.append_line(path, each.to_json())
    path.write_bytes(path.read_bytes() + b'{"training": "ls')  # a kill
    assert gallery_atlas.read_sessions(path) == written


@pytest.mark.parametrize(
    "broken", [{"blocks": [[1.0, 0.5]]}, {"blocks": []}, {"blocks": [[1.0, 0.5, 0.0]], "disturbed": [[]]}]
)
def test_a_line_of_a_wrong_form_is_named(tmp_path, broken):
    path = tmp_path / "gallery.jsonl"
    path.write_text(json.dumps({**session().to_json(), **broken}) + "\n")
    with pytest.raises(ScriptError, match=r"line 1 is not a run of this benchmark"):
        gallery_atlas.read_sessions(path)


def test_the_interval_is_of_all_blocks_of_a_machine():
    """Four blocks have none at the rate that two comparisons share; two sessions of four do."""
    parts = [session(blocks=4), session(blocks=4, began=2.0)]
    (alone,), (pooled,) = gallery_atlas.charts(parts[:1]), gallery_atlas.charts(parts)
    assert alone.trainings["lstm"].gains["mine"].speedup is None
    gain = pooled.trainings["lstm"].gains["mine"]
    assert gain.speedup == speedup([*parts[0].ratios("mine")] * 2, ERROR_RATE / 2, 0.02)
    assert (gain.blocks, gain.is_faster, pooled.trainings["lstm"].best) == (8, True, "mine")


def test_machines_stand_side_by_side_with_what_does_not_carry_over():
    here = [session(mine=0.5, other=1.2, watched=SEEN), session("pinn", mine=0.5, other=0.7)]
    there = [
        session(mine=1.3, other=0.8, machine=XEON, began=3.0), session("pinn", mine=0.8, other=0.5, machine=XEON),
    ]  # fmt: skip
    text = page_of(*here, *there)
    table = section(text, "Machines side by side")
    assert "| best profile for | AMD Zen 5, 2 CPUs | Intel Golden Cove, 2 CPUs on 1 cores |" in table
    assert re.search(r"\| LSTM language model \| mine 1\.9\dx \| other 1\.2\dx \|", table)
    assert "LSTM language model: mine is faster on AMD Zen 5, 2 CPUs and slower on Intel Golden Cove" in table
    assert re.search(
        r"Physics-informed network: mine is the best on AMD Zen 5, 2 CPUs; on Intel .*: other is 1\.6\dx its speed",
        table,
    )
    assert "a page fault costs 0.25 µs; MKL takes generic code" in table
    assert "## Intel Golden Cove, 2 CPUs on 1 cores" in text
    assert 'src="page-intel-golden-cove-2-cpus-on-1-cores-light.svg"' in text


def test_figures_that_were_published_without_samples_are_not_pooled_with_others():
    published = Published(8, 1, 0.5, {"mine": [1.9, 1.8, 2.0], "old": [1.5, 1.4, 1.6]}, {"kernel": 0.1})
    old = session(began=2.0, blocks=0, names=[], published=published)
    first, second = gallery_atlas.charts([old, session()])
    assert (first.is_published, second.is_published) == (False, True)
    assert (first.profiles, second.profiles) == (["mine", "other"], ["mine", "old"])
    gain = second.trainings["lstm"].gains["mine"].speedup
    assert gain is not None
    assert (gain.ratio, gain.low, gain.high) == (1.9, 1.8, 2.0)
    text = page_of(old, session())
    assert "## AMD Zen 5, 2 CPUs, 1970-01-01" in text
    assert "1 of 8" in section(text, "AMD Zen 5, 2 CPUs, 1970-01-01")


def test_a_disturbed_watching_is_kept_and_not_used():
    disturbed = replace(SEEN, disturbed=["other-programs"], fault_s=1e-3)
    (chart,) = gallery_atlas.charts([session(watched=SEEN), session(watched=disturbed, began=2.0)])
    assert (chart.trainings["lstm"].watched, chart.fault_s) == (SEEN, SEEN.fault_s)
    (chart,) = gallery_atlas.charts([session(watched=disturbed)])
    assert (chart.trainings["lstm"].watched, chart.fault_s) == (None, None)


def test_the_time_of_a_block_is_that_of_earlier_sessions_or_follows_from_the_steps():
    here = gallery_runs.Host(ZEN, [object(), object(), object()], {})  # only their number counts
    model = MODELS["lstm"]
    expected = gallery_runs.expected_block_s(model, [session()], here)
    assert expected == pytest.approx(24.0)
    by_steps = gallery_runs.expected_block_s(model, [], here, SEEN)
    assert by_steps == 3 * (gallery_runs.START_S + (3 + model.steps) * 0.5)


@pytest.mark.parametrize(("left_s", "blocks"), [(1000, 9), (130, 5), (60, 2), (49, 0), (-5, 0)])
def test_as_many_blocks_are_measured_as_fit(left_s, blocks):
    assert gallery_runs.fitting_blocks(left_s, 26.0 if left_s != 60 else 25.0, 9) == blocks
