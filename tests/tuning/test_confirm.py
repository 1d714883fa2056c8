"""Who wins the confirmation, and what is written of it."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, replace

import pytest
from envkit.bench import record
from envkit.bench.arms import Arm
from envkit.bench.run import Run
from envkit.engines.measurement import Usage
from envkit.profiles import profile
from envkit.profiles.profile import Profile
from envkit.rendering import text
from envkit.report import advice, certainty, terminal
from envkit.report.messages import advice as messages
from envkit.stats.interval import ERROR_RATE, speedup
from envkit.stats.verdict import Verdict
from envkit.tuning import conclusion, confirm, profile_file
from envkit.tuning import conclusion_messages as told
from envkit.tuning.confirm import BASELINE, SHIPPED, TUNED, decide
from envkit.tuning.destination import Written
from envkit.tuning.events import Failure, Trial, WarmUp
from envkit.tuning.trial_store import BASELINE as BASELINE_NUMBER
from envkit.worker.request import Train

from tests import records
from tests.plans import study_of
from tests.records import USAGE, conclude
from tests.simulated_worker import sample
from tests.simulation import STEADY, times
from tests.worker_runs import document_of

BLOCKS = 7  # no fewer would do for three comparisons
OTHER_LOSSES = [2.3, 2.2, 1.1]


def confirmed(tmp_path, shipped=0.8, tuned=0.7, losses=None):
    """A run whose arms take these shares of the baseline's time; None leaves one out."""
    factors = {"baseline": 1.0, "jemalloc": shipped, "tuned": tuned}
    arms = [records.arm(name) for name, factor in factors.items() if factor is not None]
    events = [records.run_event(study_of([Arm(**arm) for arm in arms], seed=1, blocks=BLOCKS))]
    compared = confirm.contrasts([Arm(**arm) for arm in events[0]["study"]["arms"]])
    events[0]["study"]["contrasts"] = [asdict(one) for one in compared]
    for block in range(BLOCKS):
        for number, (name, factor) in enumerate(factors.items()):
            if factor is None:
                continue
            behaviour = {"seconds": STEADY if name == "baseline" else times(factor)}
            if name == "tuned" and losses:
                behaviour["losses"] = losses
            document = sample(document_of(Train("cnn", "synthetic", steps=3)), behaviour, block + number, {})
            where = {"event": "sample", "time": 1.0, "block": block, "arm": name, "worker_seconds": 2.0}
            events.append({**where, **document, "stderr": ""})
    records.judge(events)
    events.append({"event": "design", "time": 1.0, "planned_blocks": BLOCKS, "looks": [BLOCKS]})
    events.append({"event": "end", "time": 2.0, "reason": "complete"})
    events = record.read(records.write(tmp_path, events))
    return conclude(events), events


def decided(tmp_path, shipped=0.8, tuned=0.7, losses=None, same_losses=True):
    """What is decided after such a run."""
    result, events = confirmed(tmp_path, shipped, tuned, losses)
    return decide(result, Run.parse(events), "jemalloc" if shipped else None, same_losses)


@pytest.mark.parametrize(
    ("shipped", "tuned", "best"),
    [
        (0.8, 0.7, TUNED),
        (0.8, 0.799, SHIPPED),  # no difference: the known one is kept
        (0.7, 0.8, SHIPPED),
        (1.2, 0.8, TUNED),
        (1.2, 1.1, BASELINE),
        (None, 0.8, TUNED),
        (None, 1.0, BASELINE),
        (0.8, None, SHIPPED),
        (1.0, None, BASELINE),
    ],
)
def test_the_tuned_profile_wins_only_by_an_interval_and_never_something_worse(tmp_path, shipped, tuned, best):
    found = decided(tmp_path, shipped, tuned)
    assert found.best == best
    assert (found.versus is None) == (shipped is None or tuned is None)
    said = conclusion.reason(found, records.BEGUN, "a machine", "jemalloc")
    assert said.machine == "a machine"
    kinds = {TUNED: told.FoundBySearch, SHIPPED: told.ShippedIsBest, BASELINE: told.NothingFound}
    assert type(said) is kinds[best]
    unseen = text(conclusion.reason(found, records.BEGUN, "a machine", "jemalloc", ["tcmalloc"]))
    assert (told.BEST_TRIED in unseen) == (best == SHIPPED or (found.versus is not None
                                                                and best == TUNED))  # fmt: skip


def test_a_profile_whose_gain_is_close_to_the_noise_names_what_to_rely_on(tmp_path):
    clear = decided(tmp_path, shipped=None)
    assert clear.tuned.speedup is not None
    assert "rely on" not in text(conclusion.reason(clear, records.BEGUN, "a machine", None))
    near = replace(clear.tuned, speedup=replace(clear.tuned.speedup, ratio=1.1, low=1.02, high=1.19))
    said = text(conclusion.reason(replace(clear, tuned=near), records.BEGUN, "a machine", None))
    assert "1.10x baseline speed (95% CI 1.02 to 1.19)" in said
    assert said.endswith("close to the noise: rely on no more than 1.02x")


