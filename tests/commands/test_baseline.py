"""``runner baseline``: saving, checking and comparing sessions."""

from __future__ import annotations

import hashlib
import json
import re
import resource
import signal

import pytest
from jsonschema import Draft202012Validator, ValidationError

from runner import record
from runner.commands import measuring
from tests import records
from tests.conftest import PROJECT
from tests.sessions import BLOCKS, YARDSTICK_S, session
from tests.simulated_worker import inspection
from tests.simulation import times

OTHER = "a" * 64


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "baselines"


@pytest.fixture
def save(cli, folder, tmp_path):
    """Save a simulated session (see ``tests.sessions``) as a baseline; returns its file."""

    def run(name="old", *options, **planted):
        made = session(tmp_path / f"record-{name}", **planted)
        result = cli("baseline", "save", name, "--from", made, "--folder", folder, *options)
        assert result.returncode == 0, result
        return folder / f"{name}.json"

    return run


@pytest.fixture
def check(cli, folder, tmp_path):
    """Hold another simulated session against the baseline ``old``."""

    def run(*options, **planted):
        made = session(tmp_path / "record-now", **{"seed": 2, **planted})
        return cli("baseline", "check", "old", "--against", made, "--folder", folder, *options)

    return run


def verdicts(result):
    """What is said of each profile, one line each."""
    found = re.findall(r"^verdict  (.+(?:\n {9}.+)*)$", result.stdout, re.MULTILINE)
    return [re.sub(r" *\n {9}", " ", one).rstrip() for one in found]


# --- save ---


def test_saving_says_what_and_where_and_what_next(cli, folder, tmp_path):
    made = session(tmp_path / "run")
    result = cli("baseline", "save", "cnn", "--from", made, "--folder", folder)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.splitlines()[0].startswith(f"baseline cnn: baseline, mine, {BLOCKS} blocks, measured 2026-")
    assert f"file     {folder}/cnn.json  (commit it; later: runner baseline check cnn)" in result.stdout
    assert [path.name for path in folder.iterdir()] == ["cnn.json"]
    assert (folder / "cnn.json").stat().st_size < 10_000
    document = json.loads(cli("baseline", "save", "other", "--from", made, "--folder", folder, "--json").stdout)
    assert (document["source"], document["blocks"], document["arms"]) == (
        f"{folder}/other.json", BLOCKS, ["baseline", "mine"]
    )  # fmt: skip


def test_baselines_go_to_a_folder_of_that_name(cli, tmp_path):
    made = session(tmp_path / "run")
    assert cli("baseline", "save", "cnn", "--from", made, cwd=tmp_path).returncode == 0
    assert (tmp_path / "baselines/cnn.json").is_file()
    assert "cnn" in cli("baseline", "list", cwd=tmp_path).stdout


def test_synthetic_data_are_mentioned(cli, folder, tmp_path):
    made = session(tmp_path / "run", data="synthetic")
    assert "synthetic data" in cli("baseline", "save", "cnn", "--from", made, "--folder", folder).stdout


def test_a_baseline_is_not_written_over_unless_told(save, refused, folder, tmp_path):
    path = save("old")
    before = path.read_bytes()
    made = session(tmp_path / "again", seed=9)
    arguments = ("baseline", "save", "old", "--from", made, "--folder", folder)
    assert refused(*arguments) == f"runner: {path}: is there already; give another name, or replace it with --replace"
    assert path.read_bytes() == before
    save("old", "--replace", seed=9)
    assert path.read_bytes() != before
    assert len(list(folder.iterdir())) == 1


def test_a_full_disk_leaves_the_old_baseline(save, refused, folder, tmp_path):
    path = save("old")
    before = path.read_bytes()
    made = session(tmp_path / "again", seed=9)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))  # writing beyond that fails as on a full disk
    try:
        message = refused("baseline", "save", "old", "--from", made, "--folder", folder, "--replace")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert message == f"runner: {path}: can't be written: File too large; what it held before is unchanged"
    assert (path.read_bytes(), len(list(folder.iterdir()))) == (before, 1)


def test_a_folder_that_can_not_be_made(refused, tmp_path):
    (tmp_path / "file").write_text("x")
    made = session(tmp_path / "run")
    message = refused("baseline", "save", "old", "--from", made, "--folder", tmp_path / "file")
    assert message == f"runner: {tmp_path}/file: can't be made: File exists; give another --folder"


