"""``envkit tune`` with workers whose times are planted."""

from __future__ import annotations

import pytest
from envkit.bench import record
from envkit.cli.commands import tune
from envkit.profiles import profile

from tests.tuning.planted_engine import SMALL_SPACE, planted, ship

SPACE = (
    SMALL_SPACE
    + """\
  allocator: {choices: {glibc: , jemalloc: {preload: [jemalloc]}, mimalloc: {preload: [mimalloc]}}}
constraints:
  - {never: {wait: [passive], spin: [0, 1000, 5000, 10000]}, because: a test}
"""
)


def gain(variables):
    """jemalloc and one spin count are good; the shipped profile has the first of these only."""
    return 0.2 * ("LD_PRELOAD" in variables) + 0.15 * (variables.get("GOMP_SPINCOUNT") == "1000")


@pytest.fixture
def engine(simulation, monkeypatch):
    return planted(monkeypatch, simulation, gain)


@pytest.fixture
def local(tmp_path, monkeypatch):
    """Where the profile is written, in the place of envprofiles/local."""
    folder = tmp_path / "envprofiles/local"
    monkeypatch.setattr(tune, "LOCAL_FOLDER", folder)
    return folder


@pytest.fixture
def shipped(tmp_path, monkeypatch, write_profile):
    return ship(
        monkeypatch, tmp_path / "shipped", write_profile, known="preload: [jemalloc]\n", tc="preload: [tcmalloc]\n",
        other='env: {OMP_NESTED: "true"}\nnumerics: may-differ\n',
    )  # fmt: skip


@pytest.fixture
def arguments(tmp_path, engine, shipped, local):
    space = tmp_path / "small.yaml"
    space.write_text(SPACE)

    def make(*options, budget="100s"):
        fixed = ["--space", space, "--data", "synthetic", "--steps", 3, "--output", tmp_path / "tuning"]
        return ["tune", *fixed, *(["--budget", budget] if budget else []), *options]

    return make


@pytest.fixture
def tuned(cli, arguments):
    return lambda *options, **more: cli(*arguments(*options, **more))


def events(tmp_path, *kinds):
    """What is recorded of the search, of some kinds only if they are named."""
    return [event for event in record.read(tmp_path / "tuning", "tune") if not kinds or event["event"] in kinds]


def written(local):
    return profile.load(str(local / f"{profile.tuned_name()}.yaml"))
