"""``envkit.bench(...)``, as a notebook calls it."""

from __future__ import annotations

import subprocess
import sys

import envkit
import pytest
from envkit.api import NotInPython
from envkit.bench import record
from envkit.messages import MessageError

from tests.conftest import CODE_PATH
from tests.simulation import times


@pytest.fixture
def measure(instant, simulation, write_profile, tmp_path, monkeypatch):
    """Measure a profile by simulated workers that take half the time."""
    simulation.worker("mine", seconds=times(0.5))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").touch()

    def run(*arguments, text="env: {SIMULATED: mine}\n", blocks=6, **options):
        return envkit.bench(str(write_profile("mine", text)), *arguments, python=simulation.python, seed=7,
                            blocks=blocks, **options)  # fmt: skip

    return run


def test_a_result(measure, capsys, tmp_path):
    result = measure(command=["python", "train.py", "--epochs", "1"], output=tmp_path / "run")
    assert isinstance(result, envkit.BenchResult)
    assert (result.profile, result.verdict, result.settings_in_effect) == ("mine", "faster", True)
    assert (result.headline["code"], result.headline["subject"]) == ("report.faster", "mine")
    assert str(result).startswith(result.headline["text"])
    assert result.low < result.speedup < result.high
    assert result.speedup == pytest.approx(2.0, abs=0.1)
    assert result.record == tmp_path / "run"
    first = record.first(result.record)
    assert first["study"]["user_command"]["argv"] == ["python", "train.py", "--epochs", "1"]
    assert first["command"][:2] == ["envkit", "bench"]
    assert first["command"][-4:] == ["python", "train.py", "--epochs", "1"]
    assert capsys.readouterr().out == ""
    assert "python train.py --epochs 1" in str(result)
    assert "FASTER" in str(result)


def test_a_record_goes_where_those_of_the_command_line_go(measure):
    result = measure(command=["python", "train.py"], keep_env=["HOME", "PATH"], whole_command=True)
    assert result.record.parent.name == "results"
    study = record.first(result.record)["study"]
    assert study["user_command"]["optimizer_steps"] is None
    assert sorted(record.first(result.record)["allowed_variables"]) == ["HOME", "PATH"]


def test_a_run_that_fails_is_a_result(measure, simulation):
    simulation.worker("mine", does="exit", status=3)
    result = measure(command=["python", "train.py"])
    assert (result.verdict, result.speedup, result.low, result.high) == ("failed", None, None, None)


def test_settings_that_are_not_in_effect(measure, simulation):
    simulation.worker("mine", seconds=times(0.5), evidence={"variables": {"sensitive": {"MKL_NUM_THREADS": "9"}}})
    result = measure(command=["python", "train.py"], text="env: {SIMULATED: mine, MKL_NUM_THREADS: 2}\n")
    assert (result.verdict, result.settings_in_effect) == ("NOT IN EFFECT", False)
    assert result.headline["code"] == "report.not-in-effect"


def test_a_script_can_tell_that_losses_differ(measure, simulation):
    simulation.worker("mine", seconds=times(0.5), losses=[3.0, 2.299, 2.298])
    result = measure(steps=3, data="synthetic")
    assert (result.verdict, result.headline["code"]) == ("faster", "report.faster-losses-differ")


def test_bad_input_is_an_error_that_can_be_read(measure, tmp_path):
    with pytest.raises(envkit.InputError) as caught:
        envkit.bench("no-such-profile", output=tmp_path / "run")
    assert isinstance(caught.value, MessageError)
    assert "no-such-profile" in str(caught.value)
    with pytest.raises(envkit.InputError) as caught:
        measure(command=["python"], dry_run=True)
    assert caught.value.message == NotInPython("dry_run")
    assert str(caught.value).startswith("envkit.bench takes no option 'dry_run'; ")
    with pytest.raises(envkit.InputError, match="--budgte"):
        measure(budgte="60s")
    assert not (tmp_path / "run").exists()


def test_importing_it_is_quick():
    script = "import sys, envkit; print(sorted(name for name in sys.modules if name.partition('.')[0] == 'envkit'))"
    printed = subprocess.run(
        [sys.executable, "-S", "-c", script], env={"PYTHONPATH": CODE_PATH}, capture_output=True, text=True, check=True
    ).stdout
    assert printed.strip() == "['envkit']"


def test_what_there_is_not():
    with pytest.raises(AttributeError, match="no attribute 'benhc'"):
        envkit.benhc  # noqa: B018