@pytest.mark.parametrize("name", ["", "../up", "a/b", ".hidden", "two words", "-x.json/"])
def test_a_name_must_be_fit_for_a_file(refused, folder, tmp_path, name):
    made = session(tmp_path / "run")
    message = refused("baseline", "save", f"--from={made}", f"--folder={folder}", "--", name)
    assert "can't be a baseline's name; use letters, digits, '.', '_' and '-', as in cnn-epyc" in message
    assert not folder.exists()


def not_in_effect():
    return {"behaviour": {"evidence": {"openmp": {"runtime": "intel", "max_threads": 2, "settings": {}}}}}


@pytest.mark.parametrize(
    ("planted", "words"),
    [
        ({"yardstick": None}, "has no yardsticks (an older version recorded it); measure again"),
        ({"blocks": 5}, "has 5 complete blocks, and 6 are needed; measure more --blocks"),
        (
            {"blocks": 5, "ended": "interrupted"},
            "has 5 complete blocks, and 6 are needed; go on with: runner bench",
        ),
        ({"blocks": 5, "ended": None}, "has 5 complete blocks, and 6 are needed; go on with: runner bench --resume"),
        (
            {"no_yardstick_in": {2, 5}},
            "2 of 10 blocks have no yardstick, because it could not run (exit status 1); nothing could be held",
        ),
        ({"no_yardstick_in": range(10)}, "10 of 10 blocks have no yardstick, because it could not run (exit status 1)"),
        ({"ended": "a worker failed"}, "a worker failed in this run; measure again"),
        (not_in_effect(), "mine was not in effect in this run; see: runner report"),
        ({"epochs": 1, "blocks": 1}, "is a full training (--full), one sample each; measure without --full"),
    ],
)
def test_runs_that_make_no_baseline(refused, folder, tmp_path, planted, words):
    made = session(tmp_path / "run", **planted)
    message = refused("baseline", "save", "old", "--from", made, "--folder", folder)
    assert message.startswith(f"runner: {made}: ")
    assert words in message
    assert not folder.exists()


def test_a_yardstick_that_ran_when_the_run_went_on_is_as_good(cli, folder, tmp_path):
    made = session(tmp_path / "run")
    path = made / record.FILE_NAME
    lines = path.read_text().splitlines()
    failure = {"event": "yardstick-failure", "time": 1.0, "block": 0, "problem": "exit status 1", "stderr": ""}
    path.write_text("\n".join([lines[0], json.dumps(failure), *lines[1:]]) + "\n")
    assert cli("baseline", "save", "old", "--from", made, "--folder", folder).returncode == 0


@pytest.mark.parametrize("key", ["plan", "engines", "environments", "kept_variables"])
def test_a_record_that_lacks_something_is_refused_in_one_line(save, refused, folder, tmp_path, key):
    save()
    made = rewrite(session(tmp_path / "run"), lambda run: run.pop(key))
    expected = f"runner: {made}/record.jsonl: an event lacks '{key}'; the record can't be used"
    assert refused("baseline", "save", "other", "--from", made, "--folder", folder) == expected
    assert refused("baseline", "check", "old", "--against", made, "--folder", folder) == expected
    assert [path.name for path in folder.iterdir()] == ["old.json"]


def in_results(name, days, **planted):
    """A run in the folder of results, begun so many days after the others."""
    made = session(measuring.RESULTS / name, **planted)
    return rewrite(made, lambda run: run.update(time=records.BEGUN + days * 86400))


def test_without_from_the_latest_run_that_is_fit_is_taken(cli, folder):
    in_results("b", 1)
    taken = in_results("a", 3)
    in_results("c", 2)
    in_results("d", 4, ended="a worker failed")
    damaged = rewrite(session(measuring.RESULTS / "e"), lambda run: run.pop("time"))
    result = cli("baseline", "save", "cnn", "--folder", folder)
    assert (result.returncode, result.stderr) == (0, "")
    assert f"run      {taken}\n" in result.stdout
    assert damaged.is_dir()
    document = json.loads(cli("baseline", "save", "other", "--folder", folder, "--json").stdout)
    assert document["record"] == str(taken)


