"""A narrow terminal, a reader that has gone, and a locale without UTF-8."""

from __future__ import annotations

import signal

import pytest
from envkit.cli import COMMANDS

from tests.simulation import times

NARROW = 40


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("option", ["--help", "--help-all"])
def test_help_fits_a_narrow_terminal(cli, command, option):
    """What can't be broken may stand out: one word, or an option with what it takes."""
    for line in cli(command, option, COLUMNS=str(NARROW)).stdout.splitlines():
        assert len(line) <= NARROW or len(line.split()) <= 2, line


def test_the_list_of_commands_fits_a_narrow_terminal(cli):
    lines = cli("--help", COLUMNS=str(NARROW)).stdout.splitlines()
    assert max(map(len, lines)) <= NARROW
    assert {line.split()[0] for line in lines if line} >= COMMANDS.keys()


@pytest.fixture
def on_narrow_terminal(on_terminal):
    """What a command prints on a terminal of 40 columns, and its exit status."""

    def run(*arguments):
        status, printed = on_terminal(*arguments, COLUMNS=str(NARROW), LINES="24")
        return printed.decode(), status

    return run


@pytest.mark.parametrize("words", ["profiles", "show glibc-retain", "explain OMP_NUM_THREADS"])
def test_what_is_printed_on_a_narrow_terminal(words, on_narrow_terminal, simulation):
    python = () if words == "profiles" else ("--python", simulation.python)
    printed, status = on_narrow_terminal(*words.split(), *python)
    assert (status, max(map(len, printed.splitlines())) >= NARROW // 2) == (0, True)


def test_a_report_on_a_narrow_terminal(bench, simulation, instant, run_folder, on_narrow_terminal):
    simulation.worker("mine", seconds=times(0.5))
    bench("mine")
    for more in ([], ["--details"]):
        printed, status = on_narrow_terminal("report", run_folder, *more)
        assert status == 0
        assert "mine" in printed


@pytest.mark.parametrize("reads", [False, True])
@pytest.mark.parametrize("words", ["--help", "profiles", "profiles --json"])
def test_a_reader_that_has_gone(start, words, reads):
    """As ``envkit profiles | head -1``: the reader closes the pipe after the first line, or before it."""
    process = start(*words.split())
    assert not reads or process.stdout.readline()
    process.stdout.close()
    assert (process.stderr.read(), process.wait()) in (("", 0), ("", -signal.SIGPIPE))


def test_a_reader_that_has_gone_before_a_refusal(start):
    process = start("benhc", "--json")
    process.stdout.close()
    printed = process.stderr.read()
    assert process.wait() in (2, -signal.SIGPIPE)
    assert all(line.startswith("envkit: ") for line in printed.splitlines()), printed


@pytest.mark.parametrize(
    "variables",
    [
        {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"LC_ALL": "C.UTF-8", "LANG": "C.UTF-8", "PYTHONIOENCODING": "ascii"},
    ],
)
def test_a_locale_and_names_that_are_not_ascii(cli_process, tmp_path, write_profile, simulation, variables):
    """The default of KMP_AFFINITY is written with a character that ASCII lacks."""
    folder = tmp_path / "überprüft 测试"
    folder.mkdir()
    profile = write_profile("mine", "env: {OMP_NUM_THREADS: '1'}\n", folder)
    python = ("--python", simulation.python)
    shown = cli_process("show", profile, *python, cwd=folder, **variables)
    assert (shown.returncode, "OMP_NUM_THREADS=1" in shown.stdout) == (0, True), shown
    missing = cli_process("report", folder / "fehlt", "--json", cwd=folder, **variables)
    assert (missing.returncode, len(missing.stderr.splitlines())) == (2, 1)
    assert '"error"' in missing.stdout
    cli_process("explain", "KMP_AFFINITY", *python, **variables).ended(0, stderr="")
    assert cli_process("bench", "--help-all", **variables).returncode == 0
