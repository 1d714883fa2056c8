"""What holds for the command line as a whole."""

from __future__ import annotations

import itertools
import json
import signal
import subprocess
from pathlib import Path

import pytest
from envkit import __version__
from envkit.cli.commands import ablate, calibrate, loader_grid, plan

from tests.conftest import command_line
from tests.simulation import times

MEASURING = (
    "--python", "--image", "--sif", "--sqsh", "--cpus", "--cpuset-cpus", "--memory",
    "--resume", "--workload", "--full", "--epochs", "--until", "--force", "--budget", "--blocks", "--margin",
    "--half-width", "--device", "--precision", "--compile", "--channels-last", "--scale",
    "--steps", "--warmup-steps", "--timeout",
    "--seed", "--data", "--keep-env", "--output", "--json", "--command", "--metric", "--unit", "--warmup-lines",
    "--loss-metric",
)  # fmt: skip
# Of these, by command, those that it always refuses.
REFUSED = {
    "plan": plan.REFUSED, "calibrate": calibrate.REFUSED, "loader-grid": loader_grid.NOT_HERE, "ablate": ablate.REFUSED,
    "submit": ("image",), "fleet": ("image",),
}  # fmt: skip


def hidden(command):
    return {f"--{name.removeprefix('user_').replace('_', '-')}" for name in REFUSED[command]}


def shown(command):
    return [option for option in MEASURING if option not in hidden(command)]


SLURM = (
    "--engine", "--nproc", "--nodelist", "--partition", "--time", "--sbatch", "--start-within", "--detach", "--dry-run",
)  # fmt: skip
FLAGS = {
    "tune": (
        "--engine", "--python", "--space", "--nproc", "--backend", "--budget", "--numerics", "--exhaustive", "--blocks",
        "--seed", "--profile", "--resume", "--workload", "--device", "--command", "--metric", "--steps", "--data",
        "--output", "--json",
    ),
    "bench": (
        "PROFILE", "--engine", "--nproc", "--nodes", "--backend", "--against-python", "--against-image",
        "--against-sif", "--against-sqsh", *MEASURING,
    ),
    "submit": ("PROFILE", "--nodes", *SLURM, *shown("submit")),
    "plan": ("PROFILE", "--engine", *shown("plan")),
    "calibrate": ("--engine", *shown("calibrate")),
    "matrix": ("PROFILE", "--engine", *MEASURING),
    "ablate": ("PROFILE", "--engine", *shown("ablate")),
    "compare-engines": ("PROFILE", "--engines", *MEASURING),
    "loader-grid": (
        "PROFILE", "--engine", "--workers", "--batches", "--prefetch", "--pin-memory", "--start",
        "--persistent-workers", *shown("loader-grid"),
    ),
    "profile-ops": (
        "PROFILE2", "--phases", "--forward", "--engine", "--device", "--workload", "--processes", "--steps", "--data",
        "--top", "--json",
    ),
    "profiles": ("--json",),
    "show": ("PROFILE", "--engine", "--python", "--json"),
    "env": ("PROFILE", "--format", "--engine", "--python", "--image", "--sif", "--cpus", "--cpuset-cpus", "--memory"),
    "exec": (
        "PROFILE", "--engine", "--evidence", "--no-check", "--keep-env", "--gpus", "--allow-unknown", "--python",
        "--image",
    ),
    "baseline": ("save", "check", "diff", "list"),
    "fleet": ("PROFILE", "report", "DIR", "--profile", "--html", "--prometheus", *SLURM, *shown("fleet")),
    "history": ("DIR", "--profile", "--engine", "--verdict", "--since", "--limit", "--json"),
    "export-results": ("DIR", "--format", "--output"),
    "report": ("DIR", "--details", "--json", "--html", "--png", "--markdown"),
}  # fmt: skip
EXIT_STATUSES = ("exit status:", "0 done", "1 a worker failed", "2 bad input", "130 interrupted")
OF_ITS_OWN = {"exec": ("exit status: the command's own; 1 where that was 0", "2 bad input")}


@pytest.mark.parametrize("command", FLAGS)
def test_help_of_a_command_is_enough_to_work_with(cli, command):
    result = cli(command, "--help", COLUMNS="200")
    assert (result.returncode, result.stderr) == (0, "")
    for word in (*FLAGS[command], *OF_ITS_OWN.get(command, EXIT_STATUSES)):
        assert word in result.stdout, word
    # every flag says what it does, beside it or below
    for line, below in itertools.pairwise(result.stdout.splitlines()):
        if line.startswith("  --"):
            assert len(line.split("  ")) > 2 or below.startswith(" " * 24), line


@pytest.mark.parametrize("command", REFUSED)
def test_help_has_no_word_of_what_is_always_refused(cli, command):
    lines = cli(command, "--help", COLUMNS="200").stdout.splitlines()
    listed = {line.split()[0] for line in lines if line.startswith("  --")}
    assert len(listed) > 20
    assert not listed & hidden(command)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("ablate", "(default: 90s for each of these: the baseline, the profile, each of its settings alone, and the"),
        ("doctor", "exit status: 0 nothing found that is a reason to stop, 1 such a reason, 2 bad input"),
        ("submit", "with --nproc 120s for each profile, the baseline too, and each process that they are held against"),
    ],
)
def test_help_says_what_is_a_command_s_own(cli, command, words):
    assert words in " ".join(cli(command, "--help", COLUMNS="200").stdout.split())