def test_without_from_and_without_a_run_that_is_fit(refused, folder):
    arguments = ("baseline", "save", "cnn", "--folder", folder)
    what_next = "name one with --from DIR, which says what it lacks, or measure: runner bench PROFILE"
    assert refused(*arguments) == f"runner: there is no run in {measuring.RESULTS}; {what_next}"
    in_results("a", 1, ended="a worker failed")
    in_results("b", 1, blocks=3)
    assert refused(*arguments) == (
        f"runner: none of the 2 runs in {measuring.RESULTS} can become a baseline; {what_next}"
    )
    assert not folder.exists()


def test_an_interrupted_run_makes_a_baseline_of_its_complete_blocks(cli, folder, tmp_path):
    made = session(tmp_path / "run", blocks=9, ended=None)
    path = made / record.FILE_NAME
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))  # the last block lacks a sample
    document = json.loads(cli("baseline", "save", "old", "--from", made, "--folder", folder, "--json").stdout)
    assert document["blocks"] == 8


def test_a_run_that_was_resumed_with_another_python(refused, folder, tmp_path):
    made = session(tmp_path / "run")
    path = made / record.FILE_NAME
    lines = path.read_text().splitlines()
    lines[-4] = lines[-4].replace("f" * 64, OTHER)
    path.write_text("\n".join(lines) + "\n")
    message = refused("baseline", "save", "old", "--from", made, "--folder", folder)
    assert message.endswith("was resumed with another yardstick (Python or this kit changed); measure again")


def test_a_folder_without_a_record(refused, folder, tmp_path):
    assert "record.jsonl: can't be read" in refused("baseline", "save", "x", "--from", tmp_path, "--folder", folder)


# --- check ---


def test_a_slower_profile_is_a_regression(save, check):
    save()
    result = check(slower={"mine": 1.2})
    assert (result.returncode, result.stderr) == (1, "")
    baseline, mine = verdicts(result)
    assert baseline == "baseline: no regression: a loss of more than 5% relative to the yardstick is ruled out"
    lost = float(
        re.fullmatch(r"mine: REGRESSION: it has lost (.+)% of its speed relative to the yardstick at least", mine)[1]
    )
    assert 14 < lost < 100 * (1 - 1 / 1.2)
    assert re.search(r"^ratio    mine to baseline, within each session: -1[67]\.\d% \(", result.stdout, re.MULTILINE)
    assert "each side is one session" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_the_same_speed_is_none(save, check):
    save()
    result = check()
    assert result.returncode == 0
    assert verdicts(result) == [
        f"{arm}: no regression: a loss of more than 5% relative to the yardstick is ruled out"
        for arm in ("baseline", "mine")
    ]
    assert "differs  nothing that is recorded of the two environments" in result.stdout


def test_a_loss_of_3_percent_is_not_beyond_5_but_beyond_1(save, check):
    save(noise=0.002)
    planted = {"slower": {"mine": 1.03}, "noise": 0.002}
    assert check(**planted).returncode == 0
    result = check("--threshold", "1%", **planted)
    assert result.returncode == 1
    assert verdicts(result)[1].startswith("mine: REGRESSION: it has lost 2.")


def test_what_is_between_is_said_to_be_uncertain(save, check):
    save(noise=0.05)
    result = check(slower={"mine": 1.05}, noise=0.05)
    assert result.returncode == 0
    assert re.fullmatch(
        r"mine: not certain: it may have lost up to \d+\.\d% of its speed relative to the yardstick; "
        r"measure more blocks",
        verdicts(result)[1],
    )


def test_a_faster_one_is_worth_a_new_baseline(save, check):
    save()
    result = check(slower={"mine": 0.8})
    assert result.returncode == 0
    assert re.fullmatch(
        r"mine: faster by 2\d\.\d% at least relative to the yardstick; save a new baseline to hold that",
        verdicts(result)[1],
    )


def test_a_machine_that_is_slower_today_cancels(save, check):
    """All times, the yardstick's too, are 20% longer: that is no regression, and is shown as the machine's change."""
    save()
    result = check(machine=1.2)
    assert result.returncode == 0
    assert all("no regression" in one for one in verdicts(result))
    assert re.search(r"machine  its own speed, by the yardstick: -1[67]\.\d%", result.stdout)
    as_measured = re.search(r"^mine +\S+ +\S+ +(-\S+)%", result.stdout, re.MULTILINE)[1]
    assert -18 < float(as_measured) < -15