def test_tuned_against_shipped_is_what_their_own_blocks_say(tmp_path):
    versus = decided(tmp_path, shipped=0.8, tuned=0.4).versus
    assert versus.low < 2.0 < versus.high
    assert versus.blocks == BLOCKS


def test_other_losses_lose_unless_they_are_allowed(tmp_path):
    found = decided(tmp_path, losses=OTHER_LOSSES)
    assert (found.best, found.refused) == (SHIPPED, (TUNED,))
    for losses, same in ((None, True), (OTHER_LOSSES, False)):
        allowed = decided(tmp_path, losses=losses, same_losses=False)
        assert (allowed.best, allowed.refused, allowed.same_losses) == (TUNED, (), same)


def test_losses_that_are_no_numbers_lose_always(tmp_path):
    assert decided(tmp_path, losses=[2.3, math.nan, 1.1], same_losses=False).best == SHIPPED


def test_that_something_faster_was_refused_for_its_losses_is_said(tmp_path):
    refused, file = (TUNED,), tmp_path / "x.yaml"
    found = decided(tmp_path, losses=OTHER_LOSSES)
    why = conclusion.reason(found, 0.0, "a machine", "jemalloc")
    assert (type(why), why.shipped, why.refused) == (told.ShippedIsBest, "jemalloc", refused)
    said = conclusion.advice(found, "jemalloc", file, Written())
    assert said.what == told.CopyOfShipped("jemalloc", told.UNBEATEN, refused)
    found = decided(tmp_path, shipped=1.0, losses=OTHER_LOSSES)
    none_faster = told.NoneFaster(refused)
    assert text(none_faster).endswith("the baseline with the same losses (tuned faster, but losses differ)")
    assert conclusion.reason(found, 0.0, "a machine", "jemalloc").why == none_faster
    said = conclusion.advice(found, "jemalloc", file, Written())
    assert said == told.Written(str(file), told.SetsNothing(none_faster))
    said = conclusion.advice(found, "jemalloc", file, Written(stays=True))
    assert said == told.Kept(none_faster, str(file))


def test_what_was_refused_for_its_losses_need_not_better_what_won(tmp_path):
    found = decided(tmp_path, shipped=0.6, tuned=0.8, losses=OTHER_LOSSES)
    assert (found.best, found.refused) == (SHIPPED, (TUNED,))
    assert conclusion.reason(found, 0.0, "a machine", "jemalloc").refused == ()
    said = conclusion.advice(found, "jemalloc", tmp_path / "x.yaml", Written())
    assert said.what == told.CopyOfShipped("jemalloc", told.UNBEATEN)


EXEC = "envkit exec tuned.yaml -- python train.py"
EITHER = messages.UseFound("jemalloc", "tuned", EXEC)


@pytest.mark.parametrize(
    ("shipped", "tuned", "advised"),
    [
        (0.8, 0.7, EITHER),
        (0.7, 0.8, EITHER),
        (0.7, 1.2, messages.Use("jemalloc", "envkit exec jemalloc -- python train.py")),
        (None, 0.7, messages.Use("tuned", EXEC)),
    ],
)
def test_a_report_advises_what_the_search_wrote(tmp_path, shipped, tuned, advised):
    """It does not know which of two that is: the search compared them."""
    result, _ = confirmed(tmp_path, shipped, tuned)
    uses = [row.text for row in advice.rows(result) if isinstance(row.text, advice.USED)]
    assert uses == [advised]


def test_a_report_advises_ranks_where_the_search_was_on_ranks(tmp_path):
    result, _ = confirmed(tmp_path)
    on_two = replace(result, study=replace(result.study, ranks=2))
    (use,) = (row.text for row in advice.rows(on_two) if isinstance(row.text, advice.USED))
    assert use.command == "envkit exec tuned.yaml -- torchrun --nproc-per-node 2 train.py"


def test_where_nearly_all_was_disturbed_a_quieter_machine_is_advised(tmp_path, capsys):
    result, events = confirmed(tmp_path)
    for event in events:
        if event.get("arm") == "tuned":
            event["usage"]["worker_cpus_steal_s"] = 2 * event["seconds"]
    for found in (result, conclude(events)):
        conclusion.show_confirmation(
            found, decide(found, Run.parse(events), "jemalloc", True), "jemalloc", terminal.console()
        )
        printed = " ".join(capsys.readouterr().out.split())
        advised = "Next measure again without this load"
        assert (advised in printed) is (found is not result)


