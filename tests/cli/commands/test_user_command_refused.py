"""Commands of one's own that are refused, in one line and before anything runs."""

from __future__ import annotations

import pytest
from envkit.worker.workloads import WORKLOADS

OWN = ("--command", "python train.py --epochs 1")


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (["--metric", "step"], "--metric means nothing without --command; add it, or leave this out"),
        (["--unit", "ms"], "--unit means nothing without --command; add it, or leave this out"),
        (["--warmup-lines", 3], "--warmup-lines means nothing without --command; add it, or leave this out"),
        (["--loss-metric", r"loss (\S+)"], "--loss-metric means nothing without --command; add it, or leave this out"),
        (["--optimizer-steps", 9], "--optimizer-steps means nothing without --command; add it, or leave this out"),
        ([*OWN, "--optimizer-steps", 9, "--metric", "step"],
         "--metric means nothing with --optimizer-steps, which needs no pattern; leave one out"),
        ([*OWN, "--optimizer-steps", 9, "--unit", "ms"],
         "--unit means nothing with --optimizer-steps, which needs no pattern; leave one out"),
        (["--command", ""], "--command is empty; give what starts your training, as 'python train.py'"),
        (["--command", "  "], "--command is empty; give what starts your training, as 'python train.py'"),
        (["--command", "sh -c 'echo"], "--command sh -c 'echo: no closing quotation; close it"),
        (["--command", "cd x && python train.py"], "--command cd x && python train.py: '&&' is for a shell, and none "
         "reads this; use bash -c '…', or quote it"),
        (["--command", "cd x\npython train.py"], "--command cd x python train.py: a line break ends a command for a "
         "shell, and none reads this; use bash -c '…', or end the line with a '\\'"),
        ([*OWN, "--unit", "ms"], "--unit means nothing without --metric; add it, or leave this out"),
        ([*OWN, "--warmup-lines", 3],
         "--warmup-lines means nothing without --metric or --optimizer-steps; add one, or leave this out"),
        ([*OWN, "--metric", r"(\d+)", "--unit", "sec"],
         "--unit sec: no such unit; there are: s, ms, us, min, per-second, per-minute, auto"),
        ([*OWN, "--metric", "step", "--unit", "ms"], "--metric 'step' has no group that could be a number with a unit; "
         "put one around the number, or leave the unit out"),
        ([*OWN, "--metric", "time ("],
         "--metric 'time (' is no regular expression: missing ), unterminated subpattern at position 6"),
        ([*OWN, "--metric", r"([\d.]+) ?it/s"],
         r"--metric '([\d.]+) ?it/s' looks like a rate, and would be taken "
         "for seconds; give the unit per-second, or s if that is right"),
        ([*OWN, "--metric", r"time (\S+) ?ms"],
         r"--metric 'time (\S+) ?ms' looks like a number of ms, and would be taken "
         "for seconds; give the unit ms, or s if that is right"),
        ([*OWN, "--metric", r"SPS: (\d+)"], r"--metric 'SPS: (\d+)' looks like a rate, and would be taken for seconds; "
         "give the unit per-second, or s if that is right"),
        ([*OWN, "--metric", r"(\S+) min/epoch"], r"--metric '(\S+) min/epoch' looks like a number of min, and would be "
         "taken for seconds; give the unit min, or s if that is right"),
        ([*OWN, "--metric", "^step", "--unit", "auto"], "--metric '^step' has no group that could be a number with a "
         "unit; put one around the number, or leave the unit out"),
        ([*OWN, "--metric", ""], "--metric '' is empty; give a regular expression, or a path as $.step_time"),
        ([*OWN, "--loss-metric", "^step"],
         r"--loss-metric '^step' has no group that could be a loss; put one around it, as in loss (\S+)"),
        ([*OWN, "--loss-metric", r"loss (\S+) (\S+)"],
         r"--loss-metric 'loss (\S+) (\S+)' has 2 groups, and one can be a loss; write the others (?:…)"),
        ([*OWN, "--loss-metric", ""],
         "--loss-metric '' is empty; give a regular expression with a group around the loss, or a path as $.loss"),
        ([*OWN, "--loss-metric", "loss ("], "--loss-metric 'loss (' is no regular expression: missing ), unterminated "
         "subpattern at position 6"),
        ([*OWN, "--workload", "cnn"], "--command and --workload both say what to measure; leave one out"),
        ([*OWN, "--warmup-steps", 3],
         "--warmup-steps means nothing to a command of your own; leave it out, and give --warmup-lines"),
    ],
)  # fmt: skip
def test_options_that_are_refused(refused, tmp_path, options, line):
    assert refused("bench", "baseline", *options, "--output", tmp_path / "run") == f"envkit: {line}"
    assert not (tmp_path / "run").exists()


def test_no_steps_of_its_optimizer_are_none(cli):
    result = cli("bench", "baseline", *OWN, "--optimizer-steps", 0)
    assert result.returncode == 2
    assert "--optimizer-steps: '0' is not a whole number above 0" in result.stderr


@pytest.mark.parametrize(
    "option",
    [
        ("--full",), ("--steps", 3), ("--data", "synthetic"), ("--precision", "bf16-autocast"), ("--compile",),
        ("--channels-last",), ("--scale", 2),
    ],
)  # fmt: skip
def test_how_to_train_is_its_own_affair(refused, tmp_path, option):
    why = "means nothing to a command of your own; leave it out, and give the command options of its own"
    assert refused("bench", "baseline", *OWN, *option, "--output", tmp_path / "run") == f"envkit: {option[0]} {why}"
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("command", [("matrix", "jemalloc"), ("tune",)])
def test_how_to_train_is_its_own_affair_in_other_commands_too(refused, tmp_path, command):
    line = refused(*command, *OWN, "--scale", 2, "--output", tmp_path / "run")
    assert line.startswith("envkit: --scale means nothing to a command of your own; ")
    assert not (tmp_path / "run").exists()


def test_a_workload_that_there_is_not(cli):
    result = cli("bench", "baseline", "--workload", "cn")
    assert result.returncode == 2
    there = f"there are: {', '.join(WORKLOADS)}, and a file like mine.yaml"
    assert result.stderr.splitlines()[-1].endswith(f"no workload 'cn' (did you mean 'cnn'?); {there}")