def test_a_slowdown_is_seen_through_a_machine_that_is_faster_today(save, check):
    save()
    result = check(machine=1 / 1.2, slower={"baseline": 1.5, "mine": 1.5})
    assert result.returncode == 1
    assert ["REGRESSION" in one for one in verdicts(result)] == [True, True]
    assert re.search(r"^mine +\S+ +\S+ +-(19|20|21)\.\d% +-3\d\.\d%", result.stdout, re.MULTILINE)


def test_a_faster_yardstick_alone_is_no_regression(save, check):
    """Each step takes as long as before: nothing was seen to get slower."""
    save()
    result = check(yardstick_s=YARDSTICK_S / 1.3)
    assert result.returncode == 0
    for found in verdicts(result):
        assert re.fullmatch(
            r"(baseline|mine): not certain: relative to the yardstick it has lost 2\d\.\d% at least, but only the "
            r"yardstick changed; as measured, its speed changed by [+-][01]\.\d%",
            found,
        )
    document = json.loads(check("--json", yardstick_s=YARDSTICK_S / 1.3).stdout)
    assert document["regression"] is False
    assert [one["yardstick_only"] for one in document["speed"]["arms"]] == [True, True]


def test_a_slower_yardstick_alone_makes_nothing_faster(save, check):
    save()
    for found in verdicts(check(yardstick_s=YARDSTICK_S * 1.3)):
        assert "no regression: a loss of more than 5% relative to the yardstick is ruled out; relative to it" in found
        assert re.search(r"this is faster, but only the yardstick changed; as measured, .* by [+-][01]\.\d%$", found)


def test_a_loss_of_less_than_half_the_threshold_as_measured_does_not_count(save, check):
    """The yardstick is 10% faster; a loss of 2% as measured may be the day's, one of 4% is a regression."""
    save(noise=0.002)
    planted = {"yardstick_s": YARDSTICK_S / 1.1, "noise": 0.002}
    for slower, status in ((1.02, 0), (1.04, 1)):
        result = check(slower={"baseline": slower, "mine": slower}, **planted)
        assert result.returncode == status, result.stdout
        assert ["REGRESSION" in one for one in verdicts(result)] == [status == 1] * 2


def test_blocks_that_go_together_make_the_interval_wider(save, check):
    """The same times in another order: six slow blocks and then six fast ones tell less than slow and fast in turn."""

    def interval(order):
        def change(document):
            spread = [0.97 if number in order else 1.03 for number in range(12)]
            document["arms"]["mine"]["step_s"] = [0.5 * one * (1 + number * 1e-4) for number, one in enumerate(spread)]
            document["yardstick"]["seconds"] = [YARDSTICK_S] * 12

        signed(path, change)
        mine = json.loads(check("--json", blocks=12).stdout)["speed"]["arms"][1]["normalised"]
        return mine["high"] / mine["low"], mine["autocorrelation"]

    path = save(blocks=12)
    in_turn, alternating = interval(range(0, 12, 2))
    together, clustered = interval(range(6))
    assert (alternating, clustered > 0.6) == (0.0, True)
    assert together - 1 > 2 * (in_turn - 1)


def test_another_number_of_steps_left_out_is_said(save, check, cli, folder, tmp_path):
    save()
    note = "then the first 0 timed steps of each sample were left out, now 1"
    assert note in " ".join(check(skipped_steps=1).stdout.split())
    assert "left out" not in check().stdout
    made = session(tmp_path / "new", skipped_steps=1)
    assert cli("baseline", "save", "new", "--from", made, "--folder", folder).returncode == 0
    assert note in " ".join(cli("baseline", "diff", "old", "new", "--folder", folder).stdout.split())
    document = json.loads(cli("baseline", "diff", "old", "new", "--folder", folder, "--json").stdout)
    assert [document[when]["skipped_steps"] for when in ("then", "now")] == [0, 1]


def test_another_yardstick_leaves_only_ratios(save, check):
    save()
    result = check(yardstick=OTHER, machine=1.5, slower={"mine": 1.2})
    assert result.returncode == 1
    assert "so speeds can't be normalised" in " ".join(result.stdout.split())
    baseline, mine = verdicts(result)
    assert baseline == "baseline: not compared"
    assert re.fullmatch(r"mine: REGRESSION: it has lost 1\d\.\d% of its lead at least", mine)
    result = check(yardstick=OTHER, machine=1.5, slower={"baseline": 1.2, "mine": 1.2})
    assert result.returncode == 0
    assert "what slows all profiles alike goes unseen" in " ".join(result.stdout.split())


