"""A command of one's own in the place of a workload: what is refused, what is measured, and what reports say of it."""

from __future__ import annotations

import json
import os

import pytest
from envkit.bench import record, seal
from envkit.bench.messages import SharedByCopies
from envkit.bench.problem_messages import WarmingUp, Written, WroteOutside
from envkit.common import progress
from envkit.rendering import text
from envkit.worker.messages import ProcessKilled

from tests.cli.commands.conftest import words
from tests.records import problem_of
from tests.simulation import times

OWN = ("--", "python", "train.py", "--epochs", "1")
METRIC = ("--metric", r"time ([\d.]+) ms", "--unit", "ms", "--warmup-lines", 2)


# --- the workload file ---


def test_a_workload_file_is_measured(own, run_folder, tmp_path):
    (tmp_path / "job.yaml").write_text("command: python train.py\nmetric: step\n")
    result = own("--workload", "job.yaml").ended(0)
    study = record.first(run_folder)["study"]
    assert (study["workload"], study["user_command"]["argv"]) == ("job", ["python", "train.py"])
    assert "command job: python train.py" in words(result.stdout)


def test_a_workload_file_has_the_metric_itself(refused, tmp_path):
    (tmp_path / "job.yaml").write_text("command: python train.py\n")
    line = refused("bench", "baseline", "--workload", "job.yaml", "--metric", "step", cwd=tmp_path)
    assert line == "envkit: --metric is a key of job.yaml; write it there"


# --- what is measured ---


@pytest.fixture
def evidence_of(simulation):
    """Have the workers say that the command's main process was given these variables besides, as the real ones do."""

    def given(**variables):
        for name, how in (("mine", {"seconds": times(0.5)}), ("baseline", {})):
            more = {"evidence": {"variables": {"sensitive": variables}}} if variables else {}
            simulation.worker(name, **how, other_processes=[], **more)

    return given


def test_what_it_may_not_run_without_is_inherited_unless_a_profile_sets_it(own, run_folder):
    """Lists of settings are inherited all the same: the profile's own are added to them."""
    result = own(
        sets='  NCCL_IB_DISABLE: "0"\n  GLIBC_TUNABLES: glibc.malloc.arena_max=2\n',
        MKL_THREADING_LAYER="GNU", NCCL_IB_DISABLE="1", GLIBC_TUNABLES="glibc.malloc.perturb=0", KMP_BLOCKTIME="7",
    )  # fmt: skip
    first = record.first(run_folder)
    assert first["allowed_variables"].keys() == {"MKL_THREADING_LAYER", "GLIBC_TUNABLES"}, result.stderr
    assert first["removed_variables"] == ["KMP_BLOCKTIME", "NCCL_IB_DISABLE"]


def test_what_says_where_to_run_is_inherited(own, simulation, evidence_of, run_folder):
    evidence_of()
    where = {"CUDA_VISIBLE_DEVICES": "1", "TORCH_HOME": "/big/disk", "TORCHINDUCTOR_CACHE_DIR": "/scratch"}
    result = own(**where, KMP_BLOCKTIME="7").ended(0)
    for start in simulation.starts(all=True):
        assert where.items() <= start["environment"].items()
        assert "KMP_BLOCKTIME" not in start["environment"]
    first = record.first(run_folder)
    assert (first["removed_variables"], first["allowed_variables"]) == (["KMP_BLOCKTIME"], {})
    assert "set by the command itself" not in result.stdout


def test_a_run_is_resumed_where_one_is_then(own, cli, simulation, evidence_of, run_folder):
    """A batch system may give another GPU."""
    evidence_of()
    simulation.worker("mine", does="exit", status=1, other_processes=[], **{"from": 3})
    assert own(CUDA_VISIBLE_DEVICES="1").returncode == 1
    before = len(simulation.starts(all=True))
    evidence_of()
    cli("bench", "--resume", run_folder, CUDA_VISIBLE_DEVICES="0").ended(0)
    after = simulation.starts(all=True)[before:]
    assert {start["environment"]["CUDA_VISIBLE_DEVICES"] for start in after} == {"0"}


