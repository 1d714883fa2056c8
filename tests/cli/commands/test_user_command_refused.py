"""Commands of one's own that are refused, in one line and before anything runs."""

from __future__ import annotations

import signal

import pytest
from envkit import cli as command_line
from envkit.bench import record
from envkit.bench.messages import FolderTooLarge, NoSuchLink
from envkit.cli.arguments import no_effect
from envkit.cli.messages import OptionAlone
from envkit.cli.workload_messages import NoCommand, TwoTrainings
from envkit.common.errors import InputError
from envkit.worker.user_command import working_copy
from envkit.worker.workloads import WORKLOADS

OWN = ("--", "python", "train.py", "--epochs", "1")


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (["--metric", r"(\d+)", "--unit", "sec"],
         "--unit: no unit 'sec'; choose one of: s, ms, us, min, per-second, per-minute, auto"),
        (["--metric", "time ("],
         "--metric 'time (' is not a regular expression: missing ), unterminated subpattern at position 6"),
        (["--metric", r"([\d.]+) ?it/s"],
         r"--metric '([\d.]+) ?it/s' looks like a rate, and would be taken "
         "for seconds; give the unit per-second, or s if that is right"),
        (["--metric", r"time (\S+) ?ms"],
         r"--metric 'time (\S+) ?ms' looks like a number of ms, and would be taken "
         "for seconds; give the unit ms, or s if that is right"),
        (["--metric", r"SPS: (\d+)"], r"--metric 'SPS: (\d+)' looks like a rate, and would be taken for seconds; "
         "give the unit per-second, or s if that is right"),
        (["--metric", r"(\S+) min/epoch"], r"--metric '(\S+) min/epoch' looks like a number of min, and would be "
         "taken for seconds; give the unit min, or s if that is right"),
        (["--metric", "^step", "--unit", "auto"], "--metric '^step' has no group that could be a number with a "
         "unit; put one around the number, or leave the unit out"),
        (["--metric", ""], "--metric '' is empty; give a regular expression, or a path such as $.step_time"),
        (["--loss-metric", ""],
         "--loss-metric '' is empty; give a regular expression with a group around the loss, or a path such as $.loss"),
        (["--loss-metric", "loss ("], "--loss-metric 'loss (' is not a regular expression: missing ), unterminated "
         "subpattern at position 6"),
        (["--warmup-steps", 3],
         "--warmup-steps has no effect on your own command; leave it out, and use --warmup-lines"),
    ],
)  # fmt: skip
def test_options_that_are_refused(refused, tmp_path, options, line):
    assert refused("bench", "baseline", *options, "--output", tmp_path / "run", *OWN) == f"envkit: {line}"
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("word", "line"),
    [
        ("sh run.sh", "sh run.sh: no such command on the PATH; leave the quotes out: sh run.sh"),
        ("my run.sh", "my run.sh: no such command on the PATH"),
        ("/bin/sh run.sh", "/bin/sh run.sh: no such file in {}; leave the quotes out: /bin/sh run.sh; start envkit "
         "where your training starts"),
    ],
)  # fmt: skip
def test_a_command_line_that_is_one_word(refused, tmp_path, monkeypatch, word, line):
    monkeypatch.chdir(tmp_path)
    assert refused("bench", "baseline", "--", word) == f"envkit: {line.format(tmp_path)}"


@pytest.fixture
def message_of(monkeypatch):
    """Return the message with which a command line is refused."""
    monkeypatch.setattr(signal, "signal", lambda number, handler: None)

    def refused(*arguments):
        with pytest.raises(InputError) as caught:
            command_line._run([*map(str, arguments)])
        return caught.value.message

    return refused


@pytest.mark.parametrize(
    ("command", "profile"),
    [
        (("bench", "baseline"), "baseline"), (("matrix", "jemalloc", "tcmalloc"), "jemalloc"), (("matrix",), None),
        (("ablate", "jemalloc"), "jemalloc"), (("tune",), None), (("plan", "jemalloc"), "jemalloc"),
        (("plan",), None), (("compare-engines", "jemalloc"), "jemalloc"), (("submit", "jemalloc"), "jemalloc"),
        (("fleet", "jemalloc"), "jemalloc"),
    ],
)  # fmt: skip
def test_dashes_without_a_command(message_of, tmp_path, command, profile):
    assert message_of(*command, "--output", tmp_path / "run", "--") == NoCommand(command[0], profile)
    assert not (tmp_path / "run").exists()


