"""A narrow terminal, a reader that has gone, and a locale without UTF-8."""

from __future__ import annotations

import os
import pty
import signal
import subprocess

import pytest
from envkit.cli import COMMANDS

from tests.conftest import CODE_PATH, command_line, read_all
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


@pytest.mark.parametrize("arguments", [["profiles"], ["show", "glibc-retain"], ["explain", "OMP_NUM_THREADS"]])
def test_what_is_printed_on_a_narrow_terminal(arguments, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", CODE_PATH)
    monkeypatch.setenv("TERM", "xterm")
    assert _on_a_terminal(arguments)[1] == 0


def test_a_report_on_a_narrow_terminal(bench, simulation, instant, run_folder, monkeypatch):
    simulation.worker("mine", seconds=times(0.5))
    bench("mine")
    monkeypatch.setenv("PYTHONPATH", CODE_PATH)
    for more in ([], ["--details"]):
        printed, status = _on_a_terminal(["report", str(run_folder), *more])
        assert status == 0
        assert "mine" in printed


def _on_a_terminal(arguments: list[str]) -> tuple[str, int]:
    """What a command prints on a terminal of 40 columns, and its exit status."""
    ours, theirs = pty.openpty()
    size = {"COLUMNS": str(NARROW), "LINES": "24"}
    process = subprocess.Popen(command_line(*arguments), stdout=theirs, stderr=theirs, env={**os.environ, **size})
    os.close(theirs)
    printed = read_all(ours)
    os.close(ours)
    status = process.wait()
    assert b"Traceback" not in printed, printed
    return printed.decode(), status


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["bench", "--help-all"], ["profiles"], ["profiles", "--json"], ["show", "glibc-retain"], ["history"],
     ["env", "glibc-retain"], ["benhc", "--json"]],
)  # fmt: skip
def test_a_reader_that_has_gone(start, arguments):
    process = start(*arguments)
    process.stdout.close()
    printed = process.stderr.read()
    assert process.wait() in (0, 2, -signal.SIGPIPE)
    assert all(line.startswith("envkit: ") for line in printed.splitlines()), printed


@pytest.mark.parametrize("locale", ["C", "POSIX", "C.UTF-8"])
def test_a_locale_and_names_that_are_not_ascii(cli_process, tmp_path, write_profile, locale):
    folder = tmp_path / "überprüft 测试"
    folder.mkdir()
    profile = write_profile("mine", "env: {OMP_NUM_THREADS: '1'}\n", folder)
    variables = {"LC_ALL": locale, "LANG": locale, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    shown = cli_process("show", profile, cwd=folder, **variables)
    assert (shown.returncode, "OMP_NUM_THREADS=1" in shown.stdout) == (0, True), shown
    missing = cli_process("report", folder / "fehlt", "--json", cwd=folder, **variables)
    assert (missing.returncode, len(missing.stderr.splitlines())) == (2, 1)
    assert '"error"' in missing.stdout
    assert cli_process("history", folder, cwd=folder, **variables).returncode == 0
    assert cli_process("--help", **variables).returncode == 0
    assert cli_process("bench", "--help-all", **variables).returncode == 0