def test_another_yardstick_and_no_ratio_either(save, refused, folder, tmp_path):
    only = {"arms": (records.arm("baseline"),)}
    save(**only)
    made = session(tmp_path / "now", yardstick=OTHER, **only)
    message = refused("baseline", "check", "old", "--against", made, "--folder", folder)
    assert "the yardstick is other work now" in message
    assert "there is no ratio to compare instead" in message


def test_several_profiles_share_the_error_rate(save, check):
    save(arms=[records.arm(name) for name in ("baseline", "mine", "third")])
    result = check(arms=[records.arm(name) for name in ("baseline", "mine", "third")])
    assert "98.33% interval" in result.stdout
    assert "with several profiles each interval is at 98.33%, all together at 95%" in result.stdout


def change_inspection(part, **fields):
    """Fields of what is seen of the machine, in a new record."""

    def change(run):
        run["engines"]["local"]["inspection"][part] |= fields

    return change


def change_plan(**fields):
    def change(run):
        run["plan"] |= fields

    return change


def rewrite(folder, change):
    """Change the first event of a record."""
    path = folder / record.FILE_NAME
    first, rest = path.read_text().split("\n", 1)
    run = json.loads(first)
    change(run)
    path.write_text(json.dumps(run) + "\n" + rest)
    return folder


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (change_inspection("fingerprint", cpu_model="Another CPU"), "the CPU was Simulated CPU and is now Another CPU"),
        (change_inspection("facts", usable_cpus=3), "the number of usable CPUs was 4 and is now 3"),
        (change_plan(steps=4), "the plan's steps was 3 and is now 4"),
        (change_plan(warmup_steps=5), "the plan's warmup steps was 1 and is now 5"),
        (change_plan(workload="other"), "the plan's workload was cnn and is now other"),
    ],
)
def test_what_can_not_be_compared_is_refused_and_named(save, refused, folder, tmp_path, change, words):
    save()
    made = rewrite(session(tmp_path / "now"), change)
    message = refused("baseline", "check", "old", "--against", made, "--folder", folder)
    assert message.startswith(f"runner: {folder}/old.json: can't be compared with what is measured now: {words}; save")


@pytest.mark.parametrize("what", ["data", "code"])
def test_other_data_or_code_are_refused(save, refused, folder, tmp_path, what):
    save()
    made = session(tmp_path / "now")
    path = made / record.FILE_NAME
    path.write_text(path.read_text().replace({"data": "d" * 64, "code": "c" * 64}[what], "9" * 64))
    message = refused("baseline", "check", "old", "--against", made, "--folder", folder)
    assert f"the digest of the workload's {what} was {what[0] * 12} and is now 999999999999" in message


def test_a_run_without_the_profile_is_refused(save, refused, folder, tmp_path):
    save()
    made = session(tmp_path / "now", arms=(records.arm("baseline"), records.arm("yours")))
    message = refused("baseline", "check", "old", "--against", made, "--folder", folder)
    assert "can't be compared with what is measured now: 'mine' was not measured;" in message


def test_options_of_a_measurement_with_a_record(save, refused, folder, tmp_path):
    save()
    message = refused("baseline", "check", "old", "--against", tmp_path, "--timeout", "60s", "--folder", folder)
    assert message == "runner: --timeout means nothing with --against, which measures nothing"


def test_json_for_scripts(save, check):
    save()
    result = check("--json", slower={"mine": 1.2})
    document = json.loads(result.stdout)
    assert (result.returncode, document["regression"], document["differences"]) == (1, True, [])
    baseline, mine = document["speed"]["arms"]
    assert (baseline["verdict"], mine["verdict"]) == ("no regression", "regression")
    assert mine["normalised"]["low"] < mine["normalised"]["ratio"] < mine["normalised"]["high"] < 0.95
    assert mine["relative"]["ratio"] == pytest.approx(1 / 1.2, abs=0.02)
    assert document["speed"]["confidence"] == 0.975
    assert document["then"]["blocks"] == document["now"]["blocks"] == BLOCKS


# --- finding and reading the file ---


def test_a_missing_baseline_and_one_that_is_nearly_called_so(save, refused, folder):
    message = refused("baseline", "check", "old", "--folder", folder)
    assert message == (
        f"runner: no baseline 'old' in {folder}; there are none; save one with: runner baseline save old --from DIR"
    )
    save("cnn-epyc")
    message = refused("baseline", "check", "cnn-epic", "--folder", folder)
    assert f"no baseline 'cnn-epic' in {folder} (did you mean 'cnn-epyc'?); there are: cnn-epyc;" in message
    assert "x.json: no such file" in refused("baseline", "diff", "x.json", "cnn-epyc", "--folder", folder)


