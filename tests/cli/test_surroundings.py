"""The command line where its surroundings are poor: no home to write to, no UTF-8, nobody who reads."""

from __future__ import annotations

import json
import os
import subprocess

import pytest
from envkit.common.errors import InputError
from envkit.tuning import destination
from envkit.tuning.messages import NoPlace

from tests.conftest import CODE_PATH, command_line


@pytest.fixture
def homeless(monkeypatch, tmp_path):
    """A home that can't be written to, whoever this is: a file."""
    for name in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name)
    (tmp_path / "home").write_text("")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "home"


def test_what_needs_no_home_works_without_one(homeless, cli, cli_process, simulation):
    python = ("--python", simulation.python)
    for arguments in (
        ("profiles",), ("show", "glibc-retain", *python), ("env", "glibc-retain", *python),
        ("explain", "OMP_NUM_THREADS", *python),
    ):  # fmt: skip
        result = cli(*arguments)
        assert (arguments[0], result.returncode) == (arguments[0], 0), result.stderr
    result = cli_process("exec", "--no-check", *python, "glibc-retain", "--", "true")
    assert result.returncode == 0, result.stderr


def test_a_measurement_works_without_a_home(homeless, bench, instant):
    result = bench("mine")
    assert result.returncode == 0, result.stderr


def test_a_tuned_profile_that_can_t_be_written_names_the_variable(homeless):
    path = homeless / ".config/envkit/profiles/here-tuned.yaml"
    with pytest.raises(InputError) as caught:
        destination.require(path)
    message = caught.value.message
    assert isinstance(message, NoPlace)
    assert (message.file, message.variable) == (str(path), "XDG_CONFIG_HOME")
    with pytest.raises(InputError) as caught:
        destination.require(homeless / "elsewhere.yaml")
    assert isinstance(caught.value.message, NoPlace)
    assert caught.value.message.variable is None


@pytest.mark.parametrize("surroundings", [{"LANG": "C", "LC_ALL": "C"}, {"PYTHONIOENCODING": "ascii"}])
def test_a_locale_without_utf_8_is_no_trouble(cli_process, simulation, surroundings):
    """The default of KMP_AFFINITY is written with a character that ASCII lacks."""
    result = cli_process("explain", "KMP_AFFINITY", "--python", simulation.python, **surroundings)
    assert (result.returncode, result.stderr) == (0, "")
    assert json.loads(cli_process("profiles", "--json", **surroundings).stdout)


def test_a_reader_that_goes_is_no_trouble(tmp_path):
    """As ``envkit profiles | head -1``: the reader closes the pipe after the first line, or before it."""
    for reads in (True, False):
        process = subprocess.Popen(
            command_line("profiles"), env={**os.environ, "PYTHONPATH": CODE_PATH}, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert process.stdout is not None
        assert process.stderr is not None
        if reads:
            assert process.stdout.readline().startswith("profile")
        process.stdout.close()
        said = process.stderr.read()
        assert (process.wait(), said) == (0, "")