def test_what_the_command_sets_for_itself_is_its_own_affair(own, cli, evidence_of, run_folder):
    """As a run.sh does; unless it replaces what the profile sets."""
    evidence_of(MKL_NUM_THREADS="9")
    result = own("--json").ended(0)
    measured = json.loads(result.stdout)["measured"]
    assert [one["set_by_itself"] for one in measured] == [{"MKL_NUM_THREADS": "9"}] * 2
    own("--output", run_folder.with_name("second"))
    details = words(cli("report", run_folder.with_name("second"), "--details").stdout)
    assert "variables set by the command itself: MKL_NUM_THREADS=9" in details
    result = own("--output", run_folder.with_name("third"), sets="  MKL_NUM_THREADS: 2\n").ended(1)
    assert "MKL_NUM_THREADS 2 9" in words(result.stdout)


def writing(simulation, **writes):
    for name in ("mine", "baseline"):
        simulation.worker(name, writes=writes, **({"seconds": times(0.5)} if name == "mine" else {}))


WROTE = {"files": 2, "bytes": 3 * 2**20, "names": ["model.pt", "log"]}


def test_what_it_writes_is_said(own, simulation, events):
    writing(simulation, inside=WROTE)
    result = own().ended(0)
    assert "each start writes 2 files (3.0 MiB), such as model.pt, log into its copy of the folder" in result.stderr
    assert [event["writes"] for event in events("warm-up")] == [{"inside": WROTE}] * 2


