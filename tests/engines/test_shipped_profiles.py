"""That what shipped profiles expect tells whether they are in effect, held against a real worker without any."""

from __future__ import annotations

import pytest

from runner.bench import record
from runner.checks.effect import Check, look_up
from runner.common.errors import InputError
from runner.profiles import profile
from runner.profiles.resolve import resolve
from runner.worker.image.inspection import inspect

# What sets a number of threads that may be the default on this machine, and nothing else.
THREADS_ALONE = {"physical-cores", "smt"}


@pytest.fixture(scope="module")
def inspection():
    return inspect(())


@pytest.fixture
def evidence(cli, tmp_path, data_folder):
    """Of a worker that was given nothing."""
    run = tmp_path / "run"
    length = ("--blocks", 1, "--steps", 2, "--warmup-steps", 1)
    result = cli("bench", "baseline", *length, "--data", data_folder, "--output", run)
    assert result.returncode == 0, result
    return next(event["evidence"] for event in record.read(run) if event["event"] == "sample")


def test_what_a_profile_expects_is_not_so_without_it(evidence, inspection):
    """Else it would count as in effect whatever happens to its settings."""
    looked_at = []
    for name in profile.names():
        try:
            expect = resolve(profile.load(name), inspection).expect
        except InputError:  # it does not apply here, or lacks a library
            continue
        if expect and name not in THREADS_ALONE:
            looked_at.append(name)
            assert not all(Check(key, value, look_up(evidence, key)).holds for key, value in expect.items()), name
    assert len(looked_at) > 3
