"""Limits that an engine takes and that must be in force inside."""

from __future__ import annotations

import pytest
from envkit.engines.base import EngineOptions
from envkit.engines.container import memory_bytes, require_in_force
from envkit.engines.setup_messages import LimitNotInForce
from envkit.rendering import text

from tests.instant_engine import replace_engine
from tests.instant_images import InstantImages
from tests.refusals import refusal


def inside(quota=None, cpus=4, memory=None, groups_seen=True):
    return {"facts": {"cpu_quota": quota, "affinity_cpus": cpus}, "memory_limit": memory, "groups_seen": groups_seen}


@pytest.mark.parametrize(
    ("given", "seen"),
    [
        ({}, inside()),
        ({"cpus": "1.5"}, inside(quota=1.5)),
        ({"cpus": "1.5"}, inside(quota=1.0)),
        ({"cpus": "0.333"}, inside(quota=0.33333)),
        ({"cpuset_cpus": "0,2-3"}, inside(cpus=3)),
        ({"cpuset_cpus": "0-7"}, inside(cpus=4)),
        ({"memory": "4g"}, inside(memory=4 * 2**30)),
        ({"memory": "1.5gib"}, inside()),
        ({"cpus": "1.5", "memory": "4g"}, inside(groups_seen=False)),
    ],
)
def test_limits_in_force(given, seen):
    require_in_force(EngineOptions(**given), "podman", seen)


@pytest.mark.parametrize(
    ("given", "seen", "option"),
    [
        ({"cpus": "1.5"}, inside(), "--cpus 1.5"),
        ({"cpus": "1"}, inside(quota=2.0), "--cpus 1"),
        ({"cpuset_cpus": "0-1"}, inside(cpus=4), "--cpuset-cpus 0-1"),
        ({"cpuset_cpus": "0-1"}, inside(groups_seen=False), "--cpuset-cpus 0-1"),
        ({"memory": "4G"}, inside(), "--memory 4G"),
        ({"memory": "300m"}, inside(memory=2**30), "--memory 300m"),
    ],
)
def test_a_limit_that_is_ignored(given, seen, option):
    assert refusal(require_in_force, EngineOptions(**given), "podman", seen) == LimitNotInForce(option, "podman")


@pytest.mark.parametrize(("text", "size"), [("512", 512), ("8b", 8), ("2k", 2048), ("300M", 300 * 2**20)])
def test_bytes(text, size):
    assert memory_bytes(text) == size


def test_nothing_is_measured_where_a_limit_is_ignored(refused, monkeypatch, tmp_path):
    images = InstantImages(tmp_path / "images", "podman")
    image = images.add("mine")
    replace_engine(monkeypatch, "podman", images)
    line = refused("bench", "baseline", "--engine", "podman", "--image", "mine", "--cpus", "2", "--data", "synthetic")
    assert text(LimitNotInForce("--cpus 2", "podman")) in line
    assert image.starts() == []