def test_links_out_of_the_folder_are_named_before_anything_is_measured(own, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    project = tmp_path / "project"
    project.mkdir()
    (project / "job.yaml").write_text("command: python train.py\n")
    (project / "train.py").touch()
    (project / "runs").symlink_to(tmp_path / "elsewhere")
    (project / "out").symlink_to(tmp_path / "elsewhere")
    name = "project/job.yaml"
    said = text(SharedByCopies(("out", "runs")))
    assert own("--workload", name, "--output", tmp_path / "1").stderr.splitlines()[:2] == [
        f"envkit: {name} starts, in {tmp_path / 'project'}: python train.py",
        said,
    ]
    assert said not in own("--workload", name, "--output", tmp_path / "2", "--quiet").stderr
    (project / "job.yaml").write_text("command: python train.py\nlink: [out, runs]\n")
    assert said not in own("--workload", name, "--output", tmp_path / "3").stderr


def test_in_place_a_later_start_may_go_on_from_that(own, simulation):
    writing(simulation, inside=WROTE)
    result = own("--in-place")
    assert "a later start may continue from them, and then does other work" in result.stderr
    asked = [start["work"] for start in simulation.starts(all=True) if start["name"] == "mine"]
    assert {work["command"]["in_place"] for work in asked} == {True}


def test_what_it_writes_past_the_copy_ends_the_run(own, simulation, events, tmp_path):
    writing(simulation, outside=WROTE)
    result = own().ended(1)
    (failure,) = events("failure")
    assert problem_of(failure) == WarmingUp(WroteOutside(str(tmp_path), Written(2, 3 * 2**20, ("model.pt", "log"))))
    assert " change although the command ran in a copy of it" in words(result.stdout)


def test_trackers_of_experiments_are_off_unless_kept(own, cli, simulation, run_folder):
    own("--keep-env", "WANDB_MODE", WANDB_MODE="online", NEPTUNE_MODE="async")
    for start in simulation.starts(all=True):
        if start["name"] in ("mine", "baseline"):
            seen = {name: start["environment"][name] for name in ("WANDB_MODE", "NEPTUNE_MODE", "CLEARML_OFFLINE_MODE")}
            assert seen == {"WANDB_MODE": "online", "NEPTUNE_MODE": "offline", "CLEARML_OFFLINE_MODE": "1"}
    details = words(cli("report", run_folder, "--details").stdout)
    assert (
        "trackers turned off by NEPTUNE_MODE, SWANLAB_MODE, CLEARML_OFFLINE_MODE; --keep-env NAME keeps yours"
        in details
    )
    assert "folder a fresh copy for each start" in details


def test_reports_of_it(own, cli, run_folder, tmp_path, undrawn):
    result = own(*METRIC)
    text = words(result.stdout)
    assert result.returncode == 0, result.stderr
    for said in (
        "FASTER mine: 2.00x baseline speed", "profile samples ms/step system time faults/run memory",
        "Losses not compared: add --loss-metric, or compare what your training prints",
    ):  # fmt: skip
        assert said in text, said
    assert "images/s" not in text
    assert "-- python train.py --epochs 1" in text.split("Use")[1]
    assert "command python train.py --epochs 1" in text.split("System")[1]
    details = words(cli("report", run_folder, "--details").stdout)
    assert f"command python train.py --epochs 1, in {tmp_path}" in details
    assert r"metric time ([\d.]+) ms, ms, without the first 2 readings; each sample a fresh process" in details
    assert "data the command's own" in details
    page, markdown = tmp_path / "page.html", tmp_path / "report.md"
    cli("report", run_folder, "--html", page, "--markdown", markdown)
    assert "not compared: add --loss-metric" in page.read_text()
    assert "| baseline | 6 | " in markdown.read_text()
    found = json.loads(cli("report", run_folder, "--json").stdout)
    assert found["study"]["user_command"]["warmup_lines"] == 2
    assert found["measured"][0]["images_per_s"] is None
    for kind in ("csv", "json", "openmetrics"):
        assert "python train.py --epochs 1" in cli("export", run_folder, "--format", kind).stdout


def test_the_steps_of_its_optimizer_need_no_pattern(own, cli, simulation, run_folder):
    result = own("--optimizer-steps", 12).ended(0)
    assert "profile samples ms/step" in words(result.stdout)
    details = words(cli("report", run_folder, "--details").stdout)
    assert "metric 12 steps of its optimizer, after 3; each sample a fresh process" in details
    work = next(start["work"] for start in simulation.starts(all=True) if start["name"] == "mine")
    assert (work["steps"], work["warmup"], work["command"]["metric"]) == (12, 3, None)


def test_every_process_of_the_command_is_checked(own, cli, simulation, run_folder):
    """A launcher's evidence is not that of its ranks, which have other settings."""
    rank = {"openmp": {"runtime": "gnu"}, "variables": {"sensitive": {"OMP_NUM_THREADS": "1"}}, "seconds": 0.01}
    others = [{"pid": pid, "argv": ["python", "rank.py"], "evidence": rank} for pid in (71, 72)]
    simulation.worker("mine", seconds=times(0.5), other_processes=others)
    assert own().returncode == 0  # a variable that the profile does not set, as torchrun's
    for other in others:
        other["evidence"] = {**rank, "variables": {"sensitive": {"MKL_NUM_THREADS": "9"}}}
    simulation.worker("mine", seconds=times(0.5), other_processes=others)
    second = run_folder.with_name("second")
    result = own("--output", second, sets="  MKL_NUM_THREADS: 2\n").ended(1)
    text = words(result.stdout)
    assert text.startswith("NOT IN EFFECT mine")
    assert "MKL_NUM_THREADS (processes 71, 72: python rank.py) 2 9" in text
    assert '"in_effect": false' in cli("export", second, "--format", "json").stdout


def test_the_report_of_a_whole_command(own, monkeypatch):
    monkeypatch.setattr(progress, "EVERY_S", 0.0)
    result = own("--whole-command")
    text = words(result.stdout)
    assert "profile samples ms/run system time" in text
    assert " ms per run" in result.stderr


def test_what_goes_on_with_it_names_the_training_last(own, simulation, run_folder, tmp_path, monkeypatch):
    """An option behind ``--`` would be the training's."""
    simulation.worker("mine", does="interrupt")
    monkeypatch.setattr(seal, "is_good", lambda first: False)
    result = own()
    assert result.stderr.splitlines()[-1].endswith(f" --resume {run_folder} -- python train.py --epochs 1")


def test_a_word_of_the_training_is_no_option_of_the_kits(own):
    result = own(training=("python", "train.py", "other/mine.yaml", "--allow-unknown"))
    line = next(line for line in result.stdout.splitlines() if "envkit exec" in line)
    assert "--allow-unknown" not in line.partition(" -- ")[0]
    assert "other/mine.yaml" not in line.partition(" -- ")[0]


def test_another_python_on_the_path_is_not_resumed_with(own, cli, simulation, run_folder, tmp_path):
    """As where another virtual environment is active: its torch may be another one."""
    simulation.worker("mine", does="exit", status=1)
    assert own(*METRIC).returncode == 1
    other = tmp_path / "other/python"
    other.parent.mkdir()
    other.symlink_to("/bin/true")
    before = (run_folder / record.FILE_NAME).read_bytes()
    result = cli("bench", "--resume", run_folder, PATH=f"{other.parent}:{os.environ['PATH']}")
    assert (result.returncode, (run_folder / record.FILE_NAME).read_bytes()) == (2, before)
    assert f" and is {other} on this PATH: the samples can't be compared; resume with" in result.stderr


def test_what_the_worker_says_of_its_failure_is_shown(own, simulation, run_folder, cli):
    killed = ProcessKilled("rank 1", "SIGKILL")
    simulation.worker("baseline", does="problem", text=json.dumps({"problem": killed.to_json()}))
    result = own(*METRIC).ended(1)
    problem = f"{text(killed)} (warming up)"
    assert f"Failed block 1, baseline: the worker {problem}" in words(result.stdout)
    failures = json.loads(cli("report", run_folder, "--json").stdout)["failures"]
    assert failures[0]["problem"]["text"] == problem


def test_a_file_that_changes_between_samples(own, simulation):
    simulation.worker("mine", seconds=times(0.5), digests={"file train.py": "b" * 64})
    simulation.worker("baseline", digests={"file train.py": "c" * 64})
    result = own().ended(1)
    assert "its file train.py differs from that of earlier samples (" in words(result.stdout)


def test_a_file_that_not_every_sample_has(own, simulation):
    """As one that the command writes."""
    simulation.worker("mine", seconds=times(0.5), digests={"file model.pt": "b" * 64})
    assert own().returncode == 0


def test_samples_with_different_numbers_of_readings(own, simulation):
    """Bars are drawn by time: what is faster draws fewer of them."""
    simulation.worker("mine", seconds=times(0.5), full_steps=120)
    simulation.worker("baseline", full_steps=240)
    result = own(*METRIC).ended(0)
    assert "mine: 1.00x baseline speed" in result.stdout  # a mean step takes as long: 0.5 s of 120 steps, 1 s of 240


def test_what_one_arm_warms_up_for_is_not_left_out_of_another_that_has_fewer_readings(own, simulation):
    simulation.worker("mine", seconds=times(0.5), full_steps=100)
    simulation.worker("baseline", full_steps=240, slow_steps=150)
    result = own(*METRIC).ended(0)
    assert "left out" not in result.stdout


def test_a_variable_of_the_profile_s_that_the_command_replaces(own, simulation, run_folder):
    """One that changes nothing by its name too, of which the witness is asked."""
    seen = {"variables": {"named": {"TOKENIZERS_PARALLELISM": "false"}}}
    simulation.worker("mine", seconds=times(0.5), evidence=seen, other_processes=[])
    result = own(sets="  TOKENIZERS_PARALLELISM: 'true'\n").ended(1)
    assert "TOKENIZERS_PARALLELISM true false" in words(result.stdout)
    asked = {start["name"]: start["environment"].get("ENVKIT_NAMES") for start in simulation.starts(all=True)}
    assert (asked["mine"], asked["baseline"]) == ("SIMULATED TOKENIZERS_PARALLELISM", None)


def test_a_workload_file_called_all(own, run_folder, tmp_path):
    (tmp_path / "all.yaml").write_text("command: python train.py\n")
    result = own("--workload", "all.yaml", "--json", command="plan", profile=False).ended(0)
    assert [one["arm"] for one in json.loads(result.stdout)["comparisons"]] == ["again"]


def test_the_command_to_use_starts_where_the_training_does(own, tmp_path):
    there = tmp_path / "my code"
    there.mkdir()
    (there / "job.yaml").write_text("command: python train.py\n")
    (there / "train.py").touch()
    result = own("--workload", "my code/job.yaml", "--keep-env", "A_TOKEN", "--allow-unknown", A_TOKEN="x")
    line = next(line for line in result.stdout.splitlines() if line.startswith("Use "))
    options = f"--python {tmp_path}/simulation/python --keep-env A_TOKEN --allow-unknown"
    assert line.endswith(f"cd '{there}' && envkit exec {tmp_path}/mine.yaml {options} -- python train.py")
    assert "cd " not in own("--output", tmp_path / "here").stdout


def test_calibrating_and_planning_with_it(own, run_folder, tmp_path):
    planned = own(*METRIC, "--json", command="plan", blocks=5)
    (need, *_) = json.loads(planned.stdout)["needs"]
    assert f"--metric '{METRIC[1]}' --unit ms --warmup-lines 2" in need["command"]
    assert need["command"].endswith(" -- python train.py --epochs 1")
    assert own("--output", tmp_path / "calibration", command="plan", profile=False).returncode == 0
    assert record.first(tmp_path / "calibration")["study"]["user_command"]["argv"][0] == "python"


def test_a_baseline_of_it(own, cli, run_folder, tmp_path, simulation):
    own(*METRIC)
    kept = ("--folder", tmp_path / "kept")
    assert cli("baseline", "save", "mine", "--from", run_folder, *kept).returncode == 0
    what = (tmp_path / "mine.yaml", "--python", simulation.python, *METRIC)
    cli("baseline", "check", "mine", *what, *kept, "--output", tmp_path / "again", *OWN, cwd=tmp_path).ended(0)
    assert (
        record.first(tmp_path / "again")["study"]["user_command"] == record.first(run_folder)["study"]["user_command"]
    )
    simulation.worker("baseline", digests={"command": "e" * 64})
    simulation.worker("mine", seconds=times(0.5), digests={"command": "e" * 64})
    other = cli("baseline", "check", "mine", *what, *kept, "--output", tmp_path / "other", *OWN, cwd=tmp_path).ended(2)
    assert "the digest of the workload's command was aaaaaaaaaaaa and is now eeeeeeeeeeee" in other.stderr


# --- how many runs fit into a budget ---


def test_after_the_first_run_of_each_it_is_said_how_many_fit(own, instant):
    instant.takes_s = 10.0
    result = own("--whole-command", blocks=None)
    said = [line for line in result.stderr.splitlines() if line.startswith("envkit: ")]
    assert said == ["envkit: one run of each took 20 s in all: about 8 blocks fit into the budget"]
    assert result.returncode == 0


def test_a_command_that_takes_longer_than_the_budget_is_refused_after_its_first_run(own, instant, events):
    instant.takes_s = 30.0
    result = own("--budget", "20s", blocks=None)
    assert (result.returncode, len(result.stderr.splitlines())) == (2, 1)
    assert result.stderr.startswith("envkit: --budget 20s is too short: a verdict needs 6 blocks, about 7 minutes on ")
    assert result.stderr.endswith("; give --budget 7m, or continue with: envkit bench --resume run\n")
    assert [event["arm"] for event in events("warm-up")] == ["baseline"]  # it was over the budget already


def test_a_budget_with_room_for_one_block_alone_is_refused_after_it_with_one_that_is_enough(own, instant):
    instant.takes_s = 60.0
    result = own("--budget", "4m", blocks=None)
    assert "a verdict needs 6 blocks, about 15 minutes on this machine" in result.stderr
    assert result.stderr.endswith("; give --budget 15m, or continue with: envkit bench --resume run\n")
    assert "UNFINISHED mine: 1 complete block (one sample of each), and a verdict needs 6" in words(result.stdout)
