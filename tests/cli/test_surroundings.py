"""The command line without a home to write to."""

from __future__ import annotations

import pytest
from envkit.common.errors import InputError
from envkit.tuning import destination
from envkit.tuning.messages import NoPlace


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
    result = cli_process("exec", "--no-check", *python, "glibc-retain", "--", "true").ended(0)


def test_a_measurement_works_without_a_home(homeless, bench, instant):
    bench("mine").ended(0)


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