def test_a_file_can_be_named_instead(save, cli, tmp_path):
    path = save()
    moved = path.rename(tmp_path / "elsewhere.json")
    result = cli("baseline", "diff", moved, moved, cwd=tmp_path)
    assert result.returncode == 0
    assert "elsewhere.json: measured" in result.stdout.replace("\n         ", "")


def rewritten(path, **fields):
    """Change keys of a baseline and keep its digest, as an editor would."""
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))


def test_a_baseline_that_was_edited_is_refused(save, refused, folder):
    path = save()
    document = json.loads(path.read_text())
    document["arms"]["mine"]["step_s"][3] *= 0.9
    rewritten(path, arms=document["arms"])
    message = refused("baseline", "check", "old", "--against", folder, "--folder", folder)
    assert message == (
        f"runner: {path}: was edited: its digest is that of another content; "
        "restore the file, or save it anew: runner baseline save NAME --from DIR --replace"
    )


def test_another_order_or_layout_of_the_same_content_is_no_edit(save, check):
    path = save()
    path.write_text(json.dumps(dict(reversed(json.loads(path.read_text()).items())), indent=8))
    assert check().returncode == 0


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"schema": 2, "readable_by": 2}, "was written by a later version (schema 2, this reads up to 1); update"),
        ({"schema": "one"}, "is not a baseline (it has no 'schema'); give a file of runner baseline save"),
        ({"name": 3}, "name: 3 is not of type 'string'"),
        ({"yardstick": {"digest": "f" * 64, "seconds": [1, 2, -3, 4, 5, 6]}}, "yardstick.seconds[2]: -3 is less than"),
        ({"yardstick": {"digest": "f" * 64, "seconds": [1, 2, 3, 4, 5, 6]}}, "arms.baseline.step_s: must hold 6, one"),
        ({"digests": {"code": "x"}}, "digests: 'data' is a required property"),
        ({"arms": {}}, "plan.arms[0].name: there is no 'baseline' further on"),
        ({"engines": {}}, "plan.arms[0].engine: there is no 'local' further on"),
    ],
)
def test_a_file_that_does_not_fit_the_schema(save, refused, folder, fields, words):
    path = save()
    rewritten(path, **fields)
    message = refused("baseline", "check", "old", "--against", folder, "--folder", folder)
    assert message.startswith(f"runner: {path}: {words}")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is not valid JSON (Expecting value"),
        (b"{nonsense", "is not valid JSON ("),
        (b'{"schema": NaN}', "is not valid JSON (NaN is no JSON)"),
        (b"\xff\xfe", "is not valid JSON ("),
        (b"[" * 100_000, "is not valid JSON ("),
        (b"[1]", "is not a baseline (it has no 'schema')"),
    ],
)
def test_a_file_that_is_no_baseline(refused, folder, content, words):
    folder.mkdir()
    (folder / "old.json").write_bytes(content)
    assert refused("baseline", "check", "old", "--folder", folder).startswith(f"runner: {folder}/old.json: {words}")


def signed(path, change):
    """Change a baseline and sign it, by the rule that the schema gives."""
    document = json.loads(path.read_text())
    change(document)
    document.pop("digest")
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    path.write_text(json.dumps({**document, "digest": hashlib.sha256(text.encode()).hexdigest()}))


def with_unknown_keys(document):
    document["moon_phase"] = "full"
    document["plan"]["colour"] = ["red"]
    document["plan"]["arms"][0]["mood"] = None
    document["arms"]["mine"]["watts"] = [1.5]
    document["engines"]["local"]["inspection"]["fingerprint"]["numa_distances"] = {"0": 10}


def test_keys_of_a_later_version_are_ignored(save, check):
    path = save()
    signed(path, with_unknown_keys)
    result = check()
    assert (result.returncode, len(verdicts(result))) == (0, 2)


def test_a_later_version_that_says_it_can_be_read_is_read(save, check):
    path = save()
    signed(path, lambda document: document.update(schema=7, readable_by=1))
    assert check(slower={"mine": 1.2}).returncode == 1


