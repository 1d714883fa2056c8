"""What holds for the command line as a whole."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
from pathlib import Path

import pytest
from envkit import __version__
from envkit.cli import COMMANDS
from envkit.cli.argument_messages import COUNT, DATE, LIMIT, SHARE, TIME, NotCounts, NotOfForm, NoUnit
from envkit.cli.commands import ablate, loader_grid, plan
from envkit.cli.measuring_messages import ScaleTooLarge
from envkit.cli.messages import (
    BadOptionValue,
    BadUsage,
    OptionBeforeCommand,
    UnexpectedArgument,
    UnknownChoice,
    UnknownCommand,
    UnknownOption,
)
from envkit.cli.parser import Parser
from envkit.rendering import text

from tests.conftest import PROJECT, command_line
from tests.simulation import times

TARGETS = ("bench", "matrix", "ablate", "tune", "compare-engines")
MEASURING = (
    "--python", "--image", "--sif", "--sqsh", "--cpus", "--cpuset-cpus", "--memory",
    "--resume", "--workload", "--full", "--epochs", "--until", "--force", "--budget", "--blocks", "--margin",
    "--half-width", "--device", "--precision", "--compile", "--channels-last", "--scale",
    "--steps", "--warmup-steps", "--timeout",
    "--seed", "--data", "--keep-env", "--output", "--json", "--metric", "--unit", "--warmup-lines",
    "--loss-metric", "--optimizer-steps", "--whole-command",
)  # fmt: skip
# Of these, by command, those that it always refuses.
REFUSED = {
    "plan": plan.REFUSED, "loader-grid": loader_grid.NOT_HERE, "ablate": ablate.REFUSED,
    "submit": ("image",), "fleet": ("image",),
}  # fmt: skip


def hidden(command):
    return {f"--{name.removeprefix('user_').replace('_', '-')}" for name in REFUSED[command]}


def shown(command):
    return [option for option in MEASURING if option not in hidden(command)]


SLURM = (
    "--engine", "--nproc", "--nodelist", "--partition", "--time-limit", "--sbatch", "--start-within", "--detach",
    "--dry-run",
)  # fmt: skip
FLAGS = {
    "tune": (
        "--engine", "--python", "--space", "--nproc", "--backend", "--budget", "--numerics", "--exhaustive", "--blocks",
        "--seed", "--profile", "--resume", "--workload", "--device", "--metric", "--steps", "--data",
        "--output", "--json", "--max-memory",
    ),
    "bench": (
        "PROFILE", "--engine", "--nproc", "--nodes", "--backend", "--against-python", "--against-image",
        "--against-sif", "--against-sqsh", "--max-memory", *MEASURING,
    ),
    "submit": ("PROFILE", "--nodes", *SLURM, *shown("submit")),
    "plan": ("PROFILE", "--engine", *shown("plan")),
    "matrix": ("PROFILE", "--engine", "--max-memory", *MEASURING),
    "ablate": ("PROFILE", "--engine", *shown("ablate")),
    "compare-engines": ("PROFILE", "--engines", *MEASURING),
    "loader-grid": (
        "PROFILE", "--engine", "--workers", "--batches", "--prefetch", "--pin-memory", "--start-method",
        "--persistent-workers", *shown("loader-grid"),
    ),
    "breakdown": (
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
    "export": ("DIR", "--format", "--output"),
    "report": ("DIR", "--details", "--json", "--html", "--png", "--markdown"),
}  # fmt: skip
# Options of the short help, but for those that all commands have.
MOST_SHOWN = 12
EXIT_STATUSES = ("exit status:", "0 done", "1 a worker failed", "2 bad input", "130 interrupted")
OF_ITS_OWN = {"exec": ("exit status: the command's own, or 128 + N", "1 if that was 0", "2 bad input")}


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command_is_enough_to_work_with(cli, command):
    result = cli(command, "--help-all", COLUMNS="200").ended(0, stderr="")
    for word in (*FLAGS[command], *OF_ITS_OWN.get(command, EXIT_STATUSES)) if command in FLAGS else ():
        assert word in result.stdout, word
    # every flag says what it does, beside it or below
    lines = result.stdout.splitlines()
    for line, below in itertools.pairwise(lines):
        if line.startswith("  --"):
            assert len(line.split("  ")) > 2 or below.startswith(" " * 24), line
    # nothing is started on other machines, and nothing is named that is always refused
    assert "--hosts" not in result.stdout
    assert "ssh" not in result.stdout
    listed = {line.split()[0] for line in lines if line.startswith("  --")}
    assert command not in REFUSED or (len(listed) > 20 and not listed & hidden(command))
    # every group has an option
    lines = result.stdout.partition("\nexit status:")[0].splitlines()
    titles = [number for number, line in enumerate(lines) if re.fullmatch(r"[a-z][^:]*:", line)]
    for begin, end in itertools.pairwise([*titles, len(lines)]):
        assert any(re.match(r"  (-|[A-Z]+\b)", line) for line in lines[begin:end]), lines[begin]


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("ablate", "(default: 90s for each of: the baseline, the profile, each setting alone, and the profile without"),
        ("doctor", "exit status: 0 found no problem that must be fixed first, 1 found one, 2 bad input"),
        ("submit", "(default: 3m; 120s per arm with --nproc)"),
    ],
)
def test_help_says_what_is_a_command_s_own(cli, command, words):
    assert words in " ".join(cli(command, "--help", COLUMNS="200").stdout.split())


def test_help_lists_the_commands_in_groups_with_a_short_line_each(cli):
    printed = cli("--help", COLUMNS="80").stdout
    assert [cli(*words, COLUMNS="80").stdout for words in ((), ("-h",), ("help",))] == [printed] * 3
    titles = [line.removesuffix(":") for line in printed.splitlines() if line and line[0] != " " and line[-1] == ":"]
    assert titles == ["start", "search", "inspect", "results", "clusters", "advanced", "options"]
    listed = re.findall(r"^  ([a-z][a-z-]*)  +(.+)$", printed, re.MULTILINE)
    assert dict(listed) == COMMANDS
    assert max(map(len, COMMANDS.values())) <= 60
    assert set(FLAGS) <= COMMANDS.keys()
    for word in EXIT_STATUSES:
        assert word in " ".join(printed.split())


@pytest.mark.parametrize("command", COMMANDS)
def test_the_short_help_has_few_options_and_says_how_to_see_the_others(cli, command):
    short, full = (cli(command, option, COLUMNS="100").stdout for option in ("--help", "--help-all"))
    options = {
        text: [line.split()[0] for line in text.splitlines() if line.startswith("  -")] for text in (short, full)
    }
    assert {*options[short]} <= {*options[full]}
    assert len(options[short]) <= MOST_SHOWN + 1  # itself
    hidden = len(options[full]) - len(options[short])
    last = short.splitlines()[-1]
    assert last == f"envkit {command} --help-all shows {hidden} more options." if hidden else "--help-all" not in short
    assert "--help-all" not in full


@pytest.mark.parametrize("command", ["bench", "matrix", "tune", "ablate", "submit", "fleet"])
def test_the_short_help_of_commands_that_measure_has_what_matters(cli, command):
    short = cli(command, "--help").stdout
    for option in ("--budget", "--workload", "--engine", "--resume", "--output", "--json", "--quiet"):
        assert f"{option} " in short, option
    for option in ("--seed", "--half-width", "--cpuset-cpus", "--keep-env", "--backend"):
        assert option not in short, option


def test_an_argument_says_where_it_is_added_whether_it_is_advanced():
    parser = Parser(prog="envkit x")
    parser.add_argument("--usual", help="often given")
    parser.add_argument("--rare", advanced=True, help="rarely given")
    group = parser.add_argument_group("for experts", advanced=True)
    group.add_argument("--also-rare", help="rarely given")
    group.add_mutually_exclusive_group().add_argument("--but-this", advanced=False, help="often given")
    short, full = parser.format_help(), parser.format_help(full=True)
    assert [one for one in ("--usual", "--rare", "--also-rare", "--but-this") if one in short] == [
        "--usual",
        "--but-this",
    ]
    assert short.endswith("envkit x --help-all shows 2 more options.\n")
    assert "for experts:" in full
    assert all(one in full for one in ("--usual", "--rare", "--also-rare", "--but-this"))


@pytest.mark.parametrize("arguments", [["help", "bench"], ["bench", "-h"]])
def test_help_of_one_command(cli, arguments):
    assert cli(*arguments).stdout == cli("bench", "--help").stdout
    assert cli("help", "baseline", "check").stdout == cli("baseline", "check", "--help").stdout


def test_version(cli_process):
    assert cli_process("--version").stdout == cli_process("-V").stdout == f"envkit {__version__}\n"


def test_exit_statuses(cli_process, bench_arguments, simulation, run_folder):
    """0, 1 and 2 of a real process; 130 is among the interrupts in commands/test_resume.py."""
    simulation.worker("mine", does="exit", status=3)
    failed = cli_process(*bench_arguments("mine", "--blocks", 1))
    assert (failed.returncode, "Failed    block 1, mine" in failed.stdout) == (1, True)
    reported = cli_process("report", run_folder)
    assert (reported.returncode, reported.stderr, reported.stdout) == (0, "", failed.stdout)
    again = cli_process(*bench_arguments("mine", "--blocks", 1))
    assert (again.returncode, again.stdout, len(again.stderr.splitlines())) == (2, "", 1)


# What is typed wrongly, and the message that answers it.
WRONG = [
    (["benhc"], UnknownCommand("benhc", "bench")),
    (["help", "benhc"], UnknownCommand("benhc", "bench")),
    (["xyzzy"], UnknownCommand("xyzzy")),
    (["--json", "bench"], OptionBeforeCommand("--json")),
    (["bench", "intel-omp", "--buget", "3m"], UnknownOption("--buget", "envkit bench", "--budget")),
    (["bench", "intel-omp", "--buget=3m"], UnknownOption("--buget", "envkit bench", "--budget")),
    (["bench", "--no\nsuch\x1b[2J"], UnknownOption("--no\nsuch\x1b[2J", "envkit bench")),
    (["baseline", "check", "x", "--thresold", "3%"],
     UnknownOption("--thresold", "envkit baseline check", "--threshold")),
    (["profiles", "more"], UnexpectedArgument("more", "envkit profiles")),
    (["baseline", "chek"],
     BadOptionValue("ACTION", UnknownChoice("chek", ("save", "check", "diff", "list"), "check"))),
    (["bench", "intel-omp", "--budget", "3"], BadOptionValue("--budget", NoUnit("3"))),
    (["bench", "intel-omp", "--blocks", "2.5"], BadOptionValue("--blocks", NotOfForm("2.5", COUNT))),
    (["bench", "intel-omp", "--steps", "0"], BadOptionValue("--steps", NotOfForm("0", COUNT))),
    (["bench", "intel-omp", "--seed", "x"], BadOptionValue("--seed", NotOfForm("x", COUNT))),
    (["bench", "intel-omp", "--nproc", "two"], BadOptionValue("--nproc", NotOfForm("two", COUNT))),
    (["bench", "intel-omp", "--instances", "0"], BadOptionValue("--instances", NotOfForm("0", COUNT))),
    (["bench", "intel-omp", "--optimizer-steps", "0"], BadOptionValue("--optimizer-steps", NotOfForm("0", COUNT))),
    (["bench", "intel-omp", "--scale", "65"], BadOptionValue("--scale", ScaleTooLarge(65, 64))),
    (["bench", "intel-omp", "--half-width", "5"], BadOptionValue("--half-width", NotOfForm("5", SHARE))),
    (["bench", "intel-omp", "--margin", "200%"], BadOptionValue("--margin", NotOfForm("200%", SHARE))),
    (["bench", "intel-omp", "--timeout", "-1"], BadOptionValue("--timeout", NotOfForm("-1", TIME))),
    (["bench", "intel-omp", "--max-memory", "10"], BadOptionValue("--max-memory", NotOfForm("10", LIMIT))),
    (["loader-grid", "--workers", "1,"], BadOptionValue("--workers", NotCounts("1,", 0))),
    (["loader-grid", "--batches", "0"], BadOptionValue("--batches", NotCounts("0", 1))),
    (["history", "--since", "soon"], BadOptionValue("--since", NotOfForm("soon", DATE))),
    (["history", "--limit", "0"], BadOptionValue("--limit", NotOfForm("0", COUNT))),
    (["bench", "intel-omp", "--budget"], BadUsage("expected one argument", "envkit bench", "--budget")),
    (["bench", "intel-omp", "--budget", "3m", "--blocks", "3"],
     BadUsage("not allowed with argument --budget", "envkit bench", "--blocks")),
    (["report"], BadUsage("the following arguments are required: DIR", "envkit report")),
    (["bench", "--bud", "3m"], UnknownOption("--bud", "envkit bench", "--budget")),  # no abbreviations
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "message"), WRONG)
def test_what_is_wrong_is_a_message_in_one_line(cli, arguments, message):
    result = cli(*arguments, "--json")
    assert (result.returncode, result.stderr) == (2, f"envkit: {text(message)}\n")
    answer = json.loads(result.stdout)
    assert answer == {"error": {**message.to_json(), "text": text(message)}}


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


@pytest.mark.parametrize("arguments", [["profiles"], ["profiles", "--json"]])
def test_output_that_cannot_be_written_is_an_error_in_one_line(arguments):
    with Path("/dev/full").open("w") as full:
        result = subprocess.run(command_line(*arguments), stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert result.returncode not in (0, 130)
    assert "Traceback" not in result.stderr
    assert "No space left on device" in result.stderr


@pytest.mark.parametrize("target", TARGETS)
def test_a_training_can_be_named_to_make(target):
    """It stands last, behind all options."""
    given = ["ARGS=--budget 5m -- python train.py", "PROFILE=glibc-retain", "WORKLOAD="]
    printed = subprocess.run(
        ["make", "--no-print-directory", "-n", target, *given], cwd=PROJECT, capture_output=True, text=True, check=True
    )
    assert printed.stdout.splitlines()[-1].endswith(" --budget 5m -- python train.py")