def test_help_lists_the_commands_and_the_exit_statuses(cli):
    result = cli("--help", COLUMNS="200")
    assert result.returncode == 0
    for word in (*FLAGS, *EXIT_STATUSES):
        assert word in result.stdout
    said = result.stdout.splitlines()[2]
    assert said.startswith("Find out what an environment (variables, preloaded libraries, bindings) is worth to ")
    assert "module" not in result.stdout


def test_version(cli_process):
    assert cli_process("--version").stdout == f"envkit {__version__}\n"


def test_exit_statuses(cli_process, bench_arguments, simulation, run_folder):
    """0, 1 and 2 of a real process; 130 is among the interrupts in commands/test_resume.py."""
    simulation.worker("mine", does="exit", status=3)
    failed = cli_process(*bench_arguments("mine"))
    assert (failed.returncode, "Failed    block 1, mine" in failed.stdout) == (1, True)
    reported = cli_process("report", run_folder)
    assert (reported.returncode, reported.stderr, reported.stdout) == (0, "", failed.stdout)
    again = cli_process(*bench_arguments("mine"))
    assert (again.returncode, again.stdout, len(again.stderr.splitlines())) == (2, "", 1)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [(["report"], "DIR"), (["plan"], "PROFILE"), (["profiles", "more"], "more")],
)
def test_wrong_usage_of_a_command_is_said_in_one_line(cli, arguments, named):
    result = cli(*arguments)
    assert (result.returncode, result.stdout) == (2, "")
    (line,) = result.stderr.splitlines()
    assert named in line
    assert line.endswith(f"; see envkit {arguments[0]} --help")


def test_a_wrong_value_of_an_option_is_said_in_one_line(cli):
    result = cli("bench", "intel-omp", "--blocks", "0")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == "envkit: argument --blocks: '0' is not a whole number above 0\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "the following arguments are required: COMMAND; see envkit --help"),
        (["--json", "bench"], "COMMAND comes first; see envkit --help"),
        (["bnech"], "argument COMMAND: invalid choice: 'bnech' (choose from "),
    ],
)
def test_without_a_command_one_line_says_so(refused, arguments, said):
    assert refused(*arguments).startswith(f"envkit: {said}")


def test_what_is_wrong_is_one_line_whatever_it_quotes(refused):
    assert refused("bench", "--no\nsuch\x1b[2J") == (
        "envkit: unrecognized arguments: --no such\u241b[2J; see envkit bench --help"
    )


@pytest.mark.parametrize(
    "command", ["bench", "matrix", "ablate", "calibrate", "submit", "compare-engines", "loader-grid"]
)
def test_a_budget_and_a_number_of_blocks_are_one_too_many(cli, command):
    result = cli(command, "--budget", "4m", "--blocks", 8)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == "envkit: argument --blocks: not allowed with argument --budget\n"


def test_no_line_that_is_not_for_a_terminal_ends_in_blanks(bench, simulation, instant, cli, run_folder):
    simulation.worker("mine", seconds=times(0.5))
    printed = bench("mine").stdout
    for command in (("report", run_folder, "--details"), ("profiles",), ("history", run_folder)):
        printed += cli(*command).stdout
    lines = printed.splitlines()
    assert sum("  " in line for line in lines) > 20
    assert [line for line in lines if line.endswith(" ")] == []


def test_every_json_parses(cli, bench, simulation, instant, run_folder):
    simulation.worker("mine", seconds=times(0.5))
    outputs = [
        bench("mine", "--json"),
        cli("report", run_folder, "--json"),
        cli("profiles", "--json"),
        cli("show", "jemalloc", "--python", simulation.python, "--json"),
    ]
    assert [(result.returncode, result.stderr) for result in outputs] == [(0, "")] * 4
    benched, reported, *others = (json.loads(result.stdout) for result in outputs)
    assert all(others)
    assert benched.pop("record") == str(run_folder)
    assert reported == benched


@pytest.mark.parametrize("arguments", [["profiles"], ["profiles", "--json"], ["--help"]])
def test_a_reader_that_has_gone_is_no_error(start, arguments):
    process = start(*arguments)
    process.stdout.close()
    assert (process.stderr.read(), process.wait()) in (("", 0), ("", -signal.SIGPIPE))


@pytest.mark.parametrize("arguments", [["profiles"], ["profiles", "--json"]])
def test_output_that_cannot_be_written_is_an_error_in_one_line(arguments):
    with Path("/dev/full").open("w") as full:
        result = subprocess.run(command_line(*arguments), stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert result.returncode not in (0, 130)
    assert "Traceback" not in result.stderr
    assert "No space left on device" in result.stderr