def test_the_published_schema_is_valid_and_describes_what_is_written(save):
    document = json.loads(save().read_text())
    schema = json.loads((PROJECT / "runner/schemas/baseline.schema.json").read_text())
    Draft202012Validator.check_schema(schema)
    Draft202012Validator(schema).validate(document)
    assert schema["properties"].keys() == document.keys()
    for key in schema["required"]:
        with pytest.raises(ValidationError, match=f"'{key}' is a required property"):
            Draft202012Validator(schema).validate({name: document[name] for name in document if name != key})


# --- diff and list ---


def test_diff_says_what_changed_beside_the_speed(save, cli, folder, tmp_path):
    save("old")
    made = session(tmp_path / "new", slower={"mine": 1.2}, seed=2)

    def change(run):
        run["engines"]["local"]["inspection"]["fingerprint"] |= {"kernel": "6.2.0", "governor": "powersave"}
        run["engines"]["local"]["inspection"]["packages"]["torch"] = "2.14.0"
        run["engines"]["local"]["inspection"]["libraries"]["jemalloc"]["sha256"] = "1" * 64
        run["environments"]["mine"]["variables"] = {"UV_THREADPOOL_SIZE": "3"}
        run["environments"]["mine"]["prefix"] = ["numactl", "--localalloc"]

    assert cli("baseline", "save", "new", "--from", rewrite(made, change), "--folder", folder).returncode == 0
    result = cli("baseline", "diff", "old", "new", "--folder", folder)
    assert result.returncode == 0  # it judges nothing
    table = [re.split(r"  +", line.strip()) for line in result.stdout.split("differs")[1].splitlines()[1:]]
    assert table == [
        ["package torch", "2.13.0", "2.14.0"],
        ["kernel", "6.1.0", "6.2.0"],
        ["library jemalloc", "000000000000…", "111111111111…"],
        ["governor", "-", "powersave"],
        ["mine: UV_THREADPOOL_SIZE", "-", "3"],
        ["mine: prefix", "-", "numactl --localalloc"],
    ]
    assert re.search(r"^mine .* -1[67]\.\d%  -1\d\.\d% to -1\d\.\d%$", result.stdout, re.MULTILINE)
    document = json.loads(cli("baseline", "diff", "old", "new", "--folder", folder, "--json").stdout)
    assert {"what": "kernel", "old": "6.1.0", "new": "6.2.0"} in document["differences"]
    assert document["speed"]["arms"][1]["verdict"] == "regression"


def test_diff_of_two_machines_shows_the_environments_and_no_speed(save, cli, folder, tmp_path):
    save("old")
    made = rewrite(session(tmp_path / "new"), change_inspection("fingerprint", cpu_model="Another CPU"))
    assert cli("baseline", "save", "new", "--from", made, "--folder", folder).returncode == 0
    result = cli("baseline", "diff", "old", "new", "--folder", folder)
    assert result.returncode == 0
    assert "speed    not compared: the CPU was Simulated CPU and is now Another CPU" in result.stdout
    assert re.search(r"^cpu model +Simulated CPU +Another CPU$", result.stdout, re.MULTILINE)
    assert "ms/step" not in result.stdout
    document = json.loads(cli("baseline", "diff", "old", "new", "--folder", folder, "--json").stdout)
    assert (document["speed"], document["regression"]) == (None, False)
    assert document["not_compared"] == ["the CPU was Simulated CPU and is now Another CPU"]


def test_list(save, cli, folder):
    assert f"no baselines in {folder}; save one with" in cli("baseline", "list", "--folder", folder).stdout
    save("cnn")
    listed = cli("baseline", "list", "--folder", folder).stdout
    assert re.search(rf"^cnn +2026-\S+ \S+ UTC +{BLOCKS} +baseline, mine +Simulated CPU, 4 CPUs$", listed, re.MULTILINE)
    document = json.loads(cli("baseline", "list", "--folder", folder, "--json").stdout)
    assert [one["name"] for one in document] == ["cnn"]


# --- measuring again ---

BLOCKS_NOW = 6


@pytest.fixture
def again(instant, simulation, save, write_profile, folder, tmp_path):
    """The arguments that check a baseline by measuring again, with simulated workers that are as fast as it was."""
    simulation.worker("baseline", seconds=times(3.0))
    simulation.worker("mine", seconds=times(1.5))
    simulation.worker("yardstick", seconds=[YARDSTICK_S])
    save(engine_options={"python": str(simulation.python)}, data="synthetic")
    profile = write_profile("mine", "env:\n  SIMULATED: mine\nexpect:\n  openmp.max_threads: 2\n")
    return ["baseline", "check", "old", "--folder", folder, "--profile", profile, "--blocks", BLOCKS_NOW,
            "--output", tmp_path / "again"]  # fmt: skip