ARMS = (BASELINE_NUMBER, 4, 7)


def trial(candidate, seconds=6.0):
    """2 steps take 4 s, and the start what is left."""
    usage = Usage(**USAGE)
    return Trial(round=0, candidate=candidate, step_s=[2.0, 2.0], seconds=4.0, usage=usage, worker_seconds=seconds)


def warm_up():
    return WarmUp(step_s=[2.0, 2.0], seconds=4.0, usage=Usage(**USAGE), worker_seconds=6.0, evidence={},
        losses=[], digests={},
    )  # fmt: skip


def sizes(left_s, steps=20, trials=()):
    found = confirm.size(trials or [trial(one) for one in ARMS], ARMS, left_s=left_s, trial_steps=2, steps=steps)
    return found.blocks, found.steps, found.takes_s


def test_as_many_blocks_as_fit_into_what_is_left_of_the_budget():
    # 18 s of warming up, and 3 times 42 s and a reference kernel in each block
    assert sizes(18 + 1280) == (10, 20, 18 + 10 * 127.5)
    assert sizes(10**6) == (confirm.MOST_BLOCKS, 20, 18 + confirm.MOST_BLOCKS * 127.5)


def test_samples_are_shorter_where_else_too_few_blocks_would_fit():
    assert sizes(18 + 7 * 37.5) == (7, 5, 18 + 7 * 37.5)
    assert sizes(18 + 7 * 19.5) == (7, 2, 18 + 7 * 19.5)


def test_an_interval_is_worth_more_than_the_budget():
    assert sizes(0) == (7, 2, 18 + 7 * 19.5)


def test_what_is_kept_for_the_confirmation_is_its_shortest_run():
    assert confirm.reserve_s(warm_up(), arms=3) == sizes(0)[2]


def test_an_arm_that_takes_longer_to_start_counts_as_what_it_takes():
    """As several ranks do. However many trials each had, in the run there is as much of each."""
    failure = Failure(worker_seconds=99.0, candidate=4, problem={})
    trials = [warm_up(), trial(4), trial(4), trial(7, 9.0), trial(1, 99.0), failure]
    blocks, steps, takes_s = sizes(0, trials=trials)
    assert (blocks, steps) == (7, 2)
    assert takes_s == pytest.approx(21 + 7 * 22.5)
    assert confirm.reserve_s(warm_up(), arms=3, dearest_s=9.0) == pytest.approx(takes_s)
    assert confirm.reserve_s(warm_up(), arms=3, dearest_s=3.0) == sizes(0)[2]


@pytest.mark.parametrize(("arms", "comparisons", "fewest"), [(2, 1, 6), (3, 3, 7)])
def test_the_fewest_blocks_are_those_that_can_find_something_at_the_rate_that_all_share(arms, comparisons, fewest):
    given = [Arm(name, name, "local") for name in ("baseline", "shipped", "tuned")[:arms]]
    assert (len(confirm.contrasts(given)), confirm.least_blocks(arms)) == (comparisons, fewest)
    ratios = [0.1 + 0.001 * number for number in range(fewest)]
    assert speedup(ratios, ERROR_RATE / comparisons, 0.02).verdict == Verdict.FASTER
    assert speedup(ratios[:-1], ERROR_RATE / comparisons, 0.02) is None


def test_tuned_against_shipped_shares_the_error_rate_with_the_others(tmp_path):
    result, _ = confirmed(tmp_path)
    assert result.design.comparisons == 3
    assert certainty.interim_analyses(result.design).comparisons == 3
    result, _ = confirmed(tmp_path, shipped=None)
    assert result.design.comparisons == 1


def test_what_is_written_is_a_profile_that_sets_all_that_was_measured(tmp_path):
    made = Profile(
        name="candidate", title="A test", reason="", source="", extends=None, preload=("jemalloc",),
        env={"OMP_NUM_THREADS": "${physical_cores}", "KMP_BLOCKTIME": "0", "OMP_DYNAMIC": "true"},
        prefix=("numactl", "--membind=0"), expect={"openmp.settings.GOMP_SPINCOUNT": "0", "malloc.settings.thp": True},
        numerics="may-differ", path=tmp_path, needs={"numa_nodes": 2},
    )  # fmt: skip
    path = tmp_path / "deep/er/here-tuned.yaml"
    profile_file.write(replace(made, reason="It won: 1.3 times as fast.", source="the record"), path)
    loaded = profile.load(str(path))
    assert (loaded.name, loaded.reason, loaded.source) == ("here-tuned", "It won: 1.3 times as fast.", "the record")
    for field in ("title", "preload", "env", "prefix", "expect", "numerics", "needs"):
        assert getattr(loaded, field) == getattr(made, field), field
    assert profile_file.from_json(json.loads(json.dumps(profile_file.to_json(made)))) == made