def test_options_of_the_kit_behind_the_dashes_are_the_commands(own, run_folder):
    assert own("--whole-command", training=("python", "train.py", "--json", "--", "--metric")).returncode == 0
    argv = ["python", "train.py", "--json", "--", "--metric"]
    assert record.first(run_folder)["study"]["user_command"]["argv"] == argv


def test_a_folder_that_can_not_be_copied_is_refused_before_anything_starts(
    message_of, simulation, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    (tmp_path / "data/x.bin").write_text("1234")
    monkeypatch.setattr(working_copy, "MOST_BYTES", 3)
    how = ("bench", "baseline", "--python", simulation.python, "--output", tmp_path / "run")
    found = message_of(*how, *OWN)
    assert isinstance(found, FolderTooLarge)
    assert (found.folder, found.names[0]) == (str(tmp_path), "data" if found.bytes == 4 else found.names[0])
    for name in ("nowhere", "..", "/etc"):
        assert message_of(*how, "--link", name, *OWN) == NoSuchLink(name, str(tmp_path))
    assert message_of(*how, "--link", "data", "--in-place", *OWN) == no_effect("--link", "--in-place")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--metric", "step"), OptionAlone("--metric", "a command", "-- python train.py")),
        (("--unit", "ms"), OptionAlone("--unit", "a command", "-- python train.py")),
        (("--warmup-lines", 3), OptionAlone("--warmup-lines", "a command", "-- python train.py")),
        (("--loss-metric", r"loss (\S+)"), OptionAlone("--loss-metric", "a command", "-- python train.py")),
        (("--optimizer-steps", 9), OptionAlone("--optimizer-steps", "a command", "-- python train.py")),
        (("--whole-command",), OptionAlone("--whole-command", "a command", "-- python train.py")),
        (("--workload", "cnn", *OWN), TwoTrainings("cnn")),
        (("--unit", "ms", *OWN), OptionAlone("--unit", "--metric")),
        (("--optimizer-steps", 9, "--metric", "step", *OWN),
         no_effect("--metric", "--optimizer-steps")),
        (("--optimizer-steps", 9, "--unit", "ms", *OWN),
         no_effect("--unit", "--optimizer-steps")),
        (("--whole-command", "--metric", "step", *OWN),
         no_effect("--metric", "--whole-command")),
        (("--whole-command", "--warmup-lines", 2, *OWN),
         no_effect("--warmup-lines", "--whole-command")),
        (("--whole-command", "--optimizer-steps", 2, *OWN),
         no_effect("--optimizer-steps", "--whole-command")),
    ],
)  # fmt: skip
def test_ways_to_time_it_that_do_not_go_together(message_of, tmp_path, options, message):
    assert message_of("bench", "baseline", "--output", tmp_path / "run", *options) == message
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "option",
    [
        ("--full",), ("--steps", 3), ("--data", "synthetic"), ("--precision", "bf16-autocast"), ("--compile",),
        ("--channels-last",), ("--scale", 2),
    ],
)  # fmt: skip
def test_how_to_train_is_its_own_affair(refused, tmp_path, option):
    why = "has no effect on your own command; leave it out, and use the command's own options"
    assert refused("bench", "baseline", *option, "--output", tmp_path / "run", *OWN) == f"envkit: {option[0]} {why}"
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("command", [("matrix", "jemalloc"), ("tune",)])
def test_how_to_train_is_its_own_affair_in_other_commands_too(refused, tmp_path, command):
    line = refused(*command, "--scale", 2, "--output", tmp_path / "run", *OWN)
    assert line.startswith("envkit: --scale has no effect on your own command; ")
    assert not (tmp_path / "run").exists()


def test_a_workload_that_there_is_not(cli):
    result = cli("bench", "baseline", "--workload", "cn").ended(2)
    there = f"choose one of: {', '.join(WORKLOADS)}, and a file like mine.yaml"
    assert result.stderr.splitlines()[-1].endswith(f"no workload 'cn' (did you mean 'cnn'?); {there}")