def test_measure_save_and_measure_the_same_again(instant, bench, simulation, cli, folder, run_folder):
    simulation.worker("mine", seconds=times(0.5))
    assert bench("mine", "--blocks", 7).returncode == 0
    assert cli("baseline", "save", "old", "--from", run_folder, "--folder", folder).returncode == 0
    again, profile = run_folder.with_name("again"), run_folder.with_name("mine.yaml")
    result = cli("baseline", "check", "old", "--folder", folder, "--profile", profile, "--output", again)
    assert (result.returncode, len(verdicts(result))) == (0, 2), result
    then, now = record.read(run_folder)[0], record.read(again)[0]
    kept = ("arms", "engine_options", "workload", "steps", "warmup_steps", "data", "timeout_s", "blocks")
    assert [now["plan"][name] for name in kept] == [then["plan"][name] for name in kept]
    assert now["environments"] == then["environments"]
    assert "speedup" not in result.stdout


def test_check_finds_a_slowdown(again, cli, simulation):
    simulation.worker("mine", seconds=times(2.1))
    result = cli(*again)
    assert result.returncode == 1
    assert "REGRESSION" in verdicts(result)[1]


def test_check_with_json_prints_nothing_else(again, cli):
    document = json.loads(cli(*again, "--json").stdout)
    assert document["regression"] is False


def test_a_profile_that_is_no_longer_in_effect(again, cli, simulation):
    simulation.worker("mine", evidence={"openmp": {"max_threads": 7}})
    result = cli(*again)
    assert result.returncode == 1
    assert "NOT IN EFFECT" in result.stdout
    assert verdicts(result) == []


def test_another_machine_is_refused_before_anything_is_measured(again, refused, simulation, run_folder):
    seen = inspection([], {})
    simulation.inspection(facts={**seen["facts"], "usable_cpus": 2})
    starts = len(simulation.starts())
    assert "the number of usable CPUs was 4 and is now 2" in refused(*again)
    assert len(simulation.starts()) == starts
    assert not (run_folder.parent / "again").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--blocks", 3), "--blocks 3: is too few to compare; give 6 or more"),
        (
            ("--budget", "60s"),
            "--budget can't be given to baseline check, which measures a number of blocks that is fixed before "
            "(10, as many as old has); give another with --blocks",
        ),
    ],
)
def test_another_way_to_end_is_refused_before_anything_is_measured(
    again, refused, simulation, run_folder, options, words
):
    starts = len(simulation.starts())
    assert refused(*again, *options) == f"runner: {words}"
    assert len(simulation.starts()) == starts
    assert not run_folder.with_name("again").exists()


def test_a_check_whose_yardstick_fails_says_so(again, cli, simulation):
    simulation.worker("yardstick", does="exit", status=3)
    result = cli(*again)
    assert (result.returncode, result.stdout) == (2, "")
    assert "6 of 6 blocks have no yardstick, because it could not run" in result.stderr.splitlines()[-1]


def test_an_interrupted_check_says_how_to_go_on(again, simulation, cli, run_folder):
    simulation.worker("mine", does="interrupt", **{"from": 3})
    result = cli(*again)
    folder = run_folder.with_name("again")
    assert result.returncode == 130
    assert result.stderr.splitlines()[-2:] == [
        f"runner: interrupted; go on with: runner bench --resume {folder}",
        "runner: and then compare: runner baseline check old --against that folder",
    ]
    simulation.worker("mine", seconds=times(1.5))
    assert cli("bench", "--resume", folder).returncode == 0
    assert cli(*again[:5], "--against", folder).returncode == 0


def test_a_profile_of_ones_own_must_be_named(again, refused, folder):
    place = again.index("--profile")
    message = refused(*again[:place], *again[place + 2 :])
    assert message == (
        f"runner: {folder}/old.json: its profile 'mine' is not in envprofiles/; give --profile mine.yaml"
    )
    message = refused(*again, "--profile", "yours.yaml")
    assert message == f"runner: --profile yours.yaml: {folder}/old.json has no profile 'yours'; it has: baseline, mine"
