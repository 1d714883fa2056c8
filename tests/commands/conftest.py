"""Save a simulated session as a baseline, and hold another one against it."""

from __future__ import annotations

import pytest

from tests.sessions import session


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "baselines"


@pytest.fixture
def save(cli, folder, tmp_path):
    """Save a simulated session (see ``tests.sessions``) as a baseline; returns its file."""

    def run(name="old", *options, **planted):
        made = session(tmp_path / f"record-{name}", **planted)
        result = cli("baseline", "save", name, "--from", made, "--folder", folder, *options)
        assert result.returncode == 0, result
        return folder / f"{name}.json"

    return run


@pytest.fixture
def check(cli, folder, tmp_path):
    """Hold another simulated session against the baseline ``old``."""

    def run(*options, **planted):
        made = session(tmp_path / "record-now", **{"seed": 2, **planted})
        return cli("baseline", "check", "old", "--against", made, "--folder", folder, *options)

    return run
